# SPDX-License-Identifier: Apache-2.0
"""What a vLLM layer of any backend holds is judged as the same call in the plainest layout."""
import types

import numpy as np
from assay import judging
from assay._engines import vllm_calls
from drawn_calls import FP8, Logical, bits, plainest, starts
from hypothesis import given, settings
from hypothesis import strategies as st
from test_judge import library  # noqa: F401  (a fixture)
from test_judge_drawn import drawn, numbers, rows_of

SLOTS = 4


@st.composite
def layers(draw):
    """(Logical, what a layer fixes)."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    kv_heads, group, dim, requests = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.sampled_from([8, 16])), draw(st.integers(1, 4))
    queries = [draw(st.integers(1, 3)) for _ in range(requests)]
    keys = [n + draw(st.integers(0, 8)) for n in queries]
    dtype = draw(st.sampled_from(["fp16", "bf16"]))
    kv_dtype, rows, heads = draw(st.sampled_from([dtype, *FP8])), sum(queries), kv_heads * group
    scales = {name: rng.uniform(0.5, 2, 1).astype(np.float32) for name in ("k_scale", "v_scale") if kv_dtype in FP8}
    options = {name: rng.uniform(0, 1, heads).astype(np.float32) if draw(st.booleans()) else None for name in ("alibi_slopes", "sinks")}
    options.update(sm_scale=draw(st.sampled_from([0.25, 1.0])), logits_soft_cap=draw(st.sampled_from([0.0, 1.5])), causal=draw(st.booleans()))
    left = draw(st.integers(-1, 5))
    options.update(window_left=left, window_right=-1 if options["causal"] else left)
    shape = (sum(keys), kv_heads, dim)
    q, out = bits(rng, (rows, heads, dim), dtype), bits(rng, (rows, heads, dim), dtype)
    call = Logical(dtype, kv_dtype, dtype, queries, keys, q, out, None, bits(rng, shape, kv_dtype), bits(rng, shape, kv_dtype), options, scales, [])
    return call, draw(st.permutations(range(sum(-(-n // SLOTS) for n in keys) + 1)))


def pages_of(call, order, lay):
    """(cache [blocks, kv heads, slots, 2 dim] as `lay` puts a block's K and V, block table with garbage behind each request's)."""
    heads, dim = call.k.shape[1:]
    table = np.full((len(call.keys), max(-(-n // SLOTS) for n in call.keys) + 1), -7, np.int32)
    cache = np.full((len(order), heads, SLOTS * 2 * dim), 0x7F, call.k.dtype)
    free = list(order)
    for r, n in enumerate(call.keys):
        for page in range(-(-n // SLOTS)):
            table[r, page], part = free.pop(), slice(page * SLOTS, min(n, (page + 1) * SLOTS))
            k, v = (np.zeros((SLOTS, heads, dim), call.k.dtype) for _ in range(2))
            k[: part.stop - part.start], v[: part.stop - part.start] = call.of_request(call.k, r)[part], call.of_request(call.v, r)[part]
            cache[table[r, page]] = lay(k, v)
    return cache.reshape(len(order), heads, SLOTS, 2 * dim), table


def apart(k, v):
    """CPU_ATTN: K of [dim, slot], then V of [slot, dim]."""
    return np.concatenate([k.transpose(1, 2, 0).reshape(k.shape[1], -1), v.transpose(1, 0, 2).reshape(k.shape[1], -1)], 1)


def beside(k, v):
    return np.concatenate([k, v], 2).transpose(1, 0, 2).reshape(k.shape[1], -1)


def layer_of(call, backend):
    left = call.options["window_left"]
    impl = types.SimpleNamespace(
        attn_type="decoder", kv_cache_dtype={"e4m3": "fp8", "e5m2": "fp8_e5m2"}.get(call.kv_dtype, "auto"), scale=call.options["sm_scale"],
        sinks=call.options["sinks"], alibi_slopes=call.options["alibi_slopes"], logits_soft_cap=call.options["logits_soft_cap"],
        sliding_window=((left, 0) if left >= 0 else None) if backend == "FLASH_ATTN" else left + 1 if left >= 0 else -1,
    )  # fmt: skip
    scales = {name: call.scales.get(name, np.ones(1, np.float32)) for name in ("k_scale", "v_scale")}
    layer = types.SimpleNamespace(isa="vec", **{f"_{name}": x for name, x in scales.items()}, **{f"_{n}_float": float(x[0]) for n, x in scales.items()})
    return impl, layer


@settings(drawn, max_examples=150)
@given(layers(), st.sampled_from(sorted(vllm_calls.BACKENDS)), st.integers(0, 4))
def test_a_layer_is_judged_as_its_plainest_call(made, backend, requests):
    call, order = made
    impl, layer = layer_of(call, backend)
    cache, table = pages_of(call, order, apart if backend == "CPU_ATTN" else beside)
    metadata = types.SimpleNamespace(query_start_loc=starts(call.queries), seq_lens=np.array(call.keys), block_table=table, causal=call.options["causal"])
    arguments = vllm_calls.BACKENDS[backend](impl, layer, call.q, cache, call.out, metadata, requests)
    found = judging.attention_call(**arguments)
    tensors, options = plainest(call)
    expected = judging.attention_call(*tensors, **{**options, "lse": None, "lse_layout": None, "like": arguments["like"]})
    if requests in (0, len(call.keys)) or requests > len(call.keys):
        assert numbers(found.judge()) == numbers(expected.judge())
        assert rows_of(found) == rows_of(expected)
    else:
        assert len(arguments["seq_lens"]) == requests
        looked_at = sorted({i * (len(call.keys) - 1) // max(requests - 1, 1) for i in range(requests)})
        rows = [row for r in looked_at for row in range(starts(call.queries)[r], starts(call.queries)[r + 1])]
        assert rows_of(found) == [rows_of(expected)[row] for row in rows]
