# SPDX-License-Identifier: Apache-2.0
"""Parts of what looks into engines, that no verdict shows: what is not judged of vLLM, what is counted and logged, limits of dumps."""
import json
import logging
import shlex
import sys
import types
import zipfile

import numpy as np
import pytest
from assay import flashinfer, judging
from assay._engines import dump_files, dump_judge, flashinfer_calls, vllm_calls, vllm_shadow
from assay._judge import record as judge_record
from test_judge import library  # noqa: F401  (a fixture)
from test_judge_parts import NAN, report


def layer(backend, **changes):
    """The arguments of a call of a layer of vLLM, some of them changed."""
    impl = dict(attn_type="decoder", kv_cache_dtype="auto", scale=1.0, sinks=None, alibi_slopes=None, logits_soft_cap=0, sliding_window=None if backend == "FLASH_ATTN" else -1)
    metadata = dict(query_start_loc=np.array([0, 1]), seq_lens=np.array([3]), block_table=np.array([[0]]), causal=True)
    owner = dict(isa="vec", _k_scale=np.ones(1, np.float32), _v_scale=np.ones(1, np.float32), _k_scale_float=1.0, _v_scale_float=1.0)
    for held in (impl, metadata, owner):
        held.update({name: changes.pop(name) for name in list(changes) if name in held})
    metadata.update({name: changes.pop(name) for name in list(changes) if name != "supports_quant_query_input"})
    q, cache = np.zeros((1, 2, 8), np.float16), np.zeros((2, 1, 4, 16), np.uint8 if impl["kv_cache_dtype"] != "auto" else np.float16)
    spaces = [types.SimpleNamespace(**held) for held in ({**impl, **changes}, owner, metadata)]
    return vllm_calls.BACKENDS[backend](spaces[0], spaces[1], q, cache, q, spaces[2], 0)


@pytest.mark.parametrize("backend, changes, words", [
    *((b, dict(attn_type="encoder"), "attention of an encoder") for b in vllm_calls.BACKENDS), *((b, dict(causal=np.ones(1)), "causal is a tensor") for b in vllm_calls.BACKENDS),
    *((b, dict(block_table=np.array([[n]])), f"block_table names page {n} of 2") for b in vllm_calls.BACKENDS for n in (-1, 2)),
    *((b, {name: 1}, f"{name} is given") for b in ("CPU_ATTN", "side_by_side") for name in ("dynamic_causal", "encoder_cache")),
    *(("FLASH_ATTN", {name: 1}, f"{name} is given") for name in ("mm_prefix_query_range_tensor", "rswa_prefix_lens", "dcp_context_kv_lens")),
    ("FLASH_ATTN", dict(use_cascade=True), "a cascade over a common prefix"), ("CPU_ATTN", dict(isa="amx"), "K is packed for isa amx"),
    ("FLASH_ATTN", dict(kv_cache_dtype="fp8", supports_quant_query_input=True), "q is quantised"),
])  # fmt: skip
def test_what_is_not_judged_of_vllm_is_named(backend, changes, words):
    with pytest.raises(vllm_calls.NotJudged, match=words):
        layer(backend, **changes)
    assert judging.judge(**layer(backend)).rows == 1
    assert judging.judge(**layer("FLASH_ATTN", use_cascade=False, supports_quant_query_input=True)).rows == 1 and layer("CPU_ATTN", isa="vec16")


def shadowed(shadow, result, backend="CPU_ATTN"):
    """forward of a layer that gives this result, looked at."""
    made = types.SimpleNamespace(impl=types.SimpleNamespace(forward=lambda *a, **k: result), attn_backend=types.SimpleNamespace(get_name=lambda: backend))
    shadow.attach(made)
    return made.impl.forward


