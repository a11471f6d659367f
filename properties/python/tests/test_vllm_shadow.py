# SPDX-License-Identifier: Apache-2.0
"""The plugin of vLLM over calls that vLLM's CPU engine made (recorded/vllm_cpu.npz, adapters/vllm_engine.py wrote it) and over a
stub of vLLM: right calls pass, mistakes between engine and judge are found, and nothing of the engine changes."""
import pathlib
import sys
import types

import numpy as np
import pytest
from assay import judging
from assay._engines import vllm_calls, vllm_shadow
from assay._judge import record as judge_record
from test_judge import library  # noqa: F401  (a fixture)
from vllm_mistakes import MISTAKES, as_numpy

FILE = pathlib.Path(__file__).with_name("recorded") / "vllm_cpu.npz"


class Impl:
    """What the plugin asks of an AttentionImpl; forward gives the recorded output."""

    def __init__(self, call, recorded):
        self.attn_type, self.kv_cache_dtype, self.sinks, self.alibi_slopes, self.logits_soft_cap = "decoder", "auto", None, None, 0
        self.scale, self.sliding_window, self.recorded = float(call["scale"]), int(call["sliding_window"]), recorded

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        output[...] = self.recorded
        return output


class Attention:
    """What the plugin asks of vLLM's layer."""

    def __init__(self, impl=None, backend="CPU_ATTN"):
        self.impl = impl
        self.attn_backend = types.SimpleNamespace(get_name=lambda: backend)


def calls():
    with np.load(FILE) as held:
        names = sorted({name.split(".")[0] for name in held.files})
        return [{name.split(".")[1]: held[name] for name in held.files if name.startswith(f"{i}.")} for i in names]


def metadata(call):
    tensors = {name: call[name] for name in ("query_start_loc", "seq_lens", "block_table")}
    return types.SimpleNamespace(**tensors, causal=True, num_actual_tokens=len(call["query"]), dynamic_causal=None)


def served(call, shadow, backend="CPU_ATTN", kv_cache=None, isa="vec", recorded=None, times=1):
    """The outputs of a layer that a shadow looks at."""
    layer = Attention(Impl(call, call["output"] if recorded is None else recorded), backend)
    shadow.attach(layer)
    owner, out = types.SimpleNamespace(isa=isa, _k_scale_float=1.0, _v_scale_float=1.0), None
    for _ in range(times):
        out = np.zeros_like(call["output"])
        pages = call["kv_cache"] if kv_cache is None else kv_cache
        layer.impl.forward(owner, call["query"], None, None, pages, metadata(call), output=out)
    return out


@pytest.mark.parametrize("i", range(2))
def test_recorded_calls_are_inside_and_pass_through(i):
    call, shadow = calls()[i], vllm_shadow.Shadow(1, max_rows=0)
    assert (served(call, shadow) == call["output"]).all()
    counters = shadow.counters
    assert (counters.calls, counters.judged, counters.findings, counters.errors) == (1, 1, 0, {}) and 0 < counters.worst < 1, counters


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.__name__)
def test_a_mistake_between_engine_and_judge_is_found(mistake):
    found = []
    for call in calls():
        impl = Impl(call, None)
        arguments = vllm_calls.cpu(impl, types.SimpleNamespace(isa="vec"), call["query"], call["kv_cache"], call["output"], metadata(call), 0)
        changes = mistake(as_numpy(arguments))
        if changes is not None:
            found.append(judging.judge(**{**arguments, **changes}).verdict)
    assert "outside" in found, found


def test_what_fails_is_kept_and_replays_and_the_output_stays_as_it_is():
    call, shadow = calls()[1], vllm_shadow.Shadow(1)
    wrong = call["output"][:, ::-1].copy()
    assert (served(call, shadow, recorded=wrong, times=3) == wrong).all()
    assert shadow.counters.judged == shadow.counters.findings == 3
    kept = list(pathlib.Path("assay_vllm").iterdir())
    assert len(kept) == 1 and judge_record.judge(kept[0]).verdict == "outside"  # the same call, the same file


def test_one_call_in_n():
    shadow = vllm_shadow.Shadow(3)
    served(calls()[1], shadow, times=8)
    assert (shadow.counters.calls, shadow.counters.judged) == (8, 2)


def test_warming_up_is_no_call():
    shadow, layer = vllm_shadow.Shadow(1), Attention(Impl(calls()[0], 7))
    shadow.attach(layer)
    layer.impl.forward(None, np.zeros(3), None, None, None, None, output=np.zeros(3))
    assert shadow.counters.calls == 0 and not shadow.counters.errors


