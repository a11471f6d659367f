# SPDX-License-Identifier: Apache-2.0
"""What a function is told arrives in the library's struct, in shapes that were seen before too."""
import ctypes
import re

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
import assay_torch
from assay_torch import cascade, exchange, library, merge, operators, paged, planning
from batches import batch, by_plan, listed, zeroed

FP8 = torch.float8_e4m3fn
#: Fields that say how much scratch there is, and where.
SCRATCH = {"workspace", "workspace_bytes", "plan", "plan_bytes"}


def forget():
    for module in (cascade, exchange, merge, paged, planning):
        module._pool._idle.clear()
    operators._bytes.cache_clear()


def fields(struct, of=""):
    """{name: number or address} of a struct and of those in it; a cascade has levels[i]."""
    out = {}
    for name, _ in struct._fields_:
        value = getattr(struct, name)
        if isinstance(value, ctypes.Structure):
            out |= fields(value, f"{of}{name}.")
        elif hasattr(value, "contents"):
            for i in range(struct.num_levels):
                out |= fields(value[i], f"{of}{name}[{i}].")
        elif name != "windows":
            out[of + name] = list(value) if isinstance(value, ctypes.Array) else value
    if "windows" in dict(struct._fields_) and struct.windows:
        out["windows"] = list((ctypes.c_uint64 * struct.num_ranks).from_address(struct.windows))
    return out


@pytest.fixture
def seen(monkeypatch):
    """It has (entry point, fields, struct) of every call. An exchange would wait: it is not run."""
    calls = []

    def function(self, name):
        entry = getattr(self._dll, "assay_" + name)

        def watched(reference, *rest):
            calls.append((name, {**fields(reference._obj), **{f"argument {i}": x.value for i, x in enumerate(rest) if hasattr(x, "value")}}, reference._obj))
            return 0 if name == "exchange_states" else entry(reference, *rest)

        return watched

    monkeypatch.setattr(library.Library, "function", function)
    forget()
    yield calls
    forget()


def last(seen, end=""):
    return next(held for name, held, _ in reversed(seen) if name.endswith(end))


BATCH = batch("cpu", lens=(5, 40, 77), heads=(6, 2), kv_dtype=FP8, dtype=torch.float16)
RAGGED = dict(qo_indptr=torch.tensor([0, 1, 3, 3], dtype=torch.int32), max_q_len=2)
SHARD = dict(global_lens=torch.tensor([5, 50, 90], dtype=torch.int32))
VECTORS = {name: torch.full((n,), 0.5) for name, n in (("k_scale", 2), ("v_scale", 2), ("alibi_slopes", 6), ("sinks", 6))}
LISTED, OF_HEADS = listed(BATCH, first=0), listed(BATCH, per_head=True)
LISTS, HEADS_LISTS = (dict(page_table=x.page_table, page_indptr=x.options["page_indptr"], max_pages=7) for x in (LISTED, OF_HEADS))
#: Options of paged attention, one a time, and the numbers that they change.
OPTIONS = [
    (dict(window_left=5), dict(window_left=5)), (dict(logits_soft_cap=2.0), dict(logits_soft_cap=2.0)), (dict(sm_scale=0.25), dict(sm_scale=0.25)),
    (dict(lse_base=2), dict(lse_base=1)), (dict(num_splits=3), dict(num_splits=3)), (dict(enable_pdl=True), dict(enable_pdl=1)),
    (dict(even_lengths=True), dict(even_lengths=1)), (RAGGED, dict(q_len=2)), ({"k_scale": VECTORS["k_scale"]}, dict(k_scale_stride=1)),
    ({"v_scale": VECTORS["v_scale"]}, dict(v_scale_stride=1)), ({"v_scale": torch.ones(())}, {}), ({"alibi_slopes": VECTORS["alibi_slopes"]}, {}),
    ({"sinks": VECTORS["sinks"]}, {}), ({**SHARD, "dcp_rank": 1, "dcp_world_size": 3}, dict(dcp_world_size=3, dcp_rank=1, dcp_interleave=1)),
    ({**SHARD, "dcp_rank": 2, "dcp_world_size": 4, "dcp_interleave": 5}, dict(dcp_world_size=4, dcp_rank=2, dcp_interleave=5)),
    (LISTS, {"kv.max_pages": 7, "kv.page_table_stride": 0}),
    (HEADS_LISTS, {"kv.max_pages": 7, "kv.page_table_stride": 0, "kv.page_table_stride_head": OF_HEADS.page_table.shape[1]}),
]  # fmt: skip
FUNCTIONS = {
    "v1": (assay_torch.paged_attention, dict(version=1), None), "v2": (assay_torch.paged_attention, {}, None),
    "planned": (by_plan, dict(tree=False), False), "tree": (assay_torch.tree_attention, {}, None), "planned tree": (by_plan, dict(tree=True), True),
}


