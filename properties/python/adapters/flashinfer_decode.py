# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's BatchDecodeWithPagedKVCacheWrapper, on CUDA cores and on tensor cores (its fa2 backend).

Judged with its source of 0.7.2 (include/flashinfer/attention: decode.cuh, prefill.cuh, cascade.cuh, state.cuh).
Splits are stored as (O, LSE) with O in the dtype of the output, and merged from that. flashinfer_cuda_cores_as_fp32
is the same kernel held to splits in fp32.
"""
import assay
import numpy as np
from on_gpu import TENSOR_CORES, built, csr, gather, on_gpu, plain_decode, put, refuse, take, take_lse
from on_gpu import one_key, torch_dtype, workspace

_SPLITS = dict(
    max_splits=256,  # of at least 65 keys each (scheduler.cuh: 128 tokens in whole pages); rows here have 4160 at most
    merge_stages=2,  # PersistentVariableLengthMergeStates: each thread row merges some, then those are merged
)
_APPROXIMATE = dict(
    exponential="base2",  # variants.cuh: sm_scale * log2 e is one factor
    exp2_rel_error=2.0**-22,  # math.cuh: ex2.approx.ftz
    log2_abs_error=2.0**-22,  # lg2.approx.ftz
    rcp_rel_error=2.0**-22,  # rcp.approx.ftz, and __fdividef after a merge
    tanh_abs_error=2.0**-11 + 2.0**-22,  # tanh.approx of a product with rcp.approx of the cap
)
_CUDA_CORES = dict(
    **_APPROXIMATE,
    **_SPLITS,
    sum_depth=16,  # compute_qk: the keys of a tile one after the other
    tile_tokens=2,  # bdy * tile_size_per_bdx keys: 4 or 2 (fp8) with group 1, else the group
    max_parallel_states=32,  # bdz: 128 threads over (head_dim / vector) * group; fp8, head_dim 64: 32
)
#: decode.cuh and prefill.cuh: tmp_v is DTypeO where a row is split; cascade.cuh reads it once.
_STORED = dict(partial_format="call", stored_merges=1)
CUDA_CORES = assay.Declaration(**_CUDA_CORES, **_STORED)
CUDA_CORES_FP32 = assay.Declaration(**_CUDA_CORES)


def tensor_cores(dtype, merge_stages=2):
    """Of the fa2 kernel. Its row sums are MMAs of the weights rounded for the second product (compute_sfm_v)."""
    return assay.Declaration(
        **TENSOR_CORES,
        **_APPROXIMATE,
        **{**_SPLITS, "merge_stages": merge_stages},
        **_STORED,
        p_format="call",  # s_frag_f16
        sum_format=dtype,  # weights enter it rounded; its additions are fp32, so that 1 of them pays for all
        sum_depth=1,
        tile_tokens=32,  # 16 * NUM_MMA_KV keys of a warp: 64 and 32 with head_dim 64 and 128
        max_parallel_states=4,  # NUM_WARPS_KV
    )


def shape(dtype, kv_dtype, head_dim, window=False, softcap=False):
    return dict(dtype=dtype, kv_dtype=kv_dtype, head_dim=head_dim, window=window, softcap=softcap)


SIXTEEN_BIT = [shape(d, d, h) for d in ("bf16", "fp16") for h in (128, 64)]
SIXTEEN_BIT += [shape("bf16", "bf16", 64, window=True), shape("bf16", "bf16", 64, softcap=True)]
FP8 = [shape("bf16", "e4m3", 128), shape("fp16", "e5m2", 64)]
GROUPS = (1, 2, 3, 4, 6, 8, 16)  # utils.cuh: DISPATCH_GQA_GROUP_SIZE
#: What `prepare` compiles: (on tensor cores, shape).
BUILDS = [(cores, s) for s in SIXTEEN_BIT for cores in (False, True)] + [(False, s) for s in FP8]


def shape_of(case):
    return shape(case.dtype, case.kv_dtype, case.head_dim, case.window_left >= 0, case.logits_soft_cap > 0)


def scales_of_tensor(case):
    refuse(any(s is not None and len(s) > 1 for s in (case.k_scale, case.v_scale)), "one k_scale, one v_scale only")


def takes_cuda_cores(case):
    plain_decode(case, window=True, softcap=True)
    refuse(case.num_qo_heads // case.num_kv_heads not in GROUPS, "group size is none of 1, 2, 3, 4, 6, 8, 16")
    built(SIXTEEN_BIT, **shape_of(case))


def takes_fp8(case):
    plain_decode(case, window=True, softcap=True, fp8=True)
    refuse(case.num_qo_heads // case.num_kv_heads not in GROUPS, "group size is none of 1, 2, 3, 4, 6, 8, 16")
    refuse(case.kv_dtype == case.dtype, "fp8 caches: see the kernel of 16-bit ones")
    scales_of_tensor(case)
    built(FP8, **shape_of(case))


def takes_tensor_cores(case, dtype):
    plain_decode(case, q_len=True, window=True, softcap=True)
    refuse(case.dtype != dtype, f"{dtype} only, of which the declaration speaks")
    # plan() raises ValueError for these.
    refuse(case.q_len > 1 and np.any(case.seq_lens < case.q_len), "several query tokens need as many keys")
    built(SIXTEEN_BIT, **shape_of(case))


def takes_bf16(case):
    takes_tensor_cores(case, "bf16")


def takes_fp16(case):
    takes_tensor_cores(case, "fp16")


def decode(case, cores, **plan):
    """Plans and runs one call; `plan` goes to the wrapper's."""
    import torch
    from flashinfer import decode as peer

    if case.batch == 0:
        return
    kv = gather(case.k_cache, case.v_cache, case.page_table, case.seq_lens, case.page_size, case.kv_dtype)
    wrapper = peer.BatchDecodeWithPagedKVCacheWrapper(workspace(), "NHD", use_tensor_cores=cores, backend="fa2")
    wrapper.plan(
        *map(torch.from_numpy, csr(kv.rows, case.seq_lens, case.page_size)),
        case.num_qo_heads,
        case.num_kv_heads,
        case.head_dim,
        case.page_size,
        window_left=case.window_left,
        logits_soft_cap=case.logits_soft_cap or None,
        q_data_type=torch_dtype(case.dtype),
        kv_data_type=torch_dtype(case.kv_dtype),
        sm_scale=case.sm_scale,
        q_len_per_req=case.q_len,
        **plan,
    )
    q = put(case.q, case.dtype).flatten(0, 1)
    scales = {
        name: float(scale[0])
        for name, scale in (("k_scale", case.k_scale), ("v_scale", case.v_scale))
        if scale is not None
    }
    o, lse = wrapper.run(q, (kv.k, kv.v), return_lse=True, enable_pdl=bool(case.enable_pdl), **scales)
    take(o, case.out)
    take_lse(case, lse, 2)  # state.cuh: m + log2 d


