# SPDX-License-Identifier: Apache-2.0
"""Merges of attention states in NumPy, of two and of many: right kernels to start from."""
import assay
import numpy as np

NONE = np.float32(-np.inf)

# Bounds come from these: assay's properties/plugins/DECLARATION.md says how to choose each.
DECLARATION = assay.Declaration(
    exponential="natural",
    exp2_rel_error=2.0**-21,  # np.exp and np.exp2 of float32: 4 units in the last place at most
    log2_abs_error=2.0**-21,
    rcp_rel_error=2.0**-23,
)
PROMISES = {
    "declaration": DECLARATION,
    "determinism": "run_to_run",
    "batch_invariance": "always",
    "nan_contract": "all",
}


@assay.kernel(family="merge_state", name="my_kernel_state", **PROMISES)
def merge_state(case):
    o = np.stack([case.o_a, case.o_b], axis=2)  # copies: the outputs may be inputs
    lse = np.stack([case.lse_a, case.lse_b], axis=2)
    for row in range(case.num_rows):
        for head in range(case.num_heads):
            merge(case, row, head, o[row, head], lse[row, head])


@assay.kernel(family="merge_states", name="my_kernel_states", **PROMISES)
def merge_states(case):
    first = np.arange(case.num_rows + 1) * case.num_states if case.indptr is None else case.indptr
    for row in range(case.num_rows):
        for head in range(case.num_heads):
            states = slice(first[row], first[row + 1])
            merge(case, row, head, case.o_in[states, head], case.lse_in[states, head])


def merge(case, row, head, states, lses):
    """States [n, head_dim], as they are stored, and their LSE [n]."""
    alive = lses != NONE  # the others weigh nothing; NaN is alive
    states, lses = states[alive], lses[alive]
    if len(lses) == 0:
        case.store(case.out[row, head], np.zeros(case.head_dim, np.float32), case.dtype)
        lse = NONE
    elif len(lses) == 1:
        case.out[row, head] = states[0]  # bit for bit
        lse = lses[0]
    else:
        exp, log = (np.exp, np.log) if case.lse_base == "e" else (np.exp2, np.log2)
        top = lses.max()  # NaN where one is
        weights = exp(lses - top)
        total = weights.sum()
        case.store(case.out[row, head], weights @ case.load(states, case.dtype) / total, case.dtype)
        lse = top + log(total)
    if case.lse is not None:
        case.lse[row, head] = lse
