# SPDX-License-Identifier: Apache-2.0
"""Page lists (CSR, as FlashInfer has them) in the place of a page table: the same bits, in calls, plans, graphs of the compiler and cascades."""
import pytest

torch = pytest.importorskip("torch", minversion="2.4")
import assay_torch
from batches import batch, by_plan, expected, listed, same_bits
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

PER_HEAD = pytest.mark.parametrize("per_head", [False, True])
TREES = pytest.mark.parametrize("tree", [False, True])
FUNCTIONS = {
    "v1": (assay_torch.paged_attention, dict(version=1)), "v2": (assay_torch.paged_attention, {}), "tree": (assay_torch.tree_attention, {}),
    "planned": (by_plan, {}), "planned tree": (by_plan, dict(tree=True)),
}  # fmt: skip


def shared(device, lens=(600, 530, 700)):
    """Requests that begin with the same 32 pages: keys that trees share."""
    b = batch(device, lens=lens)
    b.page_table[:, :32] = b.page_table[0, :32]
    return b


@PER_HEAD
@pytest.mark.parametrize("name", FUNCTIONS)
def test_lists_are_the_table(device, name, per_head):
    function, fixed = FUNCTIONS[name]
    b = batch(device)
    got = listed(b, per_head=per_head).call(function, return_lse=True, **fixed)
    assert all(map(same_bits, got, b.call(function, return_lse=True, **fixed)))
    want = expected(b)
    torch.testing.assert_close(got[0].cpu().double(), want[0], atol=2**-7, rtol=2**-7)


def test_a_tree_finds_shared_pages_in_lists(device):
    """Its plan has the bytes of the plan by the table, which shares; where each head has its own lists nothing is shared."""
    b = shared(device)
    apart = batch(device, lens=(600, 530, 700))
    lists, heads = listed(b), listed(b, per_head=True)
    plans = [x.plan(tree=True) for x in (b, lists, apart)]
    assert same_bits(plans[0].memory, plans[1].memory)
    if device.type == "cpu":
        assert not same_bits(plans[0].memory, plans[2].memory)
    assert all(map(same_bits, lists.call(assay_torch.tree_attention, return_lse=True), b.call(assay_torch.tree_attention, return_lse=True)))
    assert all(map(same_bits, plans[1].run(b.q, (b.k, b.v), return_lse=True), plans[0].run(b.q, (b.k, b.v), return_lse=True)))
    assert same_bits(heads.plan(tree=True).run(b.q, (heads.k, heads.v)), b.call(assay_torch.paged_attention))


def test_plan_bytes_know_lists_of_heads(device):
    """A tree that cannot share has the plan of version 2, which is smaller."""
    b = shared(device)
    sizes = []
    for x in (b, listed(b), listed(b, per_head=True)):
        sizes.append(assay_torch.plan_bytes(*x.bounds, device, tree=True, **x.sizes))
        assert x.plan(tree=True).memory.numel() == sizes[-1]
    assert sizes[0] == sizes[1] and sizes[2] <= sizes[0] and (device.type != "cpu" or sizes[2] < sizes[0])
    alone = {**b.sizes, **dict(tree=True, page_indptr=True, num_kv_heads=1, num_qo_heads=1)}
    one, other = (assay_torch.plan_bytes(*b.bounds, device, **{**alone, "list_per_head": per_head}) for per_head in (False, True))
    assert one == other


@pytest.mark.parametrize("expand", [False, True])
def test_one_list_for_all_heads_in_two_axes(device, expand):
    """[1, entries] of one kv head, or a list that is expanded: a tree shares as by [entries]."""
    b = batch(device, lens=(600, 530, 700), heads=(2, 2 if expand else 1))
    b.page_table[:, :32] = b.page_table[0, :32]
    lists = listed(b)
    want = lists.plan(tree=True)
    lists.page_table = lists.page_table.expand(2, -1) if expand else lists.page_table[None]
    got = lists.plan(tree=True)
    assert same_bits(got.memory, want.memory) and same_bits(got.run(b.q, (b.k, b.v)), want.run(b.q, (b.k, b.v)))