@pytest.mark.parametrize(
    "change, why",
    [
        (dict(backend="OTHER"), "backend OTHER is not known"),
        (dict(isa="amx"), "K is packed for isa amx"),
    ],
)
def test_what_is_not_judged_is_counted_by_name(change, why):
    shadow = vllm_shadow.Shadow(1)
    served(calls()[0], shadow, **change)
    assert shadow.counters.not_judged == {why: 1} and shadow.counters.judged == 0 and why in str(shadow.counters)


def test_an_error_of_the_judge_does_not_reach_the_engine(monkeypatch):
    call, shadow = calls()[0], vllm_shadow.Shadow(1)
    assert (served(call, shadow, kv_cache=call["kv_cache"][:1]) == call["output"]).all()
    monkeypatch.setattr(judge_record, "keep", lambda *a: 1 / 0)
    assert (served(call, shadow, recorded=call["output"][::-1].copy()) == call["output"][::-1]).all()
    assert sum(shadow.counters.not_judged.values()) == 1 and list(shadow.counters.errors) == ["ZeroDivisionError: division by zero"]


def test_an_error_of_the_engine_reaches_its_caller():
    shadow, layer = vllm_shadow.Shadow(1), Attention(Impl(calls()[0], None))
    layer.impl.forward = lambda *a, **k: 1 / 0
    shadow.attach(layer)
    with pytest.raises(ZeroDivisionError):
        layer.impl.forward()


def test_a_cache_of_flash_attention():
    call, shadow = calls()[0], vllm_shadow.Shadow(1, max_rows=0)
    blocks, heads, slots, twice = call["kv_cache"].shape
    k, v = call["kv_cache"].reshape(blocks, heads, 2, -1).transpose(2, 0, 1, 3)
    k = k.reshape(blocks, heads, twice // 2, slots).transpose(0, 1, 3, 2)
    side_by_side = np.concatenate([k, v.reshape(k.shape)], axis=3)
    call["sliding_window"] = 0
    served(call, shadow, "FLASH_ATTN", side_by_side)
    served(call, shadow, "FLASH_ATTN", call["kv_cache"])
    assert (shadow.counters.judged, shadow.counters.findings) == (2, 1), shadow.counters


@pytest.fixture
def stub(monkeypatch):
    """A vLLM with one class."""
    made = type("Attention", (Attention,), {})
    for name in ("vllm", "vllm.model_executor", "vllm.model_executor.layers", "vllm.model_executor.layers.attention"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["vllm.model_executor.layers.attention"].Attention = made
    made.at_exit = []
    monkeypatch.setattr(vllm_shadow.atexit, "register", made.at_exit.append)
    return made


def test_the_entry_point_wraps_once_and_only_where_it_is_asked_to(stub, monkeypatch):
    vllm_shadow.register()
    assert "__init__" not in vars(stub)
    monkeypatch.setenv("ASSAY_VLLM_EVERY", "2")
    vllm_shadow.register()
    first = stub.__init__
    vllm_shadow.register()
    assert stub.__init__ is first and stub.at_exit == [first.assay_shadow.summary]
    assert (first.assay_shadow.every, first.assay_shadow.out, first.assay_shadow.max_rows) == (2, "assay_vllm", 8)
    call = calls()[1]
    layer = stub(Impl(call, call["output"]))
    layer.impl.forward(types.SimpleNamespace(isa="vec"), call["query"], None, None, call["kv_cache"], metadata(call), np.zeros_like(call["output"]))
    assert first.assay_shadow.counters.calls == 1


def test_a_folder_and_rows_of_its_own(stub, monkeypatch):
    """Rows are how many requests are copied, and how many rows are judged."""
    for name, value in (("EVERY", "1"), ("OUT", "there"), ("ROWS", "3")):
        monkeypatch.setenv(f"ASSAY_VLLM_{name}", value)
    vllm_shadow.register()
    seen, call = [], calls()[1]
    monkeypatch.setattr(vllm_shadow, "BACKENDS", {"CPU_ATTN": lambda *given: seen.append(given[-1]) or {}})
    monkeypatch.setattr(judging, "attention_call", lambda **given: seen.append(given["max_rows"]) or 1 / 0)
    stub(Impl(call, call["output"])).impl.forward("layer", call["query"], None, None, None, "metadata", np.zeros_like(call["output"]))
    assert seen == [3, 3] and stub.__init__.assay_shadow.out == "there"


@pytest.mark.parametrize("every", ["often", "1"])
def test_a_vllm_without_the_class_or_a_wrong_setting_ends_nothing(stub, monkeypatch, every):
    monkeypatch.setenv("ASSAY_VLLM_EVERY", every)
    del sys.modules["vllm.model_executor.layers.attention"].Attention
    vllm_shadow.register()
