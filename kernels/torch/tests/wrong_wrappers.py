# SPDX-License-Identifier: Apache-2.0
"""Operators around right kernels that are wrong: mistakes of a binding, one each."""
import assay
import assay_torch
from assay_torch import paged
from judged_kernels import ATTENTION, MERGE, PROMISES, V1, base, merge_operator, plan_of, refusals, run_paged, run_planned
from mirror import tensors


class _Forgetful(paged.Pool):
    """Prepared calls by shape alone."""

    def take(self, key):
        return super().take(self._without_strides(key))

    def give(self, key, call):
        super().give(self._without_strides(key), call)

    def _without_strides(self, key):
        return tuple(part for i, part in enumerate(key) if i not in (4, 8, 12, 16, 20, 24))


_forgetful = _Forgetful()


@assay.kernel(family="paged_v1", declaration=V1, **PROMISES)
def strides_of_an_earlier_call(case):
    paged._pool = _forgetful
    run_paged(case, assay_torch.paged_attention, version=1)


@assay.kernel(family="paged_v2", declaration=ATTENTION, **PROMISES)
def output_in_a_copy(case):
    run_paged(case, lambda q, *given, out, **more: assay_torch.paged_attention(q, *given, out=out.contiguous(), **more))


@assay.kernel(family="paged_v2", declaration=ATTENTION, **PROMISES)
def natural_base_always(case):
    run_paged(case, assay_torch.paged_attention, lse_base="e")


@assay.kernel(family="paged", declaration=ATTENTION, **PROMISES)
def plan_of_another_step(case):
    """Planned for lengths that have grown by one key since."""
    with tensors(case) as t:
        then = (t.seq_lens - 1).clamp(min=0)
        earlier = type(t)(**{**vars(t), "seq_lens": then})
        refusals(lambda: run_planned(of_another_step(plan_of(earlier, tree=False), t), t))


def of_another_step(plan, t):
    """Its calls have the lengths of this one."""
    plan.seq_lens = t.seq_lens
    return plan


@assay.kernel(family="merge_states", declaration=MERGE, **PROMISES)
def one_state_fewer(case):
    with tensors(case) as t:
        fewer = t.num_states - 1 if t.indptr is not None and t.num_states > 1 else t.num_states
        merge_operator("merge_states", t.o_in, t.lse_in, t.indptr, t.out, t.lse, fewer, base(case))


WRONG = (strides_of_an_earlier_call, output_in_a_copy, natural_base_always, plan_of_another_step, one_state_fewer)
