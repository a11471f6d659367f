# SPDX-License-Identifier: Apache-2.0
"""What a FlashInfer wrapper was planned with and ran on is judged as the same call in the plainest layout."""
import numpy as np
import pytest
from assay import judging
from assay._engines import flashinfer_calls
from drawn_calls import FP8, Logical, bits, plainest, starts
from hypothesis import given, settings
from hypothesis import strategies as st
from test_judge import library  # noqa: F401  (a fixture)
from test_judge_drawn import drawn, numbers, rows_of

DECODE, GRAPHS = "BatchDecodeWithPagedKVCacheWrapper", "CUDAGraphBatchDecodeWithPagedKVCacheWrapper"
PREFILL, RAGGED = "BatchPrefillWithPagedKVCacheWrapper", "BatchPrefillWithRaggedKVCacheWrapper"
SLOTS = 4


class Marked(np.ndarray):
    """Bytes of fp8, as a dump has them."""

    kind = None


def marked(array, dtype):
    array = array.view(Marked)
    array.kind = dtype if dtype in FP8 else None
    return array


@st.composite
def wrapped(draw):
    """(Logical, wrapper, plan, run, made)."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    wrapper = draw(st.sampled_from([DECODE, PREFILL, RAGGED, GRAPHS]))
    decode = wrapper in (DECODE, GRAPHS)
    kv_heads, group, dim, requests = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.sampled_from([8, 16])), draw(st.integers(1, 3))
    each = draw(st.integers(1, 2))
    queries = [each if decode else draw(st.integers(0, 3)) for _ in range(requests)]
    keys = [draw(st.integers(0, 9)) for _ in range(requests)]
    dtype = draw(st.sampled_from(["fp16", "bf16"]))
    kv_dtype = dtype if wrapper == RAGGED else draw(st.sampled_from([dtype, *FP8]))
    shape, heads = (sum(keys), kv_heads, dim), kv_heads * group
    tensors = [bits(rng, (sum(queries), heads, dim), dtype) for _ in range(2)] + [rng.standard_normal((sum(queries), heads)).astype(np.float32)]
    masks = [rng.integers(0, 2, (n, m)).astype(bool) for n, m in zip(queries, keys)] if wrapper == PREFILL and draw(st.booleans()) else []
    call = Logical(dtype, kv_dtype, dtype, queries, keys, *tensors, bits(rng, shape, kv_dtype), bits(rng, shape, kv_dtype), {}, {}, masks)
    plan = {"sm_scale": draw(st.sampled_from([None, 0.25, 1.0])), "logits_soft_cap": draw(st.sampled_from([None, 0.0, 1.5]))}
    run = {name: draw(st.sampled_from([None, 0.5, np.float32([2.0]), np.array(3.0)])) for name in ("q_scale", "k_scale") if wrapper != RAGGED}
    if kv_dtype in FP8:
        run["v_scale"] = draw(st.sampled_from([None, 1.0, 0.25, 2.0]))
    if draw(st.booleans()):
        run["sinks"] = rng.standard_normal(heads).astype(np.float32)
    causal = decode or draw(st.booleans())
    if not decode or draw(st.booleans()):
        plan["causal"] = causal if not decode else draw(st.booleans())  # decode's plan has no such word, and means it
    window = draw(st.integers(-1, 4))
    if draw(st.booleans()):
        plan["window_left"], run["window_left"] = draw(st.integers(-1, 4)), window
    else:
        plan["window_left"] = window
    scale = lambda value: 1.0 if value is None else float(np.ravel(value)[0])  # noqa: E731
    call.options = dict(
        sm_scale=(dim**-0.5 if plan["sm_scale"] is None else plan["sm_scale"]) * scale(run.get("q_scale")) * scale(run.get("k_scale")),
        logits_soft_cap=plan["logits_soft_cap"] or 0, sinks=run.get("sinks"), window_left=window, lse_base=2, empty_lse="either",
    )  # fmt: skip
    if not masks:
        call.options["causal"] = causal
    if scale(run.get("v_scale")) != 1:
        call.scales = {"v_scale": np.float32([run["v_scale"]])}
    return call, wrapper, plan, run, each


def pool_of(draw, call):
    """(paged_kv_cache, indices, indptr, last_page_len, layout)."""
    counts = [-(-n // SLOTS) for n in call.keys]
    ids = np.array(draw(st.permutations(range(sum(counts) + 1))), np.int32)
    pages = []
    for array in (call.k, call.v):
        pool = np.full((len(ids), SLOTS, *array.shape[1:]), 0x7F, array.dtype)
        for r, n in enumerate(call.keys):
            for t in range(n):
                pool[ids[starts(counts)[r] + t // SLOTS], t % SLOTS] = call.of_request(array, r)[t]
        pages.append(pool)
    layout = draw(st.sampled_from(["NHD", "HND"]))
    k, v = (p if layout == "NHD" else np.ascontiguousarray(p.swapaxes(1, 2)) for p in pages)
    whole = draw(st.booleans())
    held = marked(np.stack([k, v], 1), call.kv_dtype) if whole else tuple(marked(x, call.kv_dtype) for x in (k, v))
    last = np.array([n - (c - 1) * SLOTS if c else 0 for n, c in zip(call.keys, counts)], np.int32)
    return held, ids[: sum(counts)], starts(counts).astype(np.int32), last, layout


@settings(drawn, max_examples=250)
@given(wrapped(), st.data())
def test_a_run_is_judged_as_its_plainest_call(made, data):
    call, wrapper, plan, run, each = made
    calls = flashinfer_calls.Calls("flash")
    run = {**run, "q": call.q}
    if wrapper == RAGGED:
        plan, run = {**plan, "qo_indptr": starts(call.queries), "kv_indptr": starts(call.keys)}, {**run, "k": call.k, "v": call.v}
        constructor = {}
    else:
        run["paged_kv_cache"], indices, indptr, last, layout = pool_of(data.draw, call)
        decode = wrapper in (DECODE, GRAPHS)
        prefix = "" if decode else "paged_kv_"
        plan |= {f"{prefix}indices": indices, f"{prefix}indptr": indptr, f"{prefix}last_page_len": last, "page_size": SLOTS, "num_kv_heads": call.k.shape[1]}
        constructor = {"kv_layout": layout} if data.draw(st.booleans()) or call.k.shape[1] == SLOTS else {}
        if decode:
            (plan if data.draw(st.booleans()) else run)["q_len_per_req"] = each
        else:
            plan["qo_indptr"] = starts(call.queries)
            if call.masks:
                flat = np.concatenate([m.reshape(-1) for m in call.masks])
                bytes_of = lambda: np.concatenate([np.packbits(m.reshape(-1), bitorder="little") for m in call.masks])  # noqa: E731
                plan |= {"custom_mask": flat} if data.draw(st.booleans()) else {"packed_custom_mask": bytes_of()}
    for method, arguments in (("__init__", constructor), (data.draw(st.sampled_from(["plan", "begin_forward"])), plan)):
        for object_of in (2, 1):  # another one is made and planned in front of it, and differs
            with pytest.raises(flashinfer_calls.Setup):
                calls.calls_of(f"{wrapper}.{method}", object_of, arguments if object_of == 1 else {**arguments, "sm_scale": 9.0, "causal": False}, (), [])
    results = [call.out, call.lse] if data.draw(st.booleans()) else [call.out]
    if len(results) == 2 and call.lse.shape[0] == call.lse.shape[1] > 1:
        results = [call.out]  # a square one is refused
    (found,) = calls.calls_of(f"{wrapper}.run", 1, run, (), results)
    tensors, options = plainest(call)
    given_lse = {} if len(results) == 2 else {"lse": None, "lse_layout": None}
    expected = judging.attention_call(*tensors, **{**options, **given_lse, "like": "flash"})
    assert numbers(found.judge()) == numbers(expected.judge())
    assert rows_of(found) == rows_of(expected)


CASES = [  # plan, run, constructor, what is said
    (dict(pos_encoding_mode="ROPE_LLAMA"), {}, {}, "positions are encoded in the kernel"),
    *((dict.fromkeys([name], 1), {}, {}, f"{name} is given") for name in ("prefix_len_ptr", "token_pos_in_items_ptr", "v_indptr", "o_indptr")),
    *(({}, {name: 1}, {}, f"{name} is given")
      for name in ("kv_cache_sf", "skip_softmax_threshold_scale_factor", "o_scale", "use_fp16_softmax", "uses_spcompress")),
    (dict(use_fp16_qk_reduction=True), {}, {}, "sums of 16 bits"),
    (dict(window_right=3), {}, {}, "window_right is given"),
    ({}, {}, dict(jit_args=["mine"]), "a kernel of the caller's own"),
    ({}, dict(q_scale=np.ones(2)), {}, "q_scale is a tensor of more than one number"),
    ({}, dict(v_scale=2.0), {}, "v_scale is 2: O is rounded before and after it"),
]  # fmt: skip


@pytest.mark.parametrize("plan, run, made, words", CASES)
def test_what_is_not_judged_is_named(plan, run, made, words):
    """And the same call without it is judged."""
    q, cache = np.zeros((1, 2, 8), np.float16), np.zeros((1, 2, 4, 1, 8), np.float16)
    whole = dict(indptr=[0, 1], indices=[0], last_page_len=[3], page_size=4, num_kv_heads=1, window_right=0)
    for more, ran, constructor in ((plan, run, made), ({}, dict(o_scale=False), {})):
        calls = flashinfer_calls.Calls()
        for method, arguments in (("__init__", {"kv_layout": "NHD", **constructor}), ("plan", {**whole, **more})):
            with pytest.raises(flashinfer_calls.Setup):
                calls.calls_of(f"{DECODE}.{method}", 1, arguments, (), [])
        asked = lambda: calls.calls_of(f"{DECODE}.run", 1, {"q": q, "paged_kv_cache": cache, **ran}, (), [q])  # noqa: B023, E731
        if constructor or more or ran is run:
            with pytest.raises(flashinfer_calls.NotJudged, match=words):
                asked()
        else:
            assert asked()[0].judge().passed
    with pytest.raises(flashinfer_calls.NotJudged, match="a kernel of the caller's own"):
        calls.calls_of(f"{DECODE}.run", 1, {"q": q, "paged_kv_cache": cache}, ("more",), [q])


@pytest.mark.parametrize("wrapper, made, like", [
    (DECODE, {"backend": "auto"}, "flashinfer_cuda_cores"), (DECODE, {"backend": "fa2"}, "flashinfer_cuda_cores"), (DECODE, {"backend": "fa3"}, "flash"),
    (DECODE, {"backend": "fa2", "use_tensor_cores": True}, "flashinfer_fa2"), (DECODE, {"use_tensor_cores": True}, "flash"), (DECODE, {}, "flash"),
    (PREFILL, {"backend": "fa2"}, "flashinfer_fa2"), (PREFILL, {"backend": "auto"}, "flash"), (RAGGED, {}, "flash"),
])  # fmt: skip
def test_the_arithmetic_of_a_backend(wrapper, made, like):
    assert flashinfer_calls._like(wrapper, made) == like


@pytest.mark.parametrize("made, slots, heads, shape, layout", [
    ("HND", 4, 2, (4, 2), "HND"), ("NHD", 4, 2, (2, 4), "NHD"), (None, 4, 2, (4, 2), "NHD"), (None, 4, 2, (2, 4), "HND"), (None, 4, 4, (4, 4), None), (None, 4, 2, (5, 2), None),
])  # fmt: skip
def test_the_layout_of_a_cache(made, slots, heads, shape, layout):
    pool = np.zeros((1, 2, *shape, 8), np.float16)
    for kv in (pool, (pool[:, 0], pool[:, 1])):
        arguments = {"kv_layout": made} if made else {}, {"page_size": slots, "num_kv_heads": heads}, kv
        if layout is None:
            with pytest.raises(flashinfer_calls.NotJudged, match="kv_layout"):
                flashinfer_calls._layout(*arguments)
        else:
            assert flashinfer_calls._layout(*arguments) == layout