def sized(b, options):
    """Arguments of plan_bytes() and choose() for such calls."""
    made = {**b.sizes, **{name: options[name] for name in ("window_left", "logits_soft_cap", "num_splits", "dcp_world_size", "dcp_interleave") if name in options}}
    per_head = options.get("page_table", b.page_table) is HEADS_LISTS["page_table"]
    return made | dict(page_indptr="page_indptr" in options, list_per_head=per_head, max_q_len=options.get("max_q_len", 1), ragged="qo_indptr" in options, **{name: name in options for name in ("alibi_slopes", "sinks")})


def bounds(options):
    """(batch, max_pages)"""
    return len(BATCH.seq_lens), options.get("max_pages", BATCH.page_table.shape[1])


def attend(name, b=BATCH, **options):
    function, fixed, _ = FUNCTIONS[name]
    given = {**dict(q=b.q, kv_cache=(b.k, b.v), page_table=b.page_table, seq_lens=b.seq_lens, out=torch.empty_like(b.q)), **fixed, **options}
    return function(**given)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("options, changes", OPTIONS, ids=lambda x: "-".join(x))
def test_an_option_changes_its_own_field(seen, name, options, changes):
    """Beside the addresses of its tensors. Sizes, planner and chooser are told the same."""
    if ("tree" in name or "planned" in name) and "even_lengths" in options:
        return
    attend(name)
    base = last(seen)
    assert not any(base[n] for n in ("lse_base", "logits_soft_cap", "num_splits", "enable_pdl", "even_lengths", "dcp_world_size", "dcp_rank", "dcp_interleave", "stream")) and base["window_left"] == -1
    assert (base["sm_scale"], base["q_len"]) == (0.125, 1)
    seen.clear()
    out = torch.empty_like(BATCH.q)
    attend(name, out=out, **options)
    held = last(seen)
    tensors = {f"kv.{n}" if n.startswith("page") else n: x.data_ptr() for n, x in {**options, "out": out}.items() if isinstance(x, torch.Tensor)}
    strides = dict(q_stride_batch=0, out_stride_batch=0, q_stride_token=384, out_stride_token=384) if options is RAGGED else {}
    if held["plan"]:
        whole = assay_torch.plan_bytes(*bounds(options), "cpu", tree="tree" in name, **sized(BATCH, options))
        assert held["workspace"] - held["plan"] == held["plan_bytes"] == whole - held["workspace_bytes"] > 0 and held["plan_bytes"] % 256 == 0
    assert {n: x for n, x in held.items() if x != base[n] and n not in SCRATCH} == {n: x for n, x in {**changes, **tensors, **strides}.items() if x != base[n]}
    # What else is asked or planned for the call: all that such an answer may follow.
    if name != "v1":
        assay_torch.choose(*bounds(options), "cpu", total_tokens=60, max_seq_len=50, **sized(BATCH, options))
        assert [last(seen, "choose")[f"argument {i}"] for i in (0, 1)] == [60, 50]
    given_there = ("alibi_slopes", "sinks", "qo_indptr", "global_lens", "kv.page_indptr", "kv.page_table_stride_head")
    ignored = SCRATCH | {n for n in held if "stride" in n and n != "kv.page_table_stride_head"} | {"q", "out", "lse", "kv.k", "kv.v", "kv.page_table", "kv.seq_lens", "k_scale", "v_scale", "sm_scale", "lse_base", "enable_pdl", "even_lengths", "dcp_rank"}
    for entry, asked, _ in seen:
        assert entry.startswith("paged_attention") or "tree" in name
        for field in set(held) - ignored:
            assert bool(asked[field]) == bool(held[field]) if field in given_there else asked[field] == held[field], (entry, field)


