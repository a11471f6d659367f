# SPDX-License-Identifier: Apache-2.0
"""Any call in any layout gives the bits of the same call in the plainest one: contiguous, (k, v), a call of its own."""
import inspect

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
pytest.importorskip("hypothesis")
import assay_torch
from batches import LAYER, batch, by_plan, listed, lists_of, moved, same_bits
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

#: The same examples in every run, and no clock.
drawn = settings(derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
FP8 = {torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2"}
FUNCTIONS = {"v1": (assay_torch.paged_attention, dict(version=1)), "v2": (assay_torch.paged_attention, {}), "tree": (assay_torch.tree_attention, {})}


@st.composite
def calls(draw):
    """A batch of any shape, with any options."""
    lens = draw(st.lists(st.integers(0, 40), min_size=1, max_size=3))
    kv_heads, group = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    heads, options = kv_heads * group, {}
    dtype = draw(st.sampled_from([torch.float16, torch.bfloat16]))
    kv_dtype = draw(st.sampled_from([dtype, *FP8]))
    numbers = lambda n: 0.5 + torch.rand(n, generator=torch.Generator().manual_seed(draw(st.integers(0, 9))))  # noqa: E731
    if kv_dtype in FP8:
        options |= {name: numbers(draw(st.sampled_from([1, kv_heads]))) for name in ("k_scale", "v_scale") if draw(st.booleans())}
    options |= {name: numbers(heads) for name in ("alibi_slopes", "sinks") if draw(st.booleans())}
    given_numbers = dict(window_left=[-1, 0, 6], logits_soft_cap=[0.0, 2.0], sm_scale=[None, 0.25, 1.0], lse_base=["e", 2], num_splits=[0, 1, 3])
    options |= {name: draw(st.sampled_from(values)) for name, values in given_numbers.items() if draw(st.booleans())}
    q_len = draw(st.sampled_from([None, 1, 3]))
    shape = dict(heads=(heads, kv_heads), page_size=draw(st.sampled_from([1, 4, 16])), dtype=dtype, kv_dtype=kv_dtype, seed=draw(st.integers(0, 99)))
    b = batch("cpu", lens=tuple(lens), q_len=q_len, **shape, **options)
    if draw(st.booleans()):  # all begin with the pages of the first, as far as those are full
        shared = lens[0] // shape["page_size"]
        for line, n in zip(b.page_table[1:], lens[1:]):
            line[: min(shared, n // shape["page_size"])] = b.page_table[0, : min(shared, n // shape["page_size"])]
    if q_len == 3 and draw(st.booleans()):
        counts = [draw(st.integers(0, 3)) for _ in lens]
        b.options |= dict(qo_indptr=torch.tensor([0, *counts], dtype=torch.int32).cumsum(0, dtype=torch.int32), max_q_len=3)
        b.q = b.q.flatten(0, 1)
    return b


def inside(draw, x, unit=8):
    """The same values as a part of more, the last axis side by side; a multiple of `unit` elements between others."""
    if draw(st.booleans()):
        return x
    axis = draw(st.integers(0, x.dim() - 2)) if x.dim() > 1 else None
    if axis is None:
        return torch.cat([x, x])[: len(x)]
    if draw(st.booleans()):
        return x.transpose(0, axis).contiguous().transpose(0, axis)
    wide = torch.zeros(*x.shape[:-1], x.shape[-1] + 2 * unit, dtype=x.dtype)
    wide[..., unit : unit + x.shape[-1]].copy_(x)
    return wide[..., unit : unit + x.shape[-1]]


def caches(draw, b):
    """(kv_cache, options) of the same pool."""
    k, v, options = b.k, b.v, {}
    if k.dtype in FP8 and draw(st.booleans()):
        k, v, options = k.view(torch.uint8), v.view(torch.uint8), {"kv_dtype": FP8[b.k.dtype]}
    if draw(st.booleans()):
        k, v, options["kv_layout"] = k.transpose(1, 2).contiguous(), v.transpose(1, 2).contiguous(), "HND"
    form = draw(st.sampled_from(["two", "pages, 2", "2, pages", "side by side"]))
    if form == "two":
        unit = 16 if b.k.dtype in FP8 else 8
        return tuple(inside(draw, x.view(torch.uint8) if x.dtype in FP8 else x, unit).view(x.dtype) for x in (k, v)), options
    if form == "side by side":
        return torch.cat([k.view(torch.uint8), v.view(torch.uint8)], 3).view(k.dtype), options
    return torch.stack([k, v], 1 if form == "pages, 2" and len(k) != 2 or len(k) == 2 == k.shape[1] else 0), options


def run(function, b, plan=None, **more):
    """(out, lse) of the plainest call."""
    if plan is not None:
        return plan.run(b.q, (b.k, b.v), return_lse=True, **{name: x for name, x in b.options.items() if name in LAYER})
    return b.call(function, return_lse=True, **more)


def tabled(draw, b):
    """The same call by its page table, or by page lists of all or of each kv head."""
    per_head = draw(st.sampled_from([None, False, True]))
    return b if per_head is None else listed(b, draw(st.integers(0, 3)), draw(st.integers(0, 2)), per_head)


def outputs(draw, b):
    """out and lse by any strides, full of what a call must write over."""
    out = inside(draw, torch.full_like(b.q, 7))
    lse = torch.full(b.q.shape[:-1], 7.0)
    order = draw(st.permutations(range(lse.dim())))
    lse = lse.permute(order).contiguous().permute([order.index(i) for i in range(lse.dim())])
    return {name: x for name, x in (("out", out), ("lse", lse)) if draw(st.booleans())}


def written(b, pair):
    """Rows that belong to a request."""
    start = b.options.get("qo_indptr")
    return pair if start is None else tuple(x[: start[-1]] for x in pair)


def planned(draw, b, tree, **more):
    """One that is made in some way; `more` are options of the plan."""
    if b.k.dtype == b.q.dtype and draw(st.booleans()):
        more["kv_dtype"] = None
    plain = b.plan(tree=tree, **more)
    table, lens = inside(draw, b.page_table, 4), inside(draw, b.seq_lens)
    vectors = {name: inside(draw, b.options[name]) for name in ("qo_indptr", "alibi_slopes") if name in b.options}
    assert same_bits(b.plan(table, lens, tree=tree, **vectors, **more).memory, plain.memory)
    if draw(st.booleans()):
        return plain
    splits = b.options.get("num_splits", 0)
    room = assay_torch.plan_bytes(*b.bounds, "cpu", tree=tree, num_splits=splits, **b.sizes) + draw(st.sampled_from([0, 256]))
    return b.plan(table, lens, tree=tree, memory=torch.zeros(room + 256, dtype=torch.uint8)[256:], **vectors, **more)


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(drawn, max_examples=120)
@given(b=calls(), data=st.data())
def test_a_call_has_the_same_bits_in_every_layout(name, b, data):
    function, fixed = FUNCTIONS[name]
    draw = data.draw
    plan = None if name == "v1" or draw(st.booleans()) else planned(draw, b, name == "tree")
    want = written(b, run(function, b, plan, **fixed))
    b, plans = tabled(draw, b), {}
    for _ in range(2):  # two calls of one shape at other strides, under one plan where the layout is the same
        kv_cache, layout = caches(draw, b)
        options = {n: inside(draw, x) if isinstance(x, torch.Tensor) else x for n, x in b.options.items()}
        made = {"return_lse": True, **outputs(draw, b)}
        if plan is None:
            got = function(inside(draw, b.q), kv_cache, inside(draw, b.page_table, 4), inside(draw, b.seq_lens), **options, **layout, **made, **fixed)
        else:
            order = layout.get("kv_layout", "NHD")
            plans[order] = plans.get(order) or planned(draw, b, name == "tree", kv_layout=order)
            got = plans[order].run(inside(draw, b.q), kv_cache, **made, **{n: x for n, x in options.items() if n in LAYER})
        assert all(map(same_bits, written(b, got), want))
        assert all(got[i] is made[n] for i, n in enumerate(("out", "lse")) if n in made)


@pytest.mark.parametrize("function, fixed", [*FUNCTIONS.values(), (by_plan, {}), (by_plan, dict(tree=True))])
def test_a_scale_of_zero_is_one_of_its_own(function, fixed):
    """It is refused, or all keys weigh alike; it is not taken for none."""
    b = batch("cpu")
    try:
        lse = run(function, b, sm_scale=0.0, **fixed)[1]
    except assay_torch.InvalidArgument as error:
        assert "sm_scale" in str(error)
    else:
        assert lse.exp().round().tolist() == b.seq_lens[:, None].expand(lse.shape).tolist()


@settings(drawn, max_examples=60)
@given(b=calls(), data=st.data())
def test_a_plan_and_a_row_alone_change_no_lengths(b, data):
    """A planned call has the bits of the call without a plan, whose splits are the same."""
    for name, tree in (("v2", False), ("tree", True)):
        function, fixed = FUNCTIONS[name]
        if "num_splits" not in b.options:
            other = tabled(data.draw, b)
            assert all(map(same_bits, written(b, run(function, other, planned(data.draw, other, tree), **fixed)), written(b, run(function, b, **fixed))))


@st.composite
def states(draw):
    g = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    rows, n, heads, dim = draw(st.integers(0, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.sampled_from([8, 64]))
    dtype = draw(st.sampled_from([torch.float16, torch.bfloat16, torch.float32]))
    lse = torch.randn(rows, n, heads, generator=g)
    lse[torch.rand(lse.shape, generator=g) < 0.2] = -torch.inf
    return torch.randn(rows, n, heads, dim, generator=g).to(dtype), lse


@settings(drawn, max_examples=150)
@given(states(), st.data())
def test_merges_have_the_same_bits_in_every_layout(made, data):
    o, lse = made
    draw, base = data.draw, data.draw(st.sampled_from(["e", 2]))
    rows, n = o.shape[:2]
    out = {"out": inside(draw, torch.full_like(o[:, 0], 7)), "lse": torch.full(lse[:, 0].t().shape, 7.0).t()} if draw(st.booleans()) else {}
    want = assay_torch.merge_states(o, lse, lse_base=base)
    assert all(map(same_bits, assay_torch.merge_states(inside(draw, o), inside(draw, lse), lse_base=base, **out), want))
    indptr = inside(draw, torch.arange(rows + 1, dtype=torch.int32) * n)
    flat = inside(draw, o.flatten(0, 1)), inside(draw, lse.flatten(0, 1).t().contiguous().t())
    assert all(map(same_bits, assay_torch.merge_states(*flat, indptr=indptr, lse_base=base, max_states=draw(st.sampled_from([None, n])), **out), want))
    if n == 2:
        pair = [inside(draw, x.contiguous()) for x in (o[:, 0], lse[:, 0], o[:, 1], lse[:, 1])]
        plain = assay_torch.merge_state(*(x.contiguous() for x in (o[:, 0], lse[:, 0], o[:, 1], lse[:, 1])), lse_base=base)
        in_place = {} if draw(st.booleans()) else {"out": pair[2 * draw(st.integers(0, 1))], "lse": pair[1 + 2 * draw(st.integers(0, 1))]}
        assert all(map(same_bits, assay_torch.merge_state(*pair, lse_base=base, **in_place), plain))


@settings(drawn, max_examples=60)
@given(b=calls(), data=st.data())
def test_cascades_have_the_same_bits_in_every_layout(b, data):
    draw, batch_size = data.draw, len(b.seq_lens)
    b.q = b.q.reshape(-1, *b.q.shape[-2:])[:batch_size]
    b.k, b.v = b.k.to(b.q.dtype), b.v.to(b.q.dtype)
    options = {name: value for name, value in b.options.items() if name in ("sm_scale", "lse_base", "num_splits")}
    each, whole = torch.arange(batch_size + 1, dtype=torch.int32), torch.tensor([0, batch_size], dtype=torch.int32)
    shared = (b.page_table[:1, :1] % len(b.k)).contiguous(), torch.ones(1, dtype=torch.int32)
    plain = [((b.k, b.v), *shared, whole), ((b.k, b.v), b.page_table, b.seq_lens, each)]
    want = assay_torch.cascade_attention(b.q, plain, return_lse=True, **options)
    layout = draw(st.sampled_from(["NHD", "HND"]))

    per_head = draw(st.sampled_from([None, False, True]))

    def level(kv, table, lens, indptr):
        pools = map(moved, kv) if per_head else kv
        cache = tuple(inside(draw, x if layout == "NHD" else x.transpose(1, 2).contiguous()) for x in pools)
        lists, columns = (), table.shape[1]
        if per_head or per_head is False and draw(st.booleans()):
            table, starts = lists_of(table, lens, kv[0], draw(st.integers(0, 2)), 0, per_head)
            lists = inside(draw, starts), columns
        return cache, inside(draw, table, 4), inside(draw, lens), inside(draw, indptr), *lists

    for _ in range(2):
        made = {"return_lse": True, **outputs(draw, b)}
        got = assay_torch.cascade_attention(inside(draw, b.q), [level(*x) for x in plain], kv_layout=layout, **options, **made)
        assert all(map(same_bits, got, want))


def _callable():
    b, (o, lse) = batch("cpu"), (torch.randn(3, 2, 2, 8), torch.randn(3, 2, 2))
    pair = dict(o_a=o[:, 0].clone(), lse_a=lse[:, 0].clone(), o_b=o[:, 1].clone(), lse_b=lse[:, 1].clone())
    paged = dict(q=b.q, page_table=b.page_table, seq_lens=b.seq_lens)
    return {
        "paged_attention": dict(kv_cache=(b.k, b.v), **paged), "tree_attention": dict(kv_cache=(b.k, b.v), **paged), "merge_state": pair,
        "merge_states": dict(o_in=o, lse_in=lse), "plan": dict(page_table=b.page_table, seq_lens=b.seq_lens, num_qo_heads=8, num_kv_heads=2, head_dim=64, page_size=16, dtype=b.q.dtype),
        "cascade_attention": dict(q=b.q, levels=[((b.k, b.v), b.page_table, b.seq_lens, torch.arange(5, dtype=torch.int32))]),
    }  # fmt: skip


CALLABLE = _callable()
TENSORS = ("q", "page_table", "seq_lens", "o_a", "lse_a", "o_b", "lse_b", "o_in", "lse_in", "memory", "out", "lse", "qo_indptr", "cu_seqlens_q", "k_scale", "v_scale",
           "alibi_slopes", "sinks", "indptr", "global_lens", "page_indptr", "kv_cache")  # fmt: skip
NUMBERS = ("version", "max_q_len", "window_left", "dcp_world_size", "dcp_rank", "dcp_interleave", "num_splits", "num_qo_heads", "num_kv_heads", "head_dim", "page_size", "max_states", "max_pages", "sm_scale", "logits_soft_cap")
WORDS = ("kv_layout", "kv_dtype", "lse_base", "levels")
#: What a caller may hand over by mistake, by the kind of argument.
NOTHING = {
    TENSORS: [torch.zeros(0), torch.zeros(0, dtype=torch.int32), torch.zeros((0, 0, 0), dtype=torch.bfloat16), torch.zeros((0, 0, 0, 0))],
    NUMBERS: [0, -1, 1 << 31, 1 << 40, float("nan")],
    WORDS: ["", "x", (), (0,), (0, 0), (5, 2), (1, 2, 0)],
}
#: Of what else the error may speak: the C ABI's name of it, or what does not fit beside it.
ALSO = {
    "max_q_len": ["q_len"], "dcp_world_size": ["dcp_", "global_lens"], "dcp_rank": ["dcp_"], "dcp_interleave": ["dcp_"], "max_states": ["num_states"], "kv_cache": ["k ", "v "],
    "cu_seqlens_q": ["qo_indptr"], "q": ["out", "levels[0].k"], "o_a": ["lse_a"], "o_in": ["lse_in"], "lse_in": ["o_in"], "page_table": ["seq_lens"], "seq_lens": ["page_table"],
    "num_kv_heads": ["num_qo_heads"], "kv_dtype": ["k is"], "memory": ["plan"], "num_qo_heads": ["num_kv_heads"],
}  # fmt: skip


@pytest.mark.parametrize(
    "function, name, value",
    [(f, name, value) for f in CALLABLE for names, values in NOTHING.items() for name in names for value in values
     if name in inspect.signature(getattr(assay_torch, f)).parameters],
)  # fmt: skip
def test_nothing_in_the_place_of_an_argument(function, name, value):
    """It is refused by an AssayError that says the argument's name, or the call has outputs of its shape."""
    arguments, b = CALLABLE[function], batch("cpu")
    try:
        made = getattr(assay_torch, function)(**{**arguments, name: value})
        made = made.run(b.q, (b.k, b.v)) if function == "plan" else made
    except assay_torch.AssayError as error:
        assert any(word in str(error) for word in (name, *ALSO.get(name, ()))), error
    else:
        assert (made[0] if isinstance(made, tuple) else made).shape[0] > 0


def test_a_plan_of_trees_reads_the_table_at_its_strides():
    """Eight requests begin with the same 30 pages; the same table as a part of a wider one, whose rest is other pages."""
    b = batch("cpu", lens=(520,) * 8)
    b.page_table[:, :30] = b.page_table[0, :30]
    columns = b.page_table.shape[1]
    wide = torch.full((8, 2 * columns), 3, dtype=torch.int32)
    wide[:, :columns] = b.page_table
    apart = b.page_table.clone()
    apart[:, 0] = torch.arange(8)
    plans = [b.plan(table, tree=True).memory for table in (b.page_table, wide[:, :columns], apart)]
    assert same_bits(plans[0], plans[1]) and not same_bits(plans[0], plans[2])