@TREES
@PER_HEAD
def test_an_update_is_for_other_lists(device, tree, per_head):
    """Of other tensors, each or all, and of other contents; a plan by a table takes none, nor the other way round."""
    function = assay_torch.tree_attention if tree else assay_torch.paged_attention
    b, later = (listed(batch(device, lens=lens), per_head=per_head) for lens in ((5, 128, 0, 77), (100, 1, 60, 3)))
    later.options["max_pages"] = b.options["max_pages"]
    plan = b.plan(tree=tree)
    for x in (later, b, later):
        plan.update(x.page_table, x.seq_lens, page_indptr=x.options["page_indptr"])
        assert same_bits(plan.run(x.q, (x.k, x.v)), x.call(function))
    fewer = later.seq_lens - 1
    plan.update(seq_lens=fewer)
    later.seq_lens = fewer
    assert same_bits(plan.run(later.q, (later.k, later.v)), later.call(function))
    other = later.options["page_indptr"].clone()
    other[:2] -= 1  # the first list begins an entry earlier: with a page that there is, too
    later.page_table[..., 1], later.options["page_indptr"] = 0, other
    plan.update(page_indptr=other)
    assert same_bits(plan.run(later.q, (later.k, later.v)), later.call(function))
    with pytest.raises(assay_torch.InvalidArgument, match="page_table is .* with page_indptr"):
        plan.update(batch(device).page_table)
    dense = batch(device).plan(tree=tree)
    with pytest.raises(assay_torch.InvalidArgument, match="page_indptr is given, and was not at the plan"):
        dense.update(later.page_table, page_indptr=other)
    with pytest.raises(assay_torch.InvalidArgument, match="page_table is .*lists need page_indptr"):
        dense.update(b.page_table.flatten())


@PER_HEAD
def test_levels_of_a_cascade(device, per_head):
    """Levels of tables and of lists, beside each other."""
    b, prefix = batch(device, lens=(40, 33, 7, 64)), batch(device, lens=(100, 29), seed=1)
    levels = [(prefix, torch.tensor([0, 3, 4], dtype=torch.int32, device=device)), (b, torch.arange(5, dtype=torch.int32, device=device))]
    level = lambda x, starts: ((x.k, x.v), x.page_table, x.seq_lens, starts, *x.options.values())  # noqa: E731
    want = assay_torch.cascade_attention(b.q, [level(*x) for x in levels], return_lse=True)
    for which in ((0,), (1,), (0, 1)):
        given = [level(listed(x, per_head=per_head) if i in which else x, starts) for i, (x, starts) in enumerate(levels)]
        assert all(map(same_bits, assay_torch.cascade_attention(b.q, given, return_lse=True), want))
    with pytest.raises(assay_torch.InvalidArgument, match=r"levels\[0\].max_pages is missing"):  # where such a call was seen
        assay_torch.cascade_attention(b.q, [(*given[0][:5], None), given[1]], return_lse=True)
    nothing = [(*level(*x), None, None) for x in levels]
    assert all(map(same_bits, assay_torch.cascade_attention(b.q, nothing, return_lse=True), want))


def test_a_level_that_is_none_is_said():
    b = batch("cpu")
    lists = listed(b)
    level = (b.k, b.v), lists.page_table, b.seq_lens, torch.arange(5, dtype=torch.int32), lists.options["page_indptr"], 10
    for wrong in (1.0, level[:5]):
        with pytest.raises(assay_torch.InvalidArgument, match=r"levels\[1\] is a \w+, expected four: .* or six"):
            assay_torch.cascade_attention(b.q, [level, wrong])
    levels = [[x, x] for x in (b.k, b.v, lists.page_table, b.seq_lens, level[3])]
    with pytest.raises(assay_torch.InvalidArgument, match="page_indptr has 1 parts, expected one for each of 2 levels"):
        torch.ops.assay_torch.cascade_attention(b.q, *levels, b.q.clone(), None, [level[4]], [10], 0, 0.125, 0)


def test_a_bound_beside_a_table_is_refused_where_such_a_plan_was_seen():
    b = batch("cpu")
    memory = b.plan().memory
    for _ in range(2):
        b.plan(memory=memory)
        with pytest.raises(assay_torch.InvalidArgument, match="max_pages is 10, expected none without page_indptr"):
            b.plan(memory=memory, max_pages=10)