def test_what_is_not_said_of_a_shape_is_as_in_a_call(seen, monkeypatch):
    """Sizes, planner and chooser have the defaults of a call. The chooser gives two answers."""
    table, lens = BATCH.page_table, BATCH.seq_lens
    sizes = dict(num_qo_heads=6, num_kv_heads=2, head_dim=64, page_size=16, dtype=torch.float16)
    attend("v2", batch("cpu", lens=(5, 40, 77), heads=(6, 2), dtype=torch.float16))
    held = last(seen)
    for ask in (lambda: assay_torch.plan_bytes(*table.shape, "cpu", **sizes), lambda: assay_torch.plan(table, lens, **sizes),
                lambda: assay_torch.choose(*table.shape, "cpu", total_tokens=60, max_seq_len=50, **sizes)):  # fmt: skip
        ask()
        for field in ("dtype", "kv_dtype", "q_len", "logits_soft_cap", "window_left", "num_splits", "alibi_slopes", "sinks", "qo_indptr", "global_lens", "dcp_world_size", "dcp_interleave"):
            assert last(seen)[field] == held[field], field
    for version, even in ((1, 1), (2, 0), (1, 0), (2, 1)):
        answer = dict(version=version, even_lengths=even)
        monkeypatch.setattr(library.Library, "ask", lambda self, name, p, device, *rest: [setattr(rest[2]._obj, *item) for item in answer.items()])  # noqa: B023
        assert assay_torch.choose(*table.shape, "cpu", total_tokens=60, max_seq_len=50, **sizes) == (version, bool(even))


def outcome(seen, call):
    """What the library sees last, but where scratch lies; or the error."""
    seen.clear()
    try:
        call()
    except (assay_torch.AssayError, RuntimeError) as error:
        return type(error), str(error)
    held = last(seen)
    if held.get("plan") and held.get("workspace"):
        held["workspace"] -= held["plan"]
    else:
        held.pop("workspace", None)
    return held


def spread(x):
    """The same values, with 16 elements between others."""
    wide = torch.zeros(*x.shape[:-1], x.shape[-1] + 16, dtype=x.dtype)
    wide.view(torch.uint8)[..., : x.shape[-1] * x.element_size()] = x.contiguous().view(torch.uint8)
    return wide[..., : x.shape[-1]]


#: How errors call a tensor, where not as here. For what sizes others another may be named.
NAMES = {"k1": r"levels\[0\].k", "v1": r"levels\[0\].v", "table1": r"levels\[0\]", "lens1": r"levels\[0\]", "indptr1": r"levels\[0\].segment_indptr", "indptr": "indptr"}
SIZES_OF_OTHERS = ("q", "k", "k1", "o_a", "o_in", "indptr", "seq_lens", "page_table", "qo_indptr", "lens1", "table1")


def wrong_and_right(tensors, **names):
    """(change, what is said where it is refused) of each tensor: at other strides, of another type,
    with an axis more or a row fewer, with gaps in its last axis, elsewhere, and with a gradient."""
    for name, x in tensors.items():
        said = rf"\b{names.get(name, NAMES.get(name, name))}\b" + ("|expected" if name in SIZES_OF_OTHERS else "")
        yield {name: spread(x)} if x.dim() > 1 else {name: torch.stack([x, x], 1)[:, 0]}, None
        for wrong in (x.double(), x[None], x[:-1], x.to("meta")):
            small = wrong.dim() == x.dim() and wrong.dtype == x.dtype and wrong.device == x.device  # a scale of one, and a long plan
            if not (small and (name.endswith("_scale") or len(x) == 1 << 20)) and not (name == "status" and wrong.device != x.device):
                yield {name: wrong}, said
        if "lse" not in name and x.shape[-1] > 1:
            yield {name: torch.stack([x, x], -1)[..., 0]}, said + "|has stride 2"
        if x.is_floating_point() and name not in ("out", "lse"):
            yield {name: x.detach().clone().requires_grad_()}, "has no gradient"


