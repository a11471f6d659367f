# SPDX-License-Identifier: Apache-2.0
"""Layers of vLLM served by our backend, over a stand-in for vLLM: any batch is inside by the judge, and the rest stays with vLLM."""
import importlib
import logging
import sys
import types

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
pytest.importorskip("hypothesis")
assay = pytest.importorskip("assay")
import vllm_stub
from assay_torch import paged_attention, tree_attention, vllm_backend
from hypothesis import given, settings
from hypothesis import strategies as st
from test_drawn import drawn

DIM, SLOTS = 64, 16
FP8 = {"fp8": torch.float8_e4m3fn, "fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2}


@pytest.fixture(scope="module")
def vllm_cpu():
    """assay_torch.vllm_cpu over the stand-in; the model's type is that of `dtype` of the module."""
    with pytest.MonkeyPatch.context() as patch:
        made, _ = vllm_stub.modules(torch.bfloat16)
        for name, module in made.items():
            patch.setitem(sys.modules, name, module)
        patch.delitem(sys.modules, "assay_torch.vllm_cpu", raising=False)
        patch.setenv("ASSAY_VLLM_BACKEND", "1")
        yield importlib.import_module("assay_torch.vllm_cpu")
        sys.modules.pop("assay_torch.vllm_cpu", None)


@st.composite
def batches(draw):
    """(options of a layer, tokens and keys of each request, causal, seed): decodes first, of up to 8 tokens each."""
    kv_heads, group = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    g = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    alike = lambda: torch.rand(kv_heads * group, generator=g) if draw(st.booleans()) else None  # noqa: E731
    causal = draw(st.integers(0, 3)) > 0
    layer = dict(
        num_heads=kv_heads * group, head_size=DIM, scale=draw(st.sampled_from([0.125, 0.25])), num_kv_heads=kv_heads, alibi_slopes=alike() if causal else None,
        sliding_window=draw(st.sampled_from([-1, 1, 5, 20])) if causal else -1, kv_cache_dtype=draw(st.sampled_from(["auto", "bfloat16", *FP8])),
        logits_soft_cap=draw(st.sampled_from([0, 2.0])), sinks=alike(),
    )  # fmt: skip
    decodes = draw(st.lists(st.integers(1, 8) if draw(st.booleans()) else st.just(1), max_size=3))
    tokens = decodes + draw(st.lists(st.integers(9, 20), min_size=0 if decodes else 1, max_size=2))
    return layer, tokens, [n + draw(st.integers(0, 40)) for n in tokens], causal, g


def filled(impl, layer, g, keys):
    """(cache, block table, K and V of each request as they are held, K and V behind one another)."""
    pages = [-(-n // SLOTS) for n in keys]
    order = torch.randperm(sum(pages) + 2, generator=g).tolist()
    table = torch.full((len(keys), max(pages) + 1), 1 << 30, dtype=torch.int32)
    slots = []
    for r, n in enumerate(keys):
        table[r, : pages[r]] = torch.tensor([order.pop() for _ in range(pages[r])], dtype=torch.int32)
        slots += [int(table[r, t // SLOTS]) * SLOTS + t % SLOTS for t in range(n)] + [-1] * (r == 0)
    slots = torch.tensor(slots)
    fp8 = FP8.get(impl.kv_cache_dtype)
    key, value = (3 * torch.randn(len(slots) + 2, impl.num_kv_heads, DIM, generator=g).bfloat16() for _ in "kv")
    value[0, 0, 1] = 1e6 if fp8 else 3  # what fp8 cannot hold becomes its largest
    cache = torch.full((sum(pages) + 2, impl.num_kv_heads, SLOTS, 2 * DIM), 0x7F, dtype=torch.uint8) if fp8 else torch.full(
        (sum(pages) + 2, impl.num_kv_heads, SLOTS, 2 * DIM), torch.nan, dtype=torch.bfloat16)
    impl.do_kv_cache_update(layer, key, value, cache, slots)
    live = [x[: len(slots)][slots >= 0] for x in (key, value)]
    if fp8:
        most = torch.finfo(fp8).max
        live = [(x.float() / scale).clamp(-most, most).to(fp8) for x, scale in zip(live, (layer._k_scale, layer._v_scale))]
    return cache, table, live


def starts(counts):
    return torch.tensor([0, *counts]).cumsum(0)


@pytest.mark.parametrize("name", ["1", "tree"])
@settings(drawn, max_examples=25)
@given(batch=batches())
def test_a_batch_of_a_layer_is_right(vllm_cpu, name, batch):
    options, tokens, keys, causal, g = batch
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_VLLM_BACKEND", name)
        impl = vllm_cpu.AssayCPUImpl(**options)
    assert impl.refused is None and impl.assay_cache == "side_by_side" and impl.attention is (tree_attention if name == "tree" else paged_attention)
    layer = types.SimpleNamespace(_k_scale=torch.tensor(0.5), _v_scale=torch.tensor(2.0))
    cache, table, (k, v) = filled(impl, layer, g, keys)
    query = torch.randn(sum(tokens) + 2, impl.num_heads, DIM, generator=g).bfloat16()  # the last ones are padding
    common = types.SimpleNamespace(query_start_loc=starts(tokens).int(), seq_lens=torch.tensor(keys, dtype=torch.int32), block_table=table, causal=causal)
    builder = vllm_cpu.AssayCPUMetadataBuilder()
    made = builder.build(3, common, len(tokens) > 1)
    assert builder.asked == (3, len(tokens) > 1)
    assert isinstance(made, vllm_cpu.AssayCPUMetadata) and made.num_decodes == sum(n <= 8 for n in tokens)
    out = torch.full((len(query), impl.num_heads * DIM), 7.0, dtype=torch.bfloat16)
    assert impl.forward(layer, query, None, None, cache, made, out) is out
    rows = out.view(len(query), impl.num_heads, DIM)
    assert (rows[sum(tokens) :] == 7).all()
    scales = dict(k_scale=[0.5], v_scale=[2.0]) if options["kv_cache_dtype"] in FP8 else {}
    window_left = max(options["sliding_window"], 0) - 1
    report = assay.judge(
        rows[: sum(tokens)], query[: sum(tokens)], (k, v), qo_indptr=starts(tokens), kv_indptr=starts(keys), causal=causal, sm_scale=options["scale"],
        window_left=window_left, logits_soft_cap=options["logits_soft_cap"], alibi_slopes=options["alibi_slopes"], sinks=options["sinks"], like="flash", **scales,
    )  # fmt: skip
    assert report.passed, report


@pytest.mark.parametrize("change, words", [
    (dict(head_size=80), "head_dim is 80"), (dict(attn_type="encoder"), "attention of an encoder"), (dict(kv_cache_dtype="int8"), "kv_cache_dtype is int8, supported are auto and fp8"),
    (dict(kv_cache_dtype="float16"), "kv_cache_dtype is float16"), (dict(num_heads=3), "num_qo_heads is 3"),
])  # fmt: skip
def test_what_is_not_ours_stays_with_vllm(vllm_cpu, caplog, change, words):
    caplog.set_level(logging.INFO, "vllm.assay_torch")
    vllm_backend._said.clear()
    for _ in range(2):
        impl = vllm_cpu.AssayCPUImpl(**{**dict(num_heads=4, head_size=DIM, scale=1.0, num_kv_heads=2), **change})
    assert words in impl.refused and not hasattr(impl, "assay_cache")
    (said,) = caplog.records
    assert said.levelno == logging.WARNING and said.getMessage() == f"assay: layers stay with CPU_ATTN: {impl.refused}"
    assert impl.do_kv_cache_update(*"abcde") == ("its own", tuple("abcde")) and impl.forward(*"abcdefghi") == ("its own", tuple("abcdefghi"))


def test_calls_that_are_not_ours_stay_with_vllm(vllm_cpu, caplog):
    caplog.set_level(logging.INFO, "vllm.assay_torch")
    vllm_backend._said.clear()
    impl = vllm_cpu.AssayCPUImpl(num_heads=4, head_size=DIM, scale=1.0, num_kv_heads=2)
    assert [r.getMessage().split(" of ")[0] for r in caplog.records] == ["assay: decode by paged_attention"]
    for metadata, *scales in ((None, None, None), ("metadata", 1, None), ("metadata", None, 1)):
        given = ("layer", *"qkvc", metadata, "out", *scales)
        assert impl.forward(*given) == ("its own", given)
    assert vllm_cpu.AssayCPUBackend.get_impl_cls() is vllm_cpu.AssayCPUImpl and vllm_cpu.AssayCPUBackend.get_builder_cls() is vllm_cpu.AssayCPUMetadataBuilder
    assert vllm_cpu.AssayCPUMetadataBuilder.reorder_batch_threshold == 8


@pytest.mark.parametrize("value, wanted", [(None, None), ("", None), ("0", None), ("1", "1"), ("tree", "tree")])
@pytest.mark.parametrize("is_cpu", [True, False])
def test_the_entry_point_registers_where_it_is_asked_to(monkeypatch, caplog, value, wanted, is_cpu):
    made, registered = vllm_stub.modules(torch.bfloat16, is_cpu)
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delenv("ASSAY_VLLM_BACKEND", raising=False)
    if value is not None:
        monkeypatch.setenv("ASSAY_VLLM_BACKEND", value)
    vllm_backend._said.clear()
    vllm_backend.register()
    assert vllm_backend.wanted() == wanted
    assert registered == ({"CPU_ATTN": "assay_torch.vllm_cpu.AssayCPUBackend"} if wanted and is_cpu else {})
    assert len(caplog.records) == (wanted is not None and not is_cpu)
    monkeypatch.setenv("ASSAY_VLLM_BACKEND", "flat")
    with pytest.raises(ValueError, match="ASSAY_VLLM_BACKEND is 'flat', expected 1 or tree"):
        vllm_backend.register()
