# SPDX-License-Identifier: Apache-2.0
"""Inputs that are made for a function: what each regime says of them holds; and what each stage asks with them."""
import dataclasses
import math
import re
import types

import numpy as np
import pytest
from assay import arithmetic
from assay._callable import counts, drawn, fitting, invariance, regimes, stages
from assay._callable.counts import codes_of
from assay._callable.shape import Shape
from assay.elements import to_float32
from hypothesis import given, settings
from hypothesis import strategies as st

SHAPES = ("batch=13,heads=8/4,head_dim=64,keys=100,page_size=8", "batch=3,heads=2/1,head_dim=16,keys=37,page_size=0", "batch=4,heads=6/3,head_dim=32,keys=64,page_size=16,q_len=3,dtype=fp16")


def shapes():
    heads = st.tuples(st.integers(1, 3), st.integers(1, 3)).map(lambda n: (n[0] * n[1], n[1]))
    made = lambda batch, heads, dim, keys, page, q_len, dtype: Shape(batch, *heads, dim, keys, page, min(q_len, keys), dtype)  # noqa: E731
    return st.builds(made, st.integers(1, 14), heads, st.sampled_from([2, 8, 16]), st.integers(1, 50), st.sampled_from([0, 1, 4, 16]), st.integers(1, 4), st.sampled_from(["bf16", "fp16"]))