def test_what_a_shadow_says(caplog, monkeypatch):
    caplog.set_level(logging.INFO, "vllm.assay")
    shadow = vllm_shadow.Shadow(1)
    shadow.summary()
    assert not caplog.records  # nothing was called
    monkeypatch.setattr(vllm_shadow, "BETWEEN_SUMMARIES", 2)
    good, bad = report(verdict="inside", ratio=0.5), report()
    for n, said in enumerate([report(verdict="inside", ratio=NAN), good, good, report(verdict="inside", ratio=0.25)], 1):
        shadow.counters.calls += 1
        shadow._judge(types.SimpleNamespace(judge=lambda said=said: said))
        assert shadow.counters.judged == n and shadow.counters.worst == (0 if n == 1 else 0.5)
    summaries = [line.split("assay: ")[1] for line in caplog.text.splitlines() if " calls, " in line]
    assert summaries == [f"{n} calls, {n} judged, 0 findings, worst |error| / allowed 0.5" for n in (2, 4)]
    assert len(caplog.records) == 3 and caplog.records[0].getMessage().startswith("assay: the first judged call is inside")
    caplog.clear()
    monkeypatch.setattr(vllm_shadow, "BETWEEN_SUMMARIES", 1000)
    monkeypatch.setattr(judge_record, "keep", lambda call, report, folder: f"{folder}/o'ne")
    for _ in range(40):
        shadow._judge(types.SimpleNamespace(judge=lambda: bad))
    texts = [r.getMessage() for r in caplog.records]
    assert len(texts) == 30 and all(shlex.split(t.splitlines()[-1])[1:] == ["python3", "-m", "assay", "judge", "assay_vllm/o'ne"] for t in texts[:20]) and not any("reproduce" in t for t in texts[20:])
    assert shadow.counters.findings == 40 and shadow.files == 20 and shadow.counters.worst == 4
    caplog.clear()
    for _ in range(15):
        shadow._failed(ValueError("x" * 300))
    assert [r.getMessage() for r in caplog.records] == [f"assay: a call was not judged: ValueError: {'x' * 188}"] * 10
    shadow.counters.not_judged["why"] += 2
    assert str(shadow.counters).endswith(f"worst |error| / allowed 4; 2 not judged: why; 15 errors: ValueError: {'x' * 188}")


def test_a_shadow_looks_by_position_and_by_name():
    """The result is what forward returns where no output is given; an argument that is none is counted and not raised."""
    seen = []
    shadow = vllm_shadow.Shadow(2, max_rows=5)
    shadow._look = lambda name, impl, given, query, result: seen.append((name, sorted(given), query.tolist(), result))
    forward = shadowed(shadow, "result", "FLASH_ATTN")
    q = np.arange(3)
    for i in range(4):
        assert forward("layer", q, "key", "value", "cache", "metadata", output="out") == "result" and shadow.counters.calls == i + 1
    assert forward("layer", q, "key", "value", "cache", None) == "result" and shadow.counters.calls == 4
    assert seen == [("FLASH_ATTN", sorted(vllm_shadow._ARGUMENTS), [0, 1, 2], "result")] * 2
    assert forward(attn_metadata=1) == "result" and not shadow.counters.errors
    assert forward(attn_metadata=1) == "result" and list(shadow.counters.errors) == ["KeyError: 'query'"]


