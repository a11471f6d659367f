# SPDX-License-Identifier: Apache-2.0
"""A plan as an object: options once, a call per layer, planned again in place; and who is refused."""
import pytest

torch = pytest.importorskip("torch", minversion="2.4")
import assay_torch
import torch._dynamo.testing
from batches import batch, same_bits
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

FP8 = torch.float8_e4m3fn
TREES = pytest.mark.parametrize("tree", [False, True])
FUNCTIONS = {False: assay_torch.paged_attention, True: assay_torch.tree_attention}


@TREES
def test_layers_have_tensors_of_their_own(device, tree):
    """Of the plan are options, of a layer its q, cache, scales and sinks."""
    slopes, scales = torch.linspace(0.1, 0.8, 8), [torch.tensor([0.5, 2.0], device=device), torch.tensor(0.25, device=device)]
    layers = [batch(device, kv_dtype=FP8, dtype=torch.float16, seed=seed, alibi_slopes=slopes, sinks=torch.full((8,), seed / 2), window_left=49) for seed in range(2)]
    for b in layers:
        b.page_table = layers[0].page_table
    plan = layers[0].plan(tree=tree, lse_base=2, sm_scale=0.2, kv_layout="HND")
    for b, scale in zip(layers, scales):
        out, lse = torch.empty_like(b.q), torch.empty(8, 4, device=device).t()
        cache = [x.view(torch.uint8).transpose(1, 2).contiguous() for x in (b.k, b.v)]
        got = plan.run(b.q, cache, out=out, lse=lse, k_scale=scale, v_scale=scale, sinks=b.options["sinks"])
        want = b.call(FUNCTIONS[tree], lse_base=2, sm_scale=0.2, k_scale=scale, v_scale=scale, return_lse=True)
        assert got[0] is out and got[1] is lse and all(map(same_bits, got, want))


@TREES
def test_an_update_is_for_other_tensors_or_other_contents(device, tree):
    first, then = (batch(device, lens=lens, qo_indptr=torch.tensor(starts, dtype=torch.int32), max_q_len=2) for lens, starts in
                   (((5, 128, 7), [0, 1, 3, 4]), ((33, 2, 99), [0, 2, 2, 4])))  # fmt: skip
    for b in (first, then):
        b.q = torch.cat([b.q, b.q + 1])[:4]
    plan = first.plan(first.page_table.clone(), first.seq_lens.clone(), qo_indptr=first.options["qo_indptr"].clone(), tree=tree)
    memory, columns = plan.memory, min(first.page_table.shape[1], then.page_table.shape[1])
    for given in ({}, dict(page_table=then.page_table, seq_lens=then.seq_lens, qo_indptr=then.options["qo_indptr"])):
        b = then if given else first
        plan.update(**given)
        got = plan.run(b.q, (b.k, b.v))
        assert plan.memory is memory and same_bits(got, b.call(FUNCTIONS[tree]))
        plan.update(b.page_table[:2, :columns], b.seq_lens[:2].clamp(max=16 * columns), qo_indptr=b.options["qo_indptr"][:3])  # a smaller batch
        fewer = plan.run(b.q, (b.k, b.v))
        assert same_bits(fewer[:2], b.call(FUNCTIONS[tree])[:2])
    plan.seq_lens.fill_(1)
    plan.update()
    assert same_bits(plan.run(then.q, (then.k, then.v))[:2], FUNCTIONS[tree](
        then.q, (then.k, then.v), plan.page_table, plan.seq_lens, qo_indptr=plan.qo_indptr, max_q_len=2)[:2])  # fmt: skip


@TREES
def test_an_update_of_lengths_alone_keeps_the_tree(device, tree):
    """The next tokens lie in pages of their own. Then requests share no page any more, which such an update does not see."""
    b = batch(device, lens=(200, 190, 180), num_splits=1)
    alone = b.page_table.clone()
    b.page_table[:, :8] = b.page_table[0, :8]
    plan, anew = (b.plan(seq_lens=lens, tree=tree) for lens in (b.seq_lens - 40, b.seq_lens))
    assert not torch.equal(plan.memory, anew.memory)
    plan.update(seq_lens=b.seq_lens, lengths_only=True)
    assert torch.equal(plan.memory, anew.memory)
    plan.update(page_table=alone, lengths_only=True)
    assert plan.page_table is alone and torch.equal(plan.memory, anew.memory)
    plan.update()
    assert torch.equal(plan.memory, anew.memory) == (not tree)
    plan.update(page_table=b.page_table)
    plan.update(lengths_only=True)
    assert same_bits(plan.run(b.q, (b.k, b.v)), b.call(FUNCTIONS[tree]))