def rows(call, name, request):
    """Keys or values of a request in their order, [keys, heads, dims]."""
    pool = call.values(name)
    if call.page_table is None:
        return pool[request, : call.seq_lens[request]]
    pages = call.page_table[request, : -(-int(call.seq_lens[request]) // call.shape.page_size)]
    return pool[pages].reshape(-1, *pool.shape[2:])[: call.seq_lens[request]]


def weights(call, request):
    """Of the newest token, [query heads, keys]."""
    group = call.shape.num_qo_heads // call.shape.num_kv_heads
    q = call.values("q").reshape(call.shape.batch, call.shape.q_len, -1, call.shape.head_dim)[request, -1]
    scores = np.einsum("hd,khd->hk", q, np.repeat(rows(call, "k_cache", request), group, 1)) * call.sm_scale
    shares = np.exp(scores - scores.max(1, keepdims=True))
    return shares / shares.sum(1, keepdims=True)


@settings(max_examples=60)
@given(shapes(), st.sampled_from(list(regimes.REGIMES)), st.integers(0, 9))
def test_tensors_have_their_shapes_and_one_regime_alone_shares_pages(shape, regime, seed):
    call = drawn.inputs(shape, regime, seed)
    slots, columns = shape.page_size or shape.keys, -(-shape.keys // (shape.page_size or shape.keys))
    many = regime == "strong_last" and 1100 * slots * shape.num_kv_heads * shape.head_dim <= 1 << 25
    pages = shape.batch * columns + (0 if shape.page_size == 0 else max(3, 1100 - shape.batch * columns) if many else 3)
    assert call.k_cache.shape == call.v_cache.shape == (pages, slots, shape.num_kv_heads, shape.head_dim)
    assert call.q.shape == (shape.batch, *([] if shape.q_len == 1 else [shape.q_len]), shape.num_qo_heads, shape.head_dim)
    assert call.seq_lens.shape == (shape.batch,) and call.sm_scale == {"small_scale": 0.375, "large_scale": 2.5}.get(regime, 1) / math.sqrt(shape.head_dim)
    low = 0 if regime in ("empty", "one_active") else shape.q_len
    assert all(low <= n <= shape.keys and n != 0 < shape.q_len or n == 0 == low for n in call.seq_lens)
    used = np.zeros((pages, slots), bool)
    if shape.page_size == 0:
        assert call.page_table is None
        for r, n in enumerate(call.seq_lens):
            used[r, :n] = True
    else:
        assert call.page_table.shape == (shape.batch, columns) and call.page_table.dtype == np.int32
        own = [call.page_table[r, : -(-int(n) // slots)] for r, n in enumerate(call.seq_lens)]
        mine = np.concatenate(own)
        assert (len(set(mine)) == len(mine) or regime == "shared_pages") and 0 <= mine.min(initial=0) and mine.max(initial=0) < pages
        behind = {int(page) for r, pages_of in enumerate(own) for page in call.page_table[r, len(pages_of) :]}
        assert not behind & set(mine.tolist()) and len(behind) <= 1
        for n, of in zip(call.seq_lens, own):
            for at in range(int(n)):
                used[of[at // slots], at % slots] = True
    key, value = {"nan_behind": (np.nan, np.nan), "counts": (0, 0)}.get(regime, (8, 24))
    for name, expected in (("k_cache", key), ("v_cache", value)):
        there = call.values(name)
        assert np.array_equal(there[~used], np.full_like(there[~used], expected), equal_nan=True) and np.isfinite(there[used]).all()


@pytest.mark.parametrize("text", SHAPES)
def test_regimes_are_as_they_say(text):
    calls = {name: drawn.inputs(text, name, 4) for name in regimes.REGIMES}
    shape = Shape.parse(text)
    every = lambda call, name: np.concatenate([rows(call, name, r).reshape(-1) for r in range(shape.batch)])  # noqa: E731
    deviations = {"ordinary": (1, 1), "lengths": (1, 1), "large_scores": (32, 1), "small": (0.01, 0.1)}
    for name, (score, value) in deviations.items():
        each = math.sqrt(score)
        assert [np.std(of) for of in (calls[name].values("q"), every(calls[name], "k_cache"), every(calls[name], "v_cache"))] == pytest.approx([each, each, value], rel=0.2)
    for name, at in (("strong_last", -1), ("strong_first", 0)):
        for r in range(shape.batch):
            assert (weights(calls[name], r)[:, at] > 0.5).all(), name
    for name in ("ragged", "strong_edges", "short", "longest_first", "zero_key", "low_scores", "wide_keys"):
        for r in range(shape.batch):
            shares = weights(calls[name], r)
            assert (shares.max(1) > 0.5).all() and set(shares.argmax(1)) <= set(regimes.edges(shares.shape[1], shape.page_size or shape.keys)), name
            if name == "zero_key":
                keys = np.repeat(rows(calls[name], "k_cache", r), shape.num_qo_heads // shape.num_kv_heads, 1)
                assert not keys[shares.argmax(1), np.arange(shape.num_qo_heads)].any()
    for r in range(shape.batch):
        assert np.ptp(rows(calls["equal_keys"], "k_cache", r), axis=0).max() == 0
    bounds = {"bf16": [2.0**-30, 1, 2.0**40], "fp16": [2.0**-7, 1, 2.0**12]}[shape.dtype]
    for head in range(shape.num_kv_heads):
        values = np.concatenate([rows(calls["magnitudes"], "v_cache", r)[:, head] for r in range(shape.batch)])
        assert np.std(values.astype(np.float64)) == pytest.approx(bounds[head % 3], rel=0.2)
    counting = calls["counts"]
    assert not counting.values("q").any()
    half = shape.head_dim // 2
    for r, n in enumerate(counting.seq_lens):
        for head in range(shape.num_kv_heads):
            expected = np.zeros((n, shape.head_dim), np.float32)
            for part, code in enumerate(codes_of(np.arange(n), half, head)):
                expected[np.arange(n), part * half + code] = 1
            assert np.array_equal(rows(counting, "v_cache", r)[:, head], expected)
    lengths = {name: list(call.seq_lens) for name, call in calls.items()}
    assert set(lengths["ordinary"]) == {shape.keys} and max(lengths["short"]) <= max(shape.q_len, shape.keys // 2 + 1)
    assert lengths["longest_first"] == sorted(lengths["longest_first"], reverse=True) and lengths["longest_first"][0] == shape.keys
    assert sum(n > 0 for n in lengths["one_active"]) == 1 and lengths["one_active"][0] == 0
    for r in range(shape.batch):
        group, low = shape.num_qo_heads // shape.num_kv_heads, calls["low_scores"]
        q = low.values("q").reshape(shape.batch, shape.q_len, -1, shape.head_dim)[r, -1]
        assert (np.einsum("hd,khd->hk", q, np.repeat(rows(low, "k_cache", r), group, 1)) * low.sm_scale).max() < -100
    if shape.page_size:
        tables = calls["strong_first"].page_table
        assert (np.diff(tables, axis=1) == 1).all() and tables[0, 0] != 0
    if shape.page_size and shape.batch > 4:
        assert np.array_equal(calls["shared_pages"].q[2], calls["shared_pages"].q[3]) and lengths["shared_pages"][2] == lengths["shared_pages"][3]
        table = calls["shared_pages"].page_table
        assert any(table[r, 0] == table[r - 1, 0] for r in range(1, shape.batch))
    assert lengths["ragged"][0] < shape.keys == lengths["ragged"][1] and 0 < lengths["empty"].count(0) < shape.batch


def test_lengths_and_edges_are_those_where_kernels_fail():
    rng = np.random.default_rng(1)
    shape = Shape.parse("batch=20,keys=300,page_size=16")
    at_edges = {"ragged": {1, 17, 16, 15, 299, 150, 151, 33, 129, 64, 128, 256, 284}, "short": {1, 17, 16, 15, 150, 75, 76, 33, 129, 64, 128, 151, 135}}
    for kind, first in (("full", 0), ("ragged", 2), ("short", 1), ("empty", 0)):
        made = regimes.lengths(kind, shape, rng)
        assert len(made) == 20 and (kind != "full" or made == [300] * 20) and (kind != "ragged" or made[0] < made[1] == 300), kind
        if kind in at_edges:  # every second one, and those between are any
            assert set(made[first::2]) <= at_edges[kind] and len(set(made[first + 1 :: 2]) - at_edges[kind]) > 3, kind
    assert len({regimes.lengths("ragged", shape, rng)[0] for _ in range(40)}) > 8
    assert regimes.lengths("empty", shape, rng)[::3] == [0] * 7
    falling = regimes.lengths("falling", shape, rng)
    assert falling == sorted(falling, reverse=True) and falling[0] == 300
    assert len(regimes.lengths("ragged", dataclasses.replace(shape, batch=1), rng)) == 1
    many = regimes.lengths("lengths", dataclasses.replace(shape, batch=4000, q_len=5), rng)
    assert (min(many), max(many)) == (5, 300) and len(set(many)) == 296
    assert regimes.edges(40, 16) == [39, 0, 15, 16, 31, 32, 19, 20, 9, 10, 29, 30, 4, 5, 14, 24, 25, 34, 35, 38]
    assert regimes.edges(1, 16) == [0] and regimes.edges(2, 1) == [1, 0] and {99, 100, 127, 128, 255, 256, 511, 512} <= set(regimes.edges(1000, 8))
    for length in (1, 2, 100, 5000):
        top = math.exp(regimes.strong_score(length))
        assert top / (top + length) > 0.87


class Answers:
    """Stands for a candidate: keeps what it was asked, and returns what a function may that changes nothing."""

    def __init__(self):
        self.asked, self.given, self.stores, self.kept = [], [], {}, None

    def close(self):
        pass

    def call(self, call, store=None, keep=False, inputs_back=None, busy=False, graph=None):
        first = next((at for at, other in enumerate(self.given) if other is call), None)
        parts = [name for name, array in call.tensors().items() if self.given and array is getattr(self.given[0], name)]
        about = f"as {first}" if first is not None else f"{call.regime} {call.shape.batch} {call.shape.keys}" + (f", {' '.join(parts)} as 0" if parts else "")
        nan = "nan values" if np.isnan(to_float32(call.v_cache, call.shape.dtype)).all() else ""
        words = [about, nan, store and f"in {store}", keep and "kept", inputs_back and f"gives back {inputs_back}", busy and "busy", graph]
        self.asked.append(", ".join(filter(None, words)))
        self.given.append(call)
        self.stores[store] = call
        results = {"out": np.array([len(self.asked)]), "earlier": self.kept}
        self.kept = results["out"] if keep else self.kept
        back = self.stores[inputs_back].tensors() if inputs_back else {}
        return {**results, **{f"input {name}": array for name, array in back.items()}}


ASKED = {
    "inputs_unchanged": ["ragged 4 100, in unchanged, gives back unchanged"],
    "inputs_kept": ["ragged 4 57, in first", "ragged 4 57, gives back first"],
    "one_changes": ["strong_edges 4 100", *["strong_edges 4 100, k_cache v_cache page_table seq_lens as 0"] * 2, *["strong_edges 4 100, q v_cache page_table seq_lens as 0"] * 2,
                    *["strong_edges 4 100, q k_cache page_table seq_lens as 0"] * 3, "strong_edges 4 100, q k_cache v_cache page_table as 0", "strong_edges 4 100, q k_cache v_cache seq_lens as 0"],
    "new_values": ["ordinary 4 100, in kept", *["as 0, in kept"] * 11, "ordinary 4 100, q k_cache page_table seq_lens as 0, in kept", "ordinary 4 100, q v_cache page_table seq_lens as 0, in kept",
                   "strong_edges 4 100, in kept"],
    "new_lengths": ["ordinary 4 100, in kept", *["as 0, in kept"] * 11, "ragged 4 100, in kept"],
    "after_nan": ["ordinary 4 100, nan values", "short 4 100"],
    "other_shape": ["ragged 4 100", "ragged 2 53", "ragged 4 100"],
    "busy": ["ordinary 4 100, in busy", "ragged 4 100, in busy, busy", *[f"ragged 4 100, in busy, new {number}, busy" for number in range(4)]],
    "busy_first": ["ragged 4 55, in busy first, busy"],
    "graph": ["ordinary 4 100, in graph, ALL, capture", "ragged 4 100", "ragged 4 100, in graph, ALL, replay"],
    "graph_other_shape": ["ordinary 2 53, in graph, SOME, capture", "ragged 4 100", "ragged 2 53, in graph, SOME, replay",
                          "ordinary 4 100, in graph, ALL, capture", "ragged 2 53", "ragged 4 100, in graph, ALL, replay"],
    "earlier_output": ["ordinary 4 100, kept", "ordinary 4 100"],
    "same_twice": ["strong_edges 4 100", "as 0"],
}  # fmt: skip


def test_what_each_stage_asks():
    shape = Shape.parse("batch=4,heads=2/1,head_dim=16,keys=100,page_size=8")
    for stage in (*stages.STAGES, stages.REPEATABLE):
        answers = Answers()
        session = stages.Session(answers, shape, 3)
        judged = []
        try:
            for one in stage.run(session):
                judged.append(next(at for at, call in enumerate(answers.given) if one.inputs is call))
        except stages.Fault:
            assert stage.name == "same_twice"
        shapes_of = {"ALL": shape, "SOME": dataclasses.replace(shape, batch=2, keys=53)}
        expected = [re.sub("ALL|SOME", lambda found: str(shapes_of[found[0]]), words) for words in ASKED.get(stage.name, [f"{stage.name} 4 100"])]
        assert answers.asked == expected, stage.name
        last = len(answers.asked) - 1
        all_of = {"one_changes": [*range(1, 10)], "new_values": [12, 13, 14], "graph": [0, 2], "graph_other_shape": [0, 2, 3, 5], "other_shape": [0, 1, 2], "busy": [1, 2, 3, 4, 5], "same_twice": []}
        assert judged == all_of.get(stage.name, [last]), stage.name


@pytest.mark.parametrize("assume, left_out", [
    ((), set()), (("one_shape",), {"other_shape", "inputs_kept", "busy_first", "graph_other_shape"}), (("no_empty_requests",), {"empty", "one_active"}),
    (("finite_pool", "output_until_next_call"), {"nan_behind", "after_nan", "earlier_output"}),
    (("full_lengths",), {"one_changes", "ragged", "short", "longest_first", "shared_pages", "zero_key", "low_scores", "wide_keys", "equal_keys", "counts", "nan_behind", "empty",
                         "one_active", "new_lengths"}),
])  # fmt: skip
def test_assumptions_leave_out_what_they_name(assume, left_out):
    assert [stage.name for stage in stages.chosen(assume)] == [stage.name for stage in stages.STAGES if stage.name not in left_out]


def test_stages_are_asked_of_those_who_can_show_something():
    left_out = lambda **about: {stage.name for stage in stages.STAGES if stage.missing(about)}  # noqa: E731
    assert left_out(device="cuda", parameters=["q", "sm_scale"]) == set() and left_out(device="cuda", parameters=["q"]) == {"small_scale", "large_scale"}
    assert left_out(device="cpu", parameters=["sm_scale"]) == {"busy", "busy_first", "graph", "graph_other_shape"}


def newest(call, request, tokens):
    """What a request's first query tokens see: (its queries, keys and values)."""
    q = call.q.reshape(call.shape.batch, call.shape.q_len, *call.q.shape[-2:])[request, :tokens]
    length = int(call.seq_lens[request]) - (call.shape.q_len - tokens)
    return [array.tobytes() for array in (q, rows(call, "k_cache", request)[:length], rows(call, "v_cache", request)[:length])]


@settings(max_examples=40)
@given(shapes(), st.integers(0, 9))
def test_variants_of_a_batch_are_the_same_requests(shape, seed):
    """Each request of a variant has the queries, keys and values that it has in the batch."""
    whole = drawn.inputs(shape, "lengths", seed)
    found, paged, many = {}, shape.page_size > 0, shape.batch > 1
    for words, call, requests, tokens in invariance._variants(whole, np.random.default_rng(seed)):
        found[words] = call
        assert (call.shape.batch, call.shape.q_len) == (len(requests), tokens) and call.q.shape[:-2] == ((len(requests),) if tokens == 1 else (len(requests), tokens)), words
        for at, request in enumerate(requests):
            assert newest(call, at, tokens) == newest(whole, request, tokens), words
    alone = [words for words in found if words.endswith(" alone")]
    assert len(alone) == (min(shape.batch, 8) if many else 0)
    assert [words for words in found if "alone" not in words] == [
        *["the requests in reverse", "every second request"] * many, "the batch and once more behind it", *["the batch in other pages"] * paged,
        *[f"the first {shape.q_len // 2} query tokens of each request"] * (shape.q_len > 1),
    ]  # fmt: skip
    own = [words for words in found if words.endswith("in a table of its own pages")]
    assert len(own) == len(alone) * paged and all(found[words].page_table.shape[1] == max(1, -(-int(found[words].seq_lens[0]) // shape.page_size)) for words in own)
    if paged and len(whole.k_cache) > 3:
        assert found["the batch in other pages"].page_table.shape == whole.page_table.shape


def test_the_first_difference_in_words():
    call = drawn.inputs("batch=3,heads=2/1,head_dim=4,keys=9", "lengths", 1)
    here = np.zeros((2, 2, 4), np.float32)
    there = here.copy()
    there[1, 0, 2], there[1, 1, 3] = 0.1, 5
    length = int(call.seq_lens[2])
    assert invariance._first_difference("it", call, here, there, [0, 2]) == (
        f"assay: it gives other bits than the batch of 3: 2 of 16 elements, the first in request 2 of {length} keys head 0 dim 2: 0.100000001, in the batch 0")
    chunk = drawn.inputs("batch=1,heads=1/1,head_dim=2,keys=9,q_len=2", "ordinary", 1)
    here, there = np.full((1, 2, 1, 2), 0x3F80, np.uint16), np.full((1, 2, 1, 2), 0x3F80, np.uint16)
    there[0, 1, 0, 1] = 0xC000
    assert invariance._first_difference("it", chunk, here, there, [0]).endswith("1 of 4 elements, the first in request 0 of 9 keys query 1 head 0 dim 1: -2, in the batch 1")


def test_each_rung_has_one_rounding_more():
    flash = dataclasses.asdict(arithmetic.like(arithmetic.WIDEST))
    exact = dict(p_format="fp32", sum_format="fp32", partial_format="fp32", stored_merges=0, kv_format="fp32", rounded_before_scale=0)
    steps = [("fp32", dict(mma_block=0, mma_fraction_bits=0, sum_depth=4096)), ("fp32_weights", dict(mma_block=8, mma_fraction_bits=24)), ("fp16_weights", dict(p_format="fp16")),
             ("16_bit_weights", dict(p_format="call", sum_format="call", partial_format="call", stored_merges=1)), ("output_through_fp16", dict(output_format="fp16")),
             ("16_bit_scores", dict(score_format="call", q_format="bf16"))]  # fmt: skip
    rungs = fitting.ladder()
    assert [rung.name for rung in rungs] == [name for name, _ in steps] and len({rung.says for rung in rungs}) == 6
    for rung, (_, more) in zip(rungs, steps):
        exact.update(more)
        assert dataclasses.asdict(rung.declaration) == {**flash, **exact}, rung.name


def test_the_narrowest_rung_that_all_calls_fit():
    def judged(inside, ratios):
        """Two calls: each is inside from a rung on."""
        seen.append(len(seen))
        rung = len(seen) - 1
        for begin, ratio in zip(inside, ratios):
            yield types.SimpleNamespace(ratio=ratio / (rung + 1), passed=rung >= begin)

    for inside, name, at, ratio, before in (((0, 0), "fp32", 0, 3.0, None), ((2, 1), "fp16_weights", 2, 1.0, 1.0), ((1, 2), "fp16_weights", 2, 1.0, 1.5), ((9, 0), "", 5, 1 / 3, 1 / 3)):
        seen = []
        fit = fitting.narrowest(lambda declaration: judged(inside, (2.0, 3.0)))  # noqa: B023
        assert (fit.name, len(seen) - 1, fit.ratio) == (name, at, pytest.approx(ratio)) and (math.isnan(fit.ratio_before) if before is None else fit.ratio_before == pytest.approx(before))
        assert str(fit) == (f"{name}: {fit.says}" if name else "no named arithmetic") and (fit.declaration is None) == (not name)


@settings(max_examples=60)
@given(st.integers(1, 40), st.sampled_from([4, 8, 16]), st.data())
def test_keys_are_lost_where_any_head_lost_them(length, half, data):
    """Of two heads with codes of their own, each with keys that did not count: what either says for certain."""
    gone = [data.draw(st.sets(st.integers(0, length - 1), max_size=3)) for _ in range(2)]
    rows, expected = [], np.zeros(length, bool)
    for head, keys in enumerate(gone):
        times = np.array([key not in keys for key in range(length)], float)
        codes = counts.codes_of(np.arange(length), half, head)
        each = np.concatenate([np.bincount(code, times, half) for code in codes])
        rows.append(counts._Row((each / max(times.sum(), 1)).astype(np.float32), length, half, head))
        for code in codes:
            expected |= np.bincount(code, times, half)[code] == 0
    if all(row.says_counts for row in rows):
        off = counts._off(rows, length)
        assert off is None or off.lost.tolist() == expected.tolist()
        assert off is not None or any(gone)