@pytest.mark.parametrize("every, layers", [(2, 2), (3, 3), (3, 2), (1, 2)])
def test_of_each_layer_one_call_in_so_many(every, layers):
    """However many layers are called in turn."""
    shadow, seen = vllm_shadow.Shadow(every), []
    shadow._look = lambda name, *given: seen.append(name)
    forwards = [shadowed(shadow, None, f"layer {i}") for i in range(layers)]
    for _ in range(6):
        for forward in forwards:
            forward(None, np.zeros(1), None, None, None, "metadata")
    assert shadow.counters.calls == 6 * layers and [seen.count(f"layer {i}") for i in range(layers)] == [6 // every] * layers


def test_a_layer_that_cannot_be_wrapped_ends_nothing():
    made, shadow = type("Attention", (), {}), vllm_shadow.Shadow(1)
    assert vllm_shadow.install(made, shadow) is shadow and vllm_shadow.install(made, vllm_shadow.Shadow(1)) is shadow
    made()
    assert list(shadow.counters.errors) == ["AttributeError: 'Attention' object has no attribute 'attn_backend'"]


SAFE = {"F8_E4M3": ("e4m3", np.uint8), "F8_E5M2": ("e5m2", np.uint8), "U8": (None, np.uint8), "BF16": (None, np.uint16), "I64": (None, np.int64), "BOOL": (None, bool), "F64": (None, float)}


@pytest.mark.parametrize("dtype", SAFE)
def test_types_of_safetensors(tmp_path, dtype):
    kind, stored = SAFE[dtype]
    array = np.arange(6).astype(stored).reshape(2, 3)
    header = json.dumps({"__metadata__": {}, "x": {"dtype": dtype, "shape": [2, 3], "data_offsets": [8, 8 + array.nbytes]}}).encode()
    path = tmp_path / "inputs.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8) + array.tobytes())
    (held,) = dump_files._tensors(path).values()
    assert held.dtype == stored and np.asarray(held).tolist() == array.tolist() and getattr(held, "kind", None) == kind and getattr(held[:1], "kind", None) == kind


def test_limits_of_a_dump(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    assert dump_files._tensors(tmp_path / "inputs.pt") == {}
    torch.save([torch.ones(3)], tmp_path / "list.pt")
    torch.save({"x": torch.ones(3), "y": 3, 4: torch.ones(1)}, tmp_path / "dict.pt")
    assert list(dump_files._tensors(tmp_path / "dict.pt")) == ["x"]
    with pytest.raises(dump_files.DumpError, match="list.pt holds no tensors by name"):
        dump_files._tensors(tmp_path / "list.pt")
    (tmp_path / "metadata.jsonl").write_text('{"a": 1}\n\n{"b": 2}\n \n')
    assert dump_files._last_record(tmp_path / "metadata.jsonl") == {"b": 2}
    monkeypatch.setattr(dump_files, "MOST_TEXT", 20)
    with pytest.raises(dump_files.DumpError, match="metadata.jsonl has 21 bytes, at most 20 are read"):
        dump_files._last_record(tmp_path / "metadata.jsonl")
    monkeypatch.setattr(dump_files, "MOST_TEXT", 21)
    assert dump_files._last_record(tmp_path / "metadata.jsonl") == {"b": 2}
    with zipfile.ZipFile(tmp_path / "many.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(1 << 20))
    monkeypatch.setattr(dump_files, "MOST_TENSORS", (1 << 20) - 1)
    with pytest.raises(dump_files.DumpError, match="many.pt holds 1048576 bytes, at most 1048575 are read"):
        dump_files._tensors(tmp_path / "many.pt")
    for version, refused in (("2.5.9", True), ("1.13.0+cpu", True), ("2.6.0", False), ("2.10", False), ("3.0", False)):
        monkeypatch.setattr(torch, "__version__", version)
        if refused:
            with pytest.raises(dump_files.DumpError, match=f"dict.pt is not read by torch {version.split('+')[0]}"):
                dump_files._tensors(tmp_path / "dict.pt")
        else:
            assert dump_files._tensors(tmp_path / "dict.pt")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(dump_files.DumpError, match="dict.pt needs torch, which is not installed"):
        dump_files._tensors(tmp_path / "dict.pt")


@pytest.mark.parametrize("text, names, defaults", [
    ("(self, a: int, b=2, /, c: str = 'x', *args, d, e=None, **more) -> None", ["self", "a", "b", "c"], {"b": 2, "c": "x", "e": None}),
    ("(a=[1], b=f())", ["a", "b"], {"a": [1]}), ("()", [], {}), ("<unavailable>", [], {}), (None, [], {}), ("(a=1", [], {}),
])  # fmt: skip
def test_names_and_defaults_of_a_signature(text, names, defaults):
    assert dump_files._signature(text) == (names, defaults)


def test_folders_and_arguments_have_their_order(tmp_path):
    """Without a session.jsonl names decide; arguments without a name are sorted by number."""
    names = [f"2026_pid7_f_call{i:04}" for i in range(12)]
    for name in reversed(names):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metadata.jsonl").write_text('{"function_name": "f", "function_signature": "(a)", "input_metadata": {"arg_12": 5, "arg_2": 4, "arg_0": 3, "kwarg_b": 6}}')
    assert [folder for folder, *_ in dump_files.folders(tmp_path)] == names
    call = dump_files.read(tmp_path, names[0])
    assert call.arguments == {"a": 3, "b": 6} and call.extra == (4, 5) and call.results == []


def test_of_two_files_of_tensors_the_one_that_executes_nothing_is_read(tmp_path, monkeypatch):
    (tmp_path / "f").mkdir()
    for name in ("metadata.jsonl", "inputs.pt", "inputs.safetensors", "outputs.pt"):
        (tmp_path / "f" / name).write_text('{"function_name": "f"}')
    read = []
    monkeypatch.setattr(dump_files, "_tensors", lambda path: read.append(path.name) or {})
    dump_files.read(tmp_path, "f")
    assert read == ["inputs.safetensors", "outputs.safetensors"]


@pytest.mark.parametrize("name", ["Wrapper.merge_state", "merge_states.run", "BatchDecodeWithPagedKVCacheWrapper.merge_state", "BatchDecodeWithPagedKVCacheWrapper.other", "run", "plan", "unknown", ""])
def test_a_call_of_another_name_is_not_known(name):
    with pytest.raises(flashinfer_calls.NotJudged, match=f"^{name} is not known$"):
        flashinfer_calls.Calls().calls_of(name, (1, 2), {}, (), [np.zeros(1)])


def test_a_call_is_known_by_its_folder_until_its_record_is_read(tmp_path):
    folders = {"20261101_pid7_merge_state_call3": ("merge_state", "7"), "x_pid12_Wrapper.run_call2_call10": ("Wrapper.run_call2", "12"), "renamed": ("renamed", None), "a_pid5_b": ("a_pid5_b", "5")}
    assert {folder: (dump_judge._name(folder), dump_judge._process(folder)) for folder in folders} == folders
    for folder in folders:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "metadata.jsonl").write_text("")
    assert {folder: (name, outcome) for folder, name, outcome, _ in dump_judge.judged(tmp_path)} == \
        {folder: (name, "metadata.jsonl holds no record") for folder, (name, _) in folders.items()}


def test_what_lies_inside_a_call_began_and_ended_in_it():
    listed = [(f"_pid{pid}_{name}_", first, last) for pid, name, first, last in
              ((7, "outer", 2, 9), (7, "inner", 3, 4), (7, "before", 1, 4), (7, "behind", 8, 10), (7, "as long", 2, 9), (8, "inner", 3, 4))]  # fmt: skip
    assert dump_judge._within(listed, *listed[0]) == ["_pid7_inner_"]


def test_the_depth_of_lists_in_a_dump():
    """Lists up to eight deep inside a value are read; what is deeper stays as it is described."""
    def nested(depth, value):
        for _ in range(depth):
            value = {"type": "list", "items": [value]}
        return value

    def plain(value):
        return plain(value[0]) if isinstance(value, list) else value

    tensor = {"type": "torch.Tensor", "tensor_key": "x"}
    assert plain(dump_files._value(nested(8, tensor), {"x": 3})) == 3 and plain(dump_files._value(nested(9, tensor), {"x": 3})) == tensor


def test_what_a_watch_says(caplog, monkeypatch):
    watch = flashinfer.Watch(1, "o'ut", None, 8)
    monkeypatch.setattr(judge_record, "keep", lambda call, report, folder: f"{folder}/one")
    for said, worst in ((report(verdict="inside", ratio=NAN), 0), (report(verdict="inside", ratio=0.5), 0.5), (report(verdict="inside", ratio=0.25), 0.5)):
        watch._judge("run", types.SimpleNamespace(judge=lambda said=said: said))
        assert watch.worst == worst and not caplog.records
    for _ in range(40):
        watch._judge("run", types.SimpleNamespace(judge=report))
    texts = [r.getMessage() for r in caplog.records]
    assert len(texts) == 20 and all(t.startswith("assay: run: outside") and shlex.split(t.splitlines()[-1])[-1] == "o'ut/one" for t in texts)
    assert str(watch) == "0 calls, 43 judged, 40 findings, worst |error| / allowed 4, not judged {}, errors {}"
    caplog.clear()
    for _ in range(15):
        watch._failed(ValueError("x" * 300))
    assert len(caplog.records) == 10 and watch.errors == {f"ValueError: {'x' * 188}": 15}
