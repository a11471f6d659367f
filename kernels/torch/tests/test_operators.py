# SPDX-License-Identifier: Apache-2.0
"""The operators are good citizens of torch: schemas, tensors without memory, compilation, gradients, threads, streams."""
import contextlib
import threading

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import assay_torch
from batches import batch, listed, same_bits, zeroed

ops = torch.ops.assay_torch
NUMBERS = (0, 0.125, 0.0, -1, 0, False, False, 1, 0, 0, 0, None)


def alone(q):
    """(window, windows, status) of one rank."""
    sizes = dict(num_heads=q.shape[1], head_dim=q.shape[2], dtype=q.dtype, max_rows=q.shape[0])
    window = zeroed(assay_torch.Windows.bytes(q.device, 1, **sizes), q.device)
    windows = assay_torch.Windows(window, [window.data_ptr()], 0, **sizes)
    return window, windows.addresses, windows.status


def operator_calls(device):
    b = batch(device)
    cache = (b.q, b.k, b.v, b.page_table, b.seq_lens)
    out, lse = torch.zeros_like(b.q), torch.zeros(b.q.shape[:2], device=device)
    plan = b.plan().memory
    shape = (False, b.q.dtype, b.q.dtype, 8, 2, 64, 16, 1, False, False, False, 0.0, -1, 0, 0, 0)
    indptr = torch.arange(5, dtype=torch.int32, device=device)
    no_options = (None,) * 7
    lists, heads = listed(b), listed(b, per_head=True)
    starts, bound = lists.options["page_indptr"], lists.options["max_pages"]
    with_lists = (*no_options[1:], starts, *NUMBERS[:-1], bound)
    return {
        "v1": (ops.paged_attention, (*cache, out, lse, None, *no_options, *NUMBERS, 1)),
        "v2": (ops.paged_attention, (*cache, out, None, plan, *no_options, *NUMBERS, 2)),
        "sinks": (ops.paged_attention, (*cache, out, lse, None, None, None, None, None, torch.ones(8, device=device), None, None, *NUMBERS, 2)),
        "tree": (ops.tree_attention, (*cache, out, lse, None, *no_options, *NUMBERS)),
        "lists": (ops.paged_attention, (*cache[:3], lists.page_table, b.seq_lens, out, lse, lists.plan().memory, *with_lists, 2)),
        "lists of heads": (ops.tree_attention, (b.q, heads.k, heads.v, heads.page_table, b.seq_lens, out, lse, None, *with_lists)),
        "new_plan of lists": (ops.new_plan, (lists.page_table, b.seq_lens, starts, bound, *shape)),
        "cascade of lists": (ops.cascade_attention, (b.q, [b.k] * 2, [b.v] * 2, [lists.page_table, b.page_table], [b.seq_lens] * 2, [indptr] * 2, out, lse,
                                                     [starts, None], [bound, -1], 0, 0.125, 0)),
        "new_plan": (ops.new_plan, (b.page_table, b.seq_lens, None, None, *shape)),
        "plan_into": (ops.plan_into, (b.page_table, b.seq_lens, None, None, plan, *shape)),
        "cascade": (ops.cascade_attention, (b.q, [b.k], [b.v], [b.page_table], [b.seq_lens], [indptr], out, lse, [], [], 0, 0.125, 0)),
        "merge_state": (ops.merge_state, (b.q, lse, b.q.clone(), lse.clone(), out, torch.zeros_like(lse), 0)),
        "exchange": (ops.exchange_states, (b.q, lse, *alone(b.q), out, torch.zeros_like(lse), 0, 0, 4, 0, False, 10**9)),
        "merge_states": (ops.merge_states, (b.q, lse, indptr[:3] * 2, out[:2], None, 4, 0)),
    }


CALLS = ("v1", "v2", "sinks", "tree", "lists", "lists of heads", "new_plan of lists", "cascade of lists", "new_plan", "plan_into", "cascade", "merge_state", "exchange", "merge_states")


@pytest.mark.parametrize("name", CALLS)
def test_opcheck(device, name):
    operator, arguments = operator_calls(device)[name]
    # A window is 256-byte aligned; the copies that most checks make of it lie anywhere on the host.
    few = name == "exchange" and device.type == "cpu"
    checks = {"test_utils": ("test_autograd_registration",)} if few else {}
    torch.library.opcheck(operator.default, arguments, **checks)


def model(q, k, v, table, lens):
    sizes = dict(num_qo_heads=q.shape[1], num_kv_heads=k.shape[2], head_dim=q.shape[2], page_size=k.shape[1], dtype=q.dtype)
    o, lse = assay_torch.plan(table, lens, **sizes).run(q * 1, (k, v), return_lse=True)
    tree, tree_lse = assay_torch.tree_attention(q, torch.stack([k, v], 1), table, lens, return_lse=True)
    merged, merged_lse = assay_torch.merge_state(o, lse, tree, tree_lse)
    each = torch.arange(q.shape[0] + 1, dtype=torch.int32, device=q.device)
    cascade = assay_torch.cascade_attention(q, [((k, v), table, lens, each)])
    many, _ = assay_torch.merge_states(torch.stack([o, cascade], 1), torch.stack([lse, tree_lse], 1))
    return merged, merged_lse, many