def _paged(name):
    b, tree = BATCH, FUNCTIONS[name][2]
    made = dict(q=b.q, k=b.k, v=b.v, page_table=b.page_table, seq_lens=b.seq_lens, out=torch.empty_like(b.q), lse=torch.empty(3, 6), **VECTORS, **SHARD)
    made["qo_indptr"] = RAGGED["qo_indptr"]
    if tree is not None:
        made["memory"] = torch.zeros(assay_torch.plan_bytes(*b.page_table.shape, "cpu", tree=tree, **sized(b, {**VECTORS, **RAGGED, "dcp_world_size": 3})), dtype=torch.uint8)
    call = lambda k, v, **given: attend(name, kv_cache=(k, v), **{"dcp_rank": 1, "dcp_world_size": 3, "max_q_len": 2, **given})  # noqa: E731
    more = [options for options, _ in OPTIONS if "qo_indptr" not in options and (name in ("v1", "v2") or "even_lengths" not in options)]
    more += [{**LISTS, "max_pages": 8}, {**LISTS, "page_indptr": LISTS["page_indptr"].clone()}, {**HEADS_LISTS, "page_table": HEADS_LISTS["page_table"][:1].expand(2, -1)}]
    more += [{name: None} for name in ("lse", "qo_indptr", *VECTORS)] + [dict(lse=torch.empty(6, 3).t()), dict(v_scale=torch.ones(1)), dict(version=2 - (name == "v2"))]
    if tree is not None:
        more += [dict(memory=x) for x in (torch.cat([made["memory"]] * 2), made["memory"][:-256], made["memory"][:16])]
    return call, made, more if name in ("v1", "v2") else [x for x in more if "version" not in x]


def _plan(tree):
    b, sizes = BATCH, dict(num_qo_heads=6, num_kv_heads=2, head_dim=64, page_size=16, dtype=torch.float16, kv_dtype=FP8)
    room = torch.empty(1 << 20, dtype=torch.uint8)
    others = dict(num_qo_heads=8, num_kv_heads=1, head_dim=128, page_size=8, dtype=torch.bfloat16, kv_dtype=torch.float8_e5m2, max_q_len=4, qo_indptr=RAGGED["qo_indptr"], window_left=2,
                  logits_soft_cap=1.5, alibi_slopes=VECTORS["alibi_slopes"], sinks=True, num_splits=2, dcp_rank=0, dcp_interleave=2, tree=not tree)  # fmt: skip
    more = [{name: value} for name, value in others.items()] + [dict(dcp_interleave=4), dict(dcp_world_size=2), LISTS, HEADS_LISTS, {**LISTS, "max_pages": 8}, dict(memory=room[: 1 << 18]), dict(memory=room[:64])]
    return lambda **given: assay_torch.plan(**{**sizes, "tree": tree, **given}), dict(page_table=b.page_table, seq_lens=b.seq_lens, memory=room), more


def _cascade():
    b = batch("cpu", lens=(5, 40, 77), heads=(6, 2), dtype=torch.float16)
    each, whole = torch.arange(4, dtype=torch.int32), torch.tensor([0, 3], dtype=torch.int32)
    made = dict(q=b.q, k=b.k, v=b.v, k1=b.k.clone(), v1=b.v.clone(), page_table=b.page_table, seq_lens=b.seq_lens, indptr=each, table1=b.page_table[2:].clone(),
                lens1=b.seq_lens[2:].clone(), indptr1=whole, out=torch.empty_like(b.q), lse=torch.empty(3, 6))  # fmt: skip

    def call(q, k, v, k1, v1, page_table, seq_lens, indptr, table1, lens1, indptr1, swap=False, lists=None, **given):
        levels = [((k1, v1), table1, lens1, indptr1), ((k, v), page_table, seq_lens, indptr)]
        if lists is not None:
            levels[1] = (levels[1][0], lists["page_table"], seq_lens, indptr, lists["page_indptr"], lists["max_pages"])
        return assay_torch.cascade_attention(q, levels[::-1] if swap else levels, **given)

    return call, made, [dict(sm_scale=0.25), dict(num_splits=2), dict(lse_base=2), dict(lse=None), dict(swap=True), dict(lse=torch.empty(6, 3).t()),
                        dict(lists=LISTS), dict(lists=HEADS_LISTS), dict(lists={**LISTS, "max_pages": 8}), dict(lists=LISTS, swap=True)]  # fmt: skip


