# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's MultiLevelCascadeAttentionWrapper (0.7.2), on its fa2 backend.

Each level is a call of the fa2 kernel over all requests, whose O is rounded to the dtype of the call; level by
level they are merged in place, and rounded again. No field says so: the rounding of P bounds one of them.
"""
import math
import types

import assay
import numpy as np
from flashinfer_decode import tensor_cores
from on_gpu import csr, gather, on_gpu, one_key, put, refuse, take, torch_dtype, workspace

#: Two stages of a level's splits, and a merge for each of up to 7 further levels.
STAGES = 2 + 7
BUILDS = [(dtype, head_dim) for dtype in ("bf16", "fp16") for head_dim in (128, 64)]


def takes_dtype(case, dtype):
    refuse(case.dtype != dtype, f"{dtype} only, of which the declaration speaks")
    refuse(case.lse is not None, "returns no LSE")
    refuse(case.head_dim not in (64, 128), "not compiled for these checks: head_dim 256")
    threads = case.num_qo_heads * case.head_dim // 8  # of MergeStateInPlace: eight elements a thread, all heads a block
    refuse(threads > 1024, f"the merge of levels needs {threads} threads a block, more than 1,024")


def takes_bf16(case):
    takes_dtype(case, "bf16")


def takes_fp16(case):
    takes_dtype(case, "fp16")


def level_of(case, level, page_size, first):
    """k, v [pages, page_size, ..] of a level on the GPU, and the host's qo_indptr, kv indptr, page ids, last lengths.

    page_size divides the level's own; ids count from `first`. Requests outside all segments join an empty one,
    for a qo_indptr begins with 0 and ends with the batch.
    """
    pool = gather(level.k_cache, level.v_cache, level.page_table, level.seq_lens, level.page_size, case.dtype)
    parts = level.page_size // page_size
    k, v = (t.reshape(-1, page_size, *t.shape[2:]) for t in (pool.k, pool.v))
    lengths = [int(n) for n in level.seq_lens]
    rows = [
        (row[:, None] * parts + np.arange(parts)).reshape(-1)[: -(-n // page_size)] + first
        for row, n in zip(pool.rows, lengths)
    ]
    bounds = [int(r) for r in level.segment_indptr]
    if bounds[0] > 0:
        bounds, rows, lengths = [0, *bounds], [np.zeros(0, np.int32), *rows], [0, *lengths]
    if bounds[-1] < case.batch:
        bounds, rows, lengths = [*bounds, case.batch], [*rows, np.zeros(0, np.int32)], [*lengths, 0]
    return k, v, np.array(bounds, np.int32), *csr(rows, lengths, page_size)


def cascade(case):
    import torch
    from flashinfer import cascade as peer

    if case.batch == 0:
        return
    # The wrapper has one pool and one page size: the largest that divides those of all levels.
    page_size = math.gcd(*(level.page_size for level in case.levels))
    ks, vs, plans = [], [], []
    for level in case.levels:
        k, v, *plan = level_of(case, level, page_size, sum(map(len, ks)))
        ks.append(k)
        vs.append(v)
        plans.append(map(torch.from_numpy, plan))
    wrapper = peer.MultiLevelCascadeAttentionWrapper(len(case.levels), workspace(), "NHD")
    for one in wrapper._batch_prefill_wrappers:
        one._backend = "fa2"  # there is no argument for it, and "auto" is another kernel on Hopper
    wrapper.plan(
        *map(list, zip(*plans)),
        case.num_qo_heads,
        case.num_kv_heads,
        case.head_dim,
        page_size,
        sm_scale=case.sm_scale,
        q_data_type=torch_dtype(case.dtype),
    )
    take(wrapper.run(put(case.q, case.dtype), (torch.cat(ks), torch.cat(vs))), case.out)


@assay.kernel(family="cascade", declaration=tensor_cores("bf16", STAGES), supports=takes_bf16, determinism="run_to_run")
@on_gpu
def flashinfer_cascade_bf16(case):
    cascade(case)


@assay.kernel(family="cascade", declaration=tensor_cores("fp16", STAGES), supports=takes_fp16, determinism="run_to_run")
@on_gpu
def flashinfer_cascade_fp16(case):
    cascade(case)


def prepare(which=None):
    """Compiles what the kernels need, or one of BUILDS, by a call of one key in two levels."""
    for dtype, head_dim in BUILDS if which is None else [BUILDS[which]]:
        case = one_key(dtype=dtype, kv_dtype=dtype, head_dim=head_dim)
        level = types.SimpleNamespace(**vars(case), segment_indptr=np.array([0, 1], np.int32))
        case.q, case.out, case.levels = case.q[:, 0], case.out[:, 0], [level, level]
        cascade(case)