@TREES
@pytest.mark.parametrize("name", ["page_table", "seq_lens", "global_lens"])
def test_an_update_of_one_tensor_alone(device, tree, name):
    """The layers after it read that tensor. With a window of 10 more positions the last of 2 n tokens sees one key less on its rank than that of 2 n - 1."""
    b = batch(device, window_left=10, lens=(5, 128, 1, 77))
    ranks = dict(dcp_world_size=2, global_lens=2 * b.seq_lens) if name == "global_lens" else {}
    pages = b.k.shape[0]
    other = dict(page_table=torch.where(b.page_table < pages, (b.page_table + 1) % pages, b.page_table), seq_lens=b.seq_lens - 1, global_lens=2 * b.seq_lens - 1)[name]
    given = dict(page_table=b.page_table, seq_lens=b.seq_lens, **ranks)
    plan = b.plan(tree=tree, **ranks)
    before = plan.run(b.q, (b.k, b.v))
    plan.update(**{name: other})
    got = plan.run(b.q, (b.k, b.v))
    assert same_bits(got, FUNCTIONS[tree](b.q, (b.k, b.v), **{**given, name: other}, window_left=10)) and not same_bits(got, before)


WRONG = {
    r"q is \[4, 4, 64\], expected \[4, 8, 64\]": lambda b: dict(q=b.q[:, :4]),
    r"q is \[3, 8, 64\], expected \[4, 8, 64\]": lambda b: dict(q=b.q[:3]),
    r"q is \[4, 2, 8, 64\], expected \[4, 1, 8, 64\]": lambda b: dict(q=torch.stack([b.q, b.q], 1)),
    "q is torch.float16, expected torch.bfloat16": lambda b: dict(q=b.q.half()),
    "q is on meta, expected cpu as the plan": lambda b: dict(q=b.q.to("meta")),
    "q is a list, expected a tensor": lambda b: dict(q=[1], out=b.q.clone()),
    r"k is \[\d+, 8, 2, 64\], expected \['any', 16, 2, 64\]": lambda b: dict(kv_cache=(b.k[:, :8], b.v[:, :8])),
    r"k is \[\d+, 16, 1, 64\], expected \['any', 16, 2, 64\]": lambda b: dict(kv_cache=(b.k[:, :, :1], b.v[:, :, :1])),
    "k is torch.float8_e4m3fn, expected torch.bfloat16": lambda b: dict(kv_cache=(b.k.to(FP8), b.v.to(FP8))),
    "v is torch.float16, expected torch.bfloat16": lambda b: dict(kv_cache=(b.k, b.v.half())),
    "k is on meta, expected cpu as q": lambda b: dict(kv_cache=(b.k.to("meta"), b.v)),
    "k is a str, expected a tensor": lambda b: dict(kv_cache=("k", b.v)),
    "sinks is given, expected as at the plan: sinks=False": lambda b: dict(sinks=torch.zeros(8)),
    "k_scale is given, supported with fp8": lambda b: dict(k_scale=torch.ones(1)),
    "k_scale is a float, expected a tensor": lambda b: dict(k_scale=1.0),
    r"out is \[8, 64\], expected \[4, 8, 64\]": lambda b: dict(out=b.q[0].clone()),
    r"lse is \[8, 4\], expected \[4, 8\]": lambda b: dict(lse=torch.zeros(8, 4)),
    "out aliases q": lambda b: dict(out=b.q),
}


@pytest.mark.parametrize("message", WRONG)
def test_a_layer_that_was_not_planned_is_refused_by_name(message):
    """The first time, and after calls that were not refused; the next one is none the worse."""
    b = batch("cpu")
    plan, given = b.plan(), WRONG[message](b)
    for _ in range(2):
        with pytest.raises(assay_torch.AssayError, match=message + ("|q is null" if "q is on meta" in message else "")):
            plan.run(**{**dict(q=b.q, kv_cache=(b.k, b.v)), **given})
        assert same_bits(plan.run(b.q, (b.k, b.v)), b.call(assay_torch.paged_attention))


WRONG_PLANS = {
    "sinks is a Tensor, expected True where": dict(sinks=torch.zeros(8)),
    "alibi_slopes is .*, expected": dict(alibi_slopes=torch.zeros(4)),
    "alibi_slopes is a bool, expected a tensor": dict(alibi_slopes=True),
    r"qo_indptr is \[4\], expected \[5\]": dict(qo_indptr=torch.zeros(4, dtype=torch.int32)),
    "qo_indptr is a list, expected a tensor": dict(qo_indptr=[0, 1]),
    r"global_lens is torch.int64": dict(global_lens=torch.zeros(4, dtype=torch.int64), dcp_world_size=2),
    "kv_layout is 'NDH'": dict(kv_layout="NDH"),
    "lse_base is 'natural', expected 'e' or 2": dict(lse_base="natural"),
    "qo_indptr and cu_seqlens_q are given": dict(qo_indptr=torch.zeros(5, dtype=torch.int32), cu_seqlens_q=torch.zeros(5, dtype=torch.int32)),
    "num_qo_heads is 7, expected a multiple": dict(num_qo_heads=7),
}


