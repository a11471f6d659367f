# SPDX-License-Identifier: Apache-2.0
"""XQA as FlashInfer 0.7.2 ships it (csrc/xqa/mha.cu): flashinfer.decode.xqa_batch_decode_with_kv_cache.

Not declared, for no field says it: a tile's P, where its maximum is below the row's, is multiplied by a rounded
factor and rounded again (:1238), and warps of a block add their outputs from 16-bit copies (:2658).
"""
import assay
import numpy as np
from on_gpu import TENSOR_CORES, built, gather, on_gpu, one_key, plain_decode, put, refuse, take, workspace


def declared(dtype):
    return assay.Declaration(
        **TENSOR_CORES,
        p_format="call",  # toFp16(acc) before the second product
        sum_format=dtype,  # computeRowSum: an MMA of those weights; 1 addition pays for all its fp32 ones
        sum_depth=1,
        exponential="natural",  # exp2f(x * log2 e - max * log2 e), and expf between tiles
        exp2_rel_error=2.0**-21,  # ex2.approx, and a product before it in __expf (-use_fast_math)
        rcp_rel_error=2.0**-23,  # __frcp_rn and a product
        tile_tokens=64,  # warpTile.x
        max_parallel_states=4,  # gemm1NbWarpGrps: 4, 2, 1 for head_dim 64, 128, 256
        max_splits=132,  # sub-sequences: one block each, one block an SM
        merge_stages=1,
        partial_format="call",  # toFp16(accs) of a sub-sequence
        stored_merges=1,
    )


def shape(dtype, head_dim, page_size, group, window=False):
    return dict(dtype=dtype, head_dim=head_dim, page_size=page_size, group=group, window=window)


#: A product for each dtype, for cases are drawn field by field.
BUILDS = [shape("bf16", d, page, group) for d in (128, 64) for page in (16, 64) for group in (1, 4)]
BUILDS += [shape("fp16", 64, 16, 1), shape("fp16", 64, 16, 4), shape("bf16", 64, 16, 4, window=True)]
_FIELDS = {"no_lse": "yes", "kv_dtype": "same", "q_len": 1, "logits_soft_cap": "none", "alibi": "none"}
#: Where calls that are taken are so rare that the program would not meet them by itself.
ONLY = {
    "xqa_bf16": {**_FIELDS, "dtype": "bf16", "head_dim": [64, 128], "page_size": [16, 64], "group_size": [1, 4]},
    "xqa_fp16": {**_FIELDS, "dtype": "fp16", "head_dim": 64, "page_size": 16, "group_size": [1, 4], "window_left": -1},
}


def takes(case, dtype):
    refuse(case.dtype != dtype, f"{dtype} only, of which the declaration speaks")
    # fp8 caches are another kernel (mha_sm90.cu), which is not declared here; several tokens want a mask.
    plain_decode(case, window=True, sinks=True, lse=False)
    refuse(case.page_size not in (16, 32, 64, 128), "page_size is none of 16, 32, 64, 128")
    group = case.num_qo_heads // case.num_kv_heads
    built(BUILDS, **shape(case.dtype, case.head_dim, case.page_size, group, case.window_left >= 0))


def takes_bf16(case):
    takes(case, "bf16")


def takes_fp16(case):
    takes(case, "fp16")


def decode(case):
    import torch
    from flashinfer import decode as peer

    if case.batch == 0:
        return
    kv = gather(case.k_cache, case.v_cache, case.page_table, case.seq_lens, case.page_size, case.dtype)
    width = max(1, max(len(row) for row in kv.rows))
    table = np.full((case.batch, width), len(kv.k) - 1, np.int32)  # a page of NaN
    for r, row in enumerate(kv.rows):
        table[r, : len(row)] = row
    o = peer.xqa_batch_decode_with_kv_cache(
        put(case.q, case.dtype)[:, 0].contiguous(),
        (kv.k, kv.v),
        workspace(),
        put(table, "int32"),
        put(case.seq_lens, "int32").view(torch.uint32),
        width * case.page_size,
        bmm1_scale=case.sm_scale,
        bmm2_scale=1.0,
        window_left=case.window_left,
        sinks=None if case.sinks is None else put(case.sinks, "fp32"),
        kv_layout="NHD",
        enable_pdl=bool(case.enable_pdl),
    )
    take(o, case.out)


@assay.kernel(family="paged", declaration=declared("bf16"), supports=takes_bf16, determinism="run_to_run")
@on_gpu
def xqa_bf16(case):
    decode(case)


@assay.kernel(family="paged", declaration=declared("fp16"), supports=takes_fp16, determinism="run_to_run")
@on_gpu
def xqa_fp16(case):
    decode(case)


def prepare(which=None):
    """Compiles what the kernels need, or one of BUILDS, by a call of one key. Raises what keeps it from that."""
    for chosen in BUILDS if which is None else [BUILDS[which]]:
        decode(one_key(kv_dtype=chosen["dtype"], **chosen))
