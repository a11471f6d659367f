# SPDX-License-Identifier: Apache-2.0
"""The operators as kernels under test: cases of the harness, their tensors as torch's, over the harness' own memory or a copy of it on
a GPU (ASSAY_TORCH_DEVICE)."""
import dataclasses

import assay
import assay_torch
from batches import LAYER
from mirror import tensors

# What the library declares of its own kernels: kernels/host/arithmetic.h, kernels/tree/tree_call.h.
ATTENTION = assay.Declaration.like("assay")
V1 = dataclasses.replace(ATTENTION, max_splits=0, merge_stages=0)
TREE = dataclasses.replace(ATTENTION, merge_stages=2)
MERGE = assay.Declaration(
    exponential="base2", exp2_rel_error=2.0**-22, log2_abs_error=2.0**-22, rcp_rel_error=2.0**-23, max_parallel_states=1
)
PROMISES = dict(determinism="run_to_run", nan_contract="all")
_COMMON = ("sm_scale", "num_splits", "lse_base")


def refusals(function):
    """What the library does not support, a kernel refuses; anything else that it raises is a finding."""
    try:
        function()
    except assay_torch.Unsupported as error:
        raise assay.Unsupported(str(error)) from error


def paged_arguments(t):
    names = (*_COMMON, "window_left", "logits_soft_cap", "alibi_slopes", "sinks", "k_scale", "v_scale")
    given = {name: getattr(t, name) for name in names}
    return dict(given, enable_pdl=bool(t.enable_pdl), out=t.out, lse=t.lse)


def run_paged(case, function, **more):
    with tensors(case) as t:
        refusals(lambda: function(t.q, (t.k_cache, t.v_cache), t.page_table, t.seq_lens, **{**paged_arguments(t), **more}))


@assay.kernel(family="paged_v1", declaration=V1, **PROMISES)
def v1(case):
    run_paged(case, assay_torch.paged_attention, version=1, even_lengths=bool(case.even_lengths))


@assay.kernel(family="paged_v2", declaration=ATTENTION, **PROMISES)
def v2(case):
    run_paged(case, assay_torch.paged_attention)


def plan_of(t, tree):
    sizes = dict(num_qo_heads=t.q.shape[2], num_kv_heads=t.k_cache.shape[2], head_dim=t.q.shape[3], page_size=t.k_cache.shape[1])
    options = {name: x for name, x in paged_arguments(t).items() if name not in LAYER}
    return assay_torch.plan(
        t.page_table, t.seq_lens, tree=tree, dtype=t.q.dtype, kv_dtype=t.k_cache.dtype, max_q_len=t.q_len, sinks=t.sinks is not None,
        **sizes, **options,
    )  # fmt: skip


def run_planned(plan, t):
    plan.run(t.q, (t.k_cache, t.v_cache), **{name: x for name, x in paged_arguments(t).items() if name in LAYER})


def planned(case, tree):
    with tensors(case) as t:
        refusals(lambda: run_planned(plan_of(t, tree), t))


@assay.kernel(family="paged_v2", declaration=ATTENTION, **PROMISES)
def v2_planned(case):
    planned(case, tree=False)


def splits_are_its_own(case):
    """How a tree cuts rows does not follow num_splits as in v2, and only a declared order of keys could say so."""
    return True if case.num_splits == 0 else "num_splits"


@assay.kernel(family="paged", declaration=TREE, supports=splits_are_its_own, **PROMISES)
def tree(case):
    run_paged(case, assay_torch.tree_attention)


@assay.kernel(family="paged", declaration=TREE, supports=splits_are_its_own, **PROMISES)
def tree_planned(case):
    planned(case, tree=True)


@assay.kernel(family="cascade", declaration=ATTENTION, **PROMISES)
def cascade(case):
    with tensors(case) as t:
        levels = [((level.k_cache, level.v_cache), level.page_table, level.seq_lens, level.segment_indptr) for level in t.levels]
        given = {name: getattr(t, name) for name in _COMMON}
        refusals(lambda: assay_torch.cascade_attention(t.q, levels, out=t.out, lse=t.lse, **given))


def merge_operator(name, *arguments):
    """Through torch.ops: the functions make an LSE where a case has none."""
    operator = getattr(assay_torch.functions._ops, name)
    refusals(lambda: operator(*arguments))


def base(case):
    return int(case.lse_base == 2)


@assay.kernel(family="merge_state", declaration=MERGE, determinism="run_to_run", batch_invariance="always", nan_contract="all")
def merge_state(case):
    with tensors(case) as t:
        merge_operator("merge_state", t.o_a, t.lse_a, t.o_b, t.lse_b, t.out, t.lse, base(case))


@assay.kernel(family="merge_states", declaration=MERGE, determinism="run_to_run", nan_contract="all")
def merge_states(case):
    with tensors(case) as t:
        merge_operator("merge_states", t.o_in, t.lse_in, t.indptr, t.out, t.lse, t.num_states, base(case))
