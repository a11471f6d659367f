# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's merge_state, merge_state_in_place and merge_states (0.7.2: include/flashinfer/attention/cascade.cuh).

States may be empty here. FlashInfer's kernels multiply what an empty state holds by 0, which assay.h forbids to
matter: NaN there is a difference of contracts, and found as such. From as many states as rows on, merge_states
rounds what each thread row has merged to the dtype of the call before it merges those, which no field says.
"""
import assay
from on_gpu import on_gpu, put, refuse, take, take_lse

MERGE = assay.Declaration(
    exponential="base2",  # cascade.cuh: LSE are of base 2
    exp2_rel_error=2.0**-22,  # math.cuh: ex2.approx.ftz
    log2_abs_error=2.0**-22,  # lg2.approx.ftz
    rcp_rel_error=2.0**-21,  # weights over their sum, a division of -use_fast_math; __fdividef of many
)
HEAD_DIMS = (64, 128, 256, 512)


def takes(case):
    refuse(case.lse_base != 2, "LSE of base 2 only")
    refuse(case.dtype == "fp32", "fp16 and bf16 only")
    refuse(case.head_dim not in HEAD_DIMS, "head_dim is none of 64, 128, 256, 512")


def takes_states(case):
    takes(case)
    refuse(case.indptr is not None, "as many states for every row")


def same(a, b):
    return a is not None and b is not None and a.ctypes.data == b.ctypes.data


@assay.kernel(family="merge_state", declaration=MERGE, supports=takes, determinism="run_to_run",
              batch_invariance="always")
@on_gpu
def flashinfer_merge_state(case):
    from flashinfer import cascade as peer

    if case.num_rows == 0:
        return
    a, b = ((put(o, case.dtype), put(lse, "fp32")) for o, lse in ((case.o_a, case.lse_a), (case.o_b, case.lse_b)))
    if same(case.out, case.o_a) or same(case.out, case.o_b):
        (o, lse), other = (a, b) if same(case.out, case.o_a) else (b, a)
        peer.merge_state_in_place(o, lse, *other)
    else:
        o, lse = peer.merge_state(*a, *b)
    take(o, case.out)
    take_lse(case, lse, 2)


@assay.kernel(family="merge_states", declaration=MERGE, supports=takes_states, determinism="run_to_run")
@on_gpu
def flashinfer_merge_states(case):
    from flashinfer import cascade as peer

    if case.num_rows == 0:
        return
    rows, states = case.num_rows, case.num_states
    v = put(case.o_in[: rows * states], case.dtype).reshape(rows, states, case.num_heads, case.head_dim)
    s = put(case.lse_in[: rows * states], "fp32").reshape(rows, states, case.num_heads)
    o, lse = peer.merge_states(v, s)
    take(o, case.out)
    take_lse(case, lse, 2)


def prepare():
    """Compiles the module of all three. Raises what keeps it from that."""
    from flashinfer import cascade as peer

    peer.get_cascade_module()