@pytest.mark.parametrize("message", WRONG_PLANS)
def test_a_wrong_plan(message):
    with pytest.raises(assay_torch.AssayError, match=message):
        batch("cpu").plan(**WRONG_PLANS[message])


def test_an_update_that_is_refused_leaves_the_plan():
    b = batch("cpu")
    plan = b.plan()
    longer = batch("cpu", lens=(9,) * 64)
    for message, given in {
        "plan has .* bytes, calls of this shape need": dict(page_table=longer.page_table, seq_lens=longer.seq_lens),
        "seq_lens is": dict(seq_lens=b.seq_lens.long()),
        "qo_indptr is given, and was not at the plan": dict(qo_indptr=torch.zeros(5, dtype=torch.int32)),
        "global_lens is given, and was not at the plan": dict(global_lens=b.seq_lens),
    }.items():
        with pytest.raises(assay_torch.AssayError, match=message):
            plan.update(**given)
        assert plan.seq_lens is b.seq_lens and plan.qo_indptr is plan.global_lens is None
        assert same_bits(plan.run(b.q, (b.k, b.v)), b.call(assay_torch.paged_attention))


def test_sinks_and_gradients_are_not_forgotten():
    b = batch("cpu", sinks=torch.zeros(8), alibi_slopes=torch.ones(8))
    plan = b.plan()
    with pytest.raises(assay_torch.InvalidArgument, match="sinks is not given, expected as at the plan: sinks=True"):
        plan.run(b.q, (b.k, b.v))
    plan.run(b.q, (b.k, b.v), sinks=b.options["sinks"])
    for wants in (b.q, b.options["sinks"], b.options["alibi_slopes"]):
        wants.requires_grad_()
        with pytest.raises(assay_torch.Unsupported, match="paged_attention_v2 has no gradient"):
            plan.run(b.q, (b.k, b.v), sinks=b.options["sinks"])
        wants.requires_grad_(False)


@TREES
def test_a_compiled_layer_takes_the_plans_of_all_steps(device, tree):
    torch._dynamo.reset()
    b = batch(device)
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    layer = torch.compile(lambda plan, q, k, v: plan.run(q + 0, (k, v), return_lse=True), fullgraph=True, backend=counter)
    step = torch.compile(lambda plan: plan.update(), fullgraph=True, backend="aot_eager")
    plan = b.plan(tree=tree)
    for _ in range(2):
        for lens in (b.seq_lens, b.seq_lens.clamp(max=9)):
            want = FUNCTIONS[tree](b.q, (b.k, b.v), b.page_table, lens, return_lse=True)
            assert all(map(same_bits, layer(b.plan(seq_lens=lens, tree=tree), b.q, b.k, b.v), want))
            plan.update(seq_lens=lens.clone())
            plan.memory.fill_(0)
            step(plan)
            assert all(map(same_bits, plan.run(b.q, (b.k, b.v), return_lse=True), want))
    assert counter.frame_count == 1
    with pytest.raises(Exception, match="k is "):
        layer(b.plan(tree=tree), b.q, b.k[:, :, :1], b.v[:, :, :1])


@TREES
def test_who_looks_on_sees_the_operator(tree):
    b = batch("cpu")
    plan, name = b.plan(tree=tree), FUNCTIONS[tree].__name__
    with torch.profiler.profile() as profile:
        got = plan.run(b.q, (b.k, b.v))
    assert any(event.name == f"assay_torch::{name}" for event in profile.events()) and same_bits(got, plan.run(b.q, (b.k, b.v)))
    with FakeTensorMode() as fake:
        q, k, v, table, lens = (fake.from_tensor(x) for x in (b.q, b.k, b.v, b.page_table, b.seq_lens))
        known = b.plan(table, lens, tree=tree)
        out = known.run(q, (k, v))
    assert isinstance(out, FakeTensor) and out.shape == b.q.shape and known.memory.shape == plan.memory.shape


@pytest.mark.parametrize("version, message", [(1, "plan is given, version 1 has none"), (2, "plan has 100 bytes, this call needs")])
def test_the_operator_looks_at_a_plan_itself(version, message):
    """Compiled code hands it over as a tensor."""
    b = batch("cpu")
    call = (b.q, b.k, b.v, b.page_table, b.seq_lens, b.q.clone(), None, torch.zeros(100, dtype=torch.uint8), *(None,) * 7, *b.plan().numbers, version)
    with pytest.raises(assay_torch.AssayError, match=message):
        torch.ops.assay_torch.paged_attention(*call)