def model(q, k, v, lists, indptr, lens):
    sizes = dict(num_qo_heads=q.shape[1], num_kv_heads=k.shape[2], head_dim=q.shape[2], page_size=k.shape[1], dtype=q.dtype)
    given = dict(page_indptr=indptr, max_pages=10)
    planned = assay_torch.plan(lists, lens, **given, **sizes).run(q * 1, (k, v))
    tree = assay_torch.tree_attention(q, torch.stack([k, v], 1), lists, lens, **given)
    each = torch.arange(q.shape[0] + 1, dtype=torch.int32, device=q.device)
    return planned, tree, assay_torch.cascade_attention(q, [((k, v), lists, lens, each, indptr, 10)])


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
@PER_HEAD
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_as_one_graph(device, dynamic, per_head):
    torch._dynamo.reset()
    table = batch(device)
    b = listed(table, per_head=per_head)
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for n in (4, 3, 2):
        got = compiled(b.q[:n], b.k, b.v, b.page_table, b.options["page_indptr"][: n + 1], b.seq_lens[:n])
        assert same_bits(got[0], assay_torch.paged_attention(table.q[:n], (table.k, table.v), table.page_table[:n], table.seq_lens[:n]))
        assert all(map(same_bits, got, model(b.q[:n], b.k, b.v, b.page_table, b.options["page_indptr"][: n + 1], b.seq_lens[:n])))


@TREES
@PER_HEAD
def test_tensors_without_memory(tree, per_head):
    """A plan of them has the size of a plan, and a missing max_pages is said."""
    b = listed(shared("cpu"), per_head=per_head)
    plan = b.plan(tree=tree)
    with FakeTensorMode() as fake:
        q, k, v, lists, lens, indptr = (fake.from_tensor(x) for x in (b.q, b.k, b.v, b.page_table, b.seq_lens, b.options["page_indptr"]))
        known = b.plan(lists, lens, tree=tree, page_indptr=indptr)
        out = known.run(q, (k, v))
        with pytest.raises(assay_torch.InvalidArgument, match="max_pages is missing"):
            b.plan(lists, lens, tree=tree, page_indptr=indptr, max_pages=None)
    assert isinstance(out, FakeTensor) and out.shape == b.q.shape and known.memory.shape == plan.memory.shape


def test_lists_of_nothing(device):
    """No request has a key: lists have no entries, and a tensor without elements has no address."""
    b = batch(device, lens=(0, 0))
    none = torch.zeros(0, dtype=torch.int32, device=device)
    given = dict(page_indptr=torch.zeros(3, dtype=torch.int32, device=device), max_pages=4)
    for function, fixed in FUNCTIONS.values():
        out, lse = function(b.q, (b.k, b.v), none, b.seq_lens, return_lse=True, **given, **fixed)
        assert (out == 0).all() and (lse == -torch.inf).all()
    each = torch.arange(3, dtype=torch.int32, device=device)
    assert (assay_torch.cascade_attention(b.q, [((b.k, b.v), none, b.seq_lens, each, *given.values())]) == 0).all()


@TREES
def test_graphs_replay_with_other_lists(device, tree):
    if device.type != "cuda":
        pytest.skip("no GPU answers")
    calls = [listed(batch(device, lens=lens)) for lens in ((5, 128, 0, 77), (100, 1, 60, 3))]
    room = max(len(x.page_table) for x in calls)
    lists, indptr = (torch.zeros(n, dtype=torch.int32, device=device) for n in (room, 5))
    lens, q = calls[0].seq_lens.clone(), calls[0].q.clone()
    k, v = (torch.zeros(64, *x.shape[1:], dtype=x.dtype, device=device) for x in (calls[0].k, calls[0].v))
    plan = calls[0].plan(lists, lens, tree=tree, page_indptr=indptr, max_pages=10)

    def fill(x):
        lists[: len(x.page_table)], k[: len(x.k)], v[: len(x.v)] = x.page_table, x.k, x.v
        indptr.copy_(x.options["page_indptr"]), lens.copy_(x.seq_lens), q.copy_(x.q)

    def step():
        plan.update()
        return plan.run(q, (k, v), return_lse=True)

    fill(calls[0]), step(), torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out, lse = step()
    for x in (*calls, calls[0]):
        fill(x), graph.replay()
        want = step()
        assert same_bits(out, want[0]) and same_bits(lse, want[1])