def _merge(name):
    g = torch.Generator().manual_seed(1)
    o, lse = torch.randn(4, 3, 16, generator=g), torch.randn(4, 3, generator=g)
    if name == "merge_state":
        made, more = dict(o_a=o, lse_a=lse, o_b=o + 1, lse_b=lse + 1, out=o * 0, lse=lse * 0), []
    else:
        made = dict(o_in=o, lse_in=lse, indptr=torch.tensor([0, 1, 4], dtype=torch.int32), out=o[:2] * 0, lse=lse[:2] * 0)
        more = [dict(max_states=3), dict(max_states=4), dict(indptr=None, o_in=o.view(2, 2, 3, 16), lse_in=lse.view(2, 2, 3))]
    return getattr(assay_torch, name), made, [dict(lse_base=2), *more]


SIZES = dict(num_heads=6, head_dim=64, dtype=torch.float32, max_rows=5)
WINDOWS = [zeroed(assay_torch.Windows.bytes("cpu", 3, **{**SIZES, "max_rows": 9, "heads": "all"}) + 256, "cpu") for _ in range(4)]


def _exchange():
    g = torch.Generator().manual_seed(1)
    o, lse = torch.randn(4, 6, 64, generator=g), torch.randn(4, 6, generator=g)

    def call(rank=1, ranks=3, peer=0, longer=0, status=None, out=None, lse=None, **given):
        sizes = {**SIZES, **{name: given.pop(name) for name in ("max_rows", "heads") if name in given}}
        size = len(WINDOWS[0]) - 256 + longer  # enough for each of these calls
        addresses = [w.data_ptr() for w in (WINDOWS[peer], *WINDOWS[1:ranks])]
        windows = assay_torch.Windows(WINDOWS[rank][:size] if rank or not peer else WINDOWS[peer][:size], addresses, rank, **sizes)
        windows.status = STATUS if status is None else status
        first, end = windows.own_heads
        return assay_torch.exchange_states(windows=windows, out=OUT[:, first:end] if out is None else out, lse=LSE[:, first:end] if lse is None else lse, **given)

    more = [dict(timeout=0.5), dict(timeout=2), dict(enable_pdl=True), dict(lse_base=2), dict(rank=0), dict(rank=2), dict(ranks=2), dict(peer=3), dict(longer=256),
            dict(max_rows=4), dict(max_rows=9), dict(max_rows=3), dict(heads="all")]  # fmt: skip
    return call, dict(o_in=o, lse_in=lse, status=torch.zeros(1, dtype=torch.int32), out=torch.zeros(4, 2, 64), lse=torch.zeros(4, 2)), more


STATUS, OUT, LSE = torch.zeros(1, dtype=torch.int32), torch.zeros(4, 6, 64), torch.zeros(4, 6)
CALLS = {
    **{name: lambda name=name: _paged(name) for name in FUNCTIONS}, "plan": lambda: _plan(False), "plan of trees": lambda: _plan(True), "cascade": _cascade,
    "exchange": _exchange, **{name: lambda name=name: _merge(name) for name in ("merge_state", "merge_states")},
}