# torch 2.5 needs this for a plan whose size is a symbol, 2.13 does not.
@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_as_one_graph(device, dynamic):
    torch._dynamo.reset()
    b = batch(device)
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for n in (4, 3, 2):
        arguments = (b.q[:n], b.k, b.v, b.page_table[:n], b.seq_lens[:n])
        assert all(map(same_bits, compiled(*arguments), model(*arguments)))


def test_who_looks_on_sees_operators():
    b = batch("cpu")
    traced = make_fx(lambda q: b.call(lambda _, *given, **more: assay_torch.paged_attention(q, *given, **more)))(b.q)
    assert any(node.target is ops.paged_attention.default for node in traced.graph.nodes)
    with torch.profiler.profile() as profile:
        b.call(assay_torch.paged_attention)
    assert any(event.name == "assay_torch::paged_attention" for event in profile.events())
    fake = FakeTensorMode()
    arguments = [fake.from_tensor(t) for t in (b.q, b.k, b.v, b.page_table, b.seq_lens)]
    for mode in (fake, contextlib.nullcontext()):  # a subclass of tensors is enough
        with mode:
            out = assay_torch.paged_attention(arguments[0], arguments[1:3], *arguments[3:])
        assert isinstance(out, FakeTensor) and out.shape == b.q.shape


def test_a_plan_without_memory_has_the_size_of_a_plan(device):
    b = batch(device)
    shape = (b.q.dtype, b.q.dtype, 8, 2, 64, 16, 1, False, False, False, 0.0, -1, 0, 0, 0)
    sizes = []
    for tree in (False, True):
        made = ops.new_plan(b.page_table, b.seq_lens, None, None, tree, *shape)
        with FakeTensorMode() as fake:
            known = ops.new_plan(fake.from_tensor(b.page_table), fake.from_tensor(b.seq_lens), None, None, tree, *shape)
        assert (known.shape, known.dtype) == (made.shape, made.dtype)
        sizes.append(made.numel())
    assert sizes[0] < sizes[1]  # so that the one is not taken for the other


def test_a_gradient_is_refused_by_name():
    b = batch("cpu")
    b.q.requires_grad_()
    with pytest.raises(assay_torch.Unsupported, match="paged_attention_v1 has no gradient.*torch.no_grad"):
        b.call(assay_torch.paged_attention, version=1)
    with pytest.raises(assay_torch.Unsupported, match="merge_state has no gradient"):
        assay_torch.merge_state(b.q, torch.zeros(4, 8), b.q, torch.zeros(4, 8))
    for name in "kv":
        other = batch("cpu")
        getattr(other, name).requires_grad_()
        with pytest.raises(assay_torch.Unsupported, match="paged_attention_v2 has no gradient"):
            other.call(assay_torch.paged_attention)
    sinks = torch.nn.Parameter(torch.zeros(8))
    with pytest.raises(assay_torch.Unsupported, match="paged_attention_v2 has no gradient"):
        batch("cpu").call(assay_torch.paged_attention, sinks=sinks)
    torch._dynamo.reset()
    with pytest.raises(Exception, match="paged_attention has no gradient"):
        torch.compile(lambda q: assay_torch.paged_attention(q, (b.k, b.v), b.page_table, b.seq_lens), fullgraph=True, backend="aot_eager")(b.q)
    with torch.no_grad():
        b.call(assay_torch.paged_attention)


def test_threads_do_not_share_parameters():
    batches = [batch("cpu", seed=seed) for seed in range(4)]
    want, wrong = [b.call(assay_torch.paged_attention) for b in batches], []

    def work(b, right):
        for _ in range(20):
            if not same_bits(b.call(assay_torch.paged_attention), right):
                wrong.append(b)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(batches, want)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_graphs_replay_with_other_lengths(device):
    if device.type != "cuda":
        pytest.skip("no GPU answers")
    b, later = batch(device), batch(device, lens=(100, 1, 60, 3))
    columns = max(b.page_table.shape[1], later.page_table.shape[1])
    table, lens, q = torch.zeros(4, columns, dtype=torch.int32, device=device), b.seq_lens.clone(), b.q.clone()
    k, v = torch.zeros(64, *b.k.shape[1:], dtype=b.k.dtype, device=device), torch.zeros(64, *b.k.shape[1:], dtype=b.k.dtype, device=device)
    for tree in (False, True):
        plan = b.plan(table, lens, tree=tree)

        def step():
            plan.update()
            return plan.run(q, (k, v), return_lse=True)

        def fill(x):
            table[:, : x.page_table.shape[1]], k[: len(x.k)], v[: len(x.v)] = x.page_table, x.k, x.v
            lens.copy_(x.seq_lens), q.copy_(x.q)

        fill(b), step(), torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out, lse = step()
        for x in (b, later, b):
            fill(x), graph.replay()
            want = step()
            assert same_bits(out, want[0]) and same_bits(lse, want[1])


def test_a_device_that_is_not_the_current_one():
    if torch.cuda.device_count() < 2:
        pytest.skip("fewer than two GPUs")
    b = batch("cuda:1")
    here = batch("cuda:0")
    with torch.cuda.device(0):
        assert same_bits(b.call(assay_torch.paged_attention).cpu(), here.call(assay_torch.paged_attention).cpu())