@assay.kernel(family="paged", declaration=CUDA_CORES, supports=takes_cuda_cores, determinism="run_to_run")
@on_gpu
def flashinfer_cuda_cores(case):
    decode(case, False)


@assay.kernel(family="paged", declaration=CUDA_CORES_FP32, supports=takes_cuda_cores, determinism="run_to_run")
@on_gpu
def flashinfer_cuda_cores_as_fp32(case):
    decode(case, False)


@assay.kernel(family="paged", declaration=CUDA_CORES, supports=takes_fp8, determinism="run_to_run")
@on_gpu
def flashinfer_cuda_cores_fp8(case):
    decode(case, False)  # v_scale multiplies the rounded output, which is rounded again: no field says so


@assay.kernel(family="paged", declaration=tensor_cores("bf16"), supports=takes_bf16, determinism="run_to_run")
@on_gpu
def flashinfer_tensor_cores_bf16(case):
    decode(case, True)


@assay.kernel(family="paged", declaration=tensor_cores("fp16"), supports=takes_fp16, determinism="run_to_run")
@on_gpu
def flashinfer_tensor_cores_fp16(case):
    decode(case, True)


def prepare(which=None):
    """Compiles what the kernels need, or one of BUILDS, by a call of one key. Raises what keeps it from that."""
    for cores, chosen in BUILDS if which is None else [BUILDS[which]]:
        decode(one_key(**chosen), cores)