@pytest.mark.parametrize("name", CALLS)
def test_a_shape_that_was_seen_changes_nothing(seen, name):
    """Any two calls that differ in one thing, in turn: the library sees of each what it sees of it
    alone, the second time in the struct of the first."""
    call, made, more = CALLS[name]()
    variants, alone = [({}, None), *((change, None) for change in more), *wrong_and_right(made, memory="plan")], []
    for change, words in variants:
        forget()
        alone.append(outcome(seen, lambda: call(**{**made, **change})))  # noqa: B023
        assert words is None or isinstance(alone[-1], tuple) and re.search(words, alone[-1][1]), (list(change), alone[-1])
    assert isinstance(alone[0], dict) and sum(isinstance(held, dict) for held in alone) > len(more) / 2
    for (change, words), held in zip(variants, alone):
        forget()
        if any(x.device.type == "meta" for x in change.values() if isinstance(x, torch.Tensor)):
            # Of a shape that was seen, the library itself may find that there is no address.
            outcome(seen, lambda: call(**made))
            kind, text = outcome(seen, lambda: call(**{**made, **change}))  # noqa: B023
            assert issubclass(kind, (assay_torch.AssayError, NotImplementedError)) and re.search(f"{words}|is null", text), (list(change), text)
            continue
        structs = []
        for given, expected in ((made, alone[0]), ({**made, **change}, held), (made, alone[0]), ({**made, **change}, held)):
            assert outcome(seen, lambda: call(**given)) == expected, list(change)  # noqa: B023
            structs.append(seen[-1][2] if isinstance(expected, dict) else None)
        assert structs[0] is structs[2] and structs[1] is structs[3]


def test_what_an_exchange_is_told(seen):
    call, made, _ = _exchange()
    plain = dict(timeout_ns=10**9, enable_pdl=0, max_rows=5, heads=0, rank=1, num_ranks=3, num_rows=4, lse_base=0, status=made["status"].data_ptr(), windows=[w.data_ptr() for w in WINDOWS[:3]])
    for more, changes in (({}, {}), (dict(timeout=0.25), dict(timeout_ns=25 * 10**7)), (dict(enable_pdl=True), dict(enable_pdl=1)),
                          (dict(heads="all", out=OUT, lse=LSE), dict(heads=1)), (dict(lse_base=2), dict(lse_base=1))):  # fmt: skip
        call(**{**made, **more})
        assert {name: last(seen)[name] for name in plain} == {**plain, **changes}


def test_what_a_window_is_for(monkeypatch):
    told = []
    monkeypatch.setattr(library.Library, "size", lambda self, name, p, device: told.append((name, device, {n: getattr(p, n) for n, _ in p._fields_})) or 512)
    sizes = dict(num_heads=6, head_dim=64, dtype=torch.float32, max_rows=5)
    plain = dict(target=0, dtype=2, heads=0, num_ranks=3, num_heads=6, head_dim=64, max_rows=5)
    for more, changes in (({}, {}), (dict(num_heads=7), None), (dict(head_dim=128), None), (dict(dtype=torch.bfloat16), dict(dtype=1)), (dict(max_rows=9), None),
                          (dict(heads="all"), dict(heads=1)), (dict(num_ranks=2), None)):  # fmt: skip
        assert assay_torch.Windows.bytes("cpu", **{"num_ranks": 3, **sizes, **more}) == 512
        name, device, held = told.pop()
        assert (name, device, {n: held[n] for n in plain}) == ("exchange_states_window_size", torch.device("cpu"), {**plain, **(more if changes is None else changes)})


def test_what_a_cascade_and_merges_are_told(seen):
    call, made, _ = _cascade()
    call(**made, sm_scale=0.25, num_splits=2, lse_base=2)
    held = last(seen)
    assert (held["sm_scale"], held["num_splits"], held["lse_base"], held["num_levels"], held["batch"]) == (0.25, 2, 1, 2, 3)
    assert [held[f"levels[{i}].kv.k"] for i in range(2)] == [made["k1"].data_ptr(), made["k"].data_ptr()]
    call(**made)
    assert (last(seen)["sm_scale"], last(seen)["num_splits"], last(seen)["lse_base"]) == (0.125, 0, 0)
    merged, made, _ = _merge("merge_states")
    for most, expected in ((None, 4), (3, 3), (1, 1), (0, 0)):
        merged(**made, max_states=most)
        assert (last(seen)["num_states"], last(seen)["num_rows"], last(seen)["lse_base"]) == (expected, 2, 0)
