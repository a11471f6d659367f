# SPDX-License-Identifier: Apache-2.0
"""PyTorch's scaled dot product attention as decode: each request a call, its pages gathered before.

A request without keys makes no call: its row is written as zeros with LSE -inf.
"""
import assay
from on_gpu import TENSOR_CORES, gather, on_gpu, plain_decode, put, refuse, take, take_lse

LONGEST = 1 << 16  # of a row whose scores all come before its first weight
#: aten/src/ATen/native/transformers/attention.cpp, _scaled_dot_product_attention_math: 16-bit inputs become
#: fp32 tensors, both products are fp32 GEMMs (TF32 is off by default), the softmax is one of fp32.
MATH = assay.Declaration(
    exponential="natural",  # SoftMax: std::exp of x - max
    q_abs_error=2.0**-22,  # q and k are each scaled by sqrt(sm_scale): four roundings of a product's factors
    exp2_rel_error=2.0**-22,  # expf: 2 ulp at most (CUDA's table)
    rcp_rel_error=2.0**-22,  # weights are divided by their sum before the product with V
    sum_depth=128,  # of a row at most 2^16 keys: 1024 threads in vectors, then a tree
    tile_tokens=LONGEST,
)
#: aten/.../flash_attn/src (FlashAttention-2, mma.m16n8k16): softmax.h scales and exponentiates in one ex2,
#: sums in fp32 before P is converted, splits are stored as fp32 (flash_fwd_kernel.h, combine_attn_seqk_parallel).
FLASH = assay.Declaration(
    **TENSOR_CORES,
    p_format="call",  # convert_type<Element>(acc_s) before the second product
    exponential="base2",  # exp2f(x * scale * log2 e - max * scale * log2 e)
    sum_depth=68,  # of 256 keys a thread adds 64, four threads join
    exp2_rel_error=2.0**-22,  # ex2.approx
    log2_abs_error=2.0**-21,  # __logf: lg2.approx times ln 2
    rcp_rel_error=2.0**-22,  # 1.f / sum, a division that may be approximate
    tile_tokens=64,  # kBlockN: 256, 128, 64 for head_dim 64, 128, 256 with splits
    max_splits=128,  # num_splits_heuristic
    merge_stages=1,
)
#: aten/.../mem_eff_attention (CUTLASS, sm80 tiles): kernel_forward.h, iterative_softmax.
EFFICIENT = assay.Declaration(
    **TENSOR_CORES,
    p_format="call",  # AccumLambdaIterator to shared memory as scalar_t
    exponential="base2",  # scores are multiplied by scale * log2 e, then exp2f
    sum_depth=136,  # a row of at most 128 keys of a tile, then the lanes
    exp2_rel_error=2.0**-22,
    log2_abs_error=2.0**-21,  # logf of the sum, the maximum over log2 e
    rcp_rel_error=2.0**-22,  # 1 / s_prime
    tile_tokens=64,  # kKeysPerBlock is 64 or 128
)
#: cuDNN's source is closed: taken to be a flash kernel of 16-bit tensor cores; nothing here is read from code.
CUDNN = assay.Declaration(
    **TENSOR_CORES,
    p_format="call",
    exponential="base2",
    sum_depth=136,
    exp2_rel_error=2.0**-22,
    log2_abs_error=2.0**-21,
    rcp_rel_error=2.0**-22,
    tile_tokens=64,
    max_splits=128,
    merge_stages=1,
)


def takes_math(case):
    plain_decode(case, q_len=True, window=True, lse=False)


def takes_fused(case):
    plain_decode(case)  # windows and several tokens would need a mask, which flash has not


def takes_efficient(case):
    takes_fused(case)
    refuse(case.num_qo_heads > 65535, "at most 65,535 query heads: one block of the grid's y axis each")


def takes_cudnn(case):
    takes_fused(case)
    refuse(case.head_dim > 128, "cuDNN: head_dim up to 128")


def requests(case):
    """Of each request with keys: its row, q [1, heads, q_len, d] and k, v [1, heads, keys, d]; heads expanded."""
    kv = gather(case.k_cache, case.v_cache, case.page_table, case.seq_lens, case.page_size, case.dtype)
    q = put(case.q, case.dtype)
    group = case.num_qo_heads // case.num_kv_heads
    for r, length in enumerate(case.seq_lens):
        if length == 0:
            continue
        pages = put(kv.rows[r], "int32").long()
        k, v = (
            pool[pages].flatten(0, 1)[:length].permute(1, 0, 2).repeat_interleave(group, dim=0)[None].contiguous()
            for pool in (kv.k, kv.v)
        )
        yield r, q[r].permute(1, 0, 2)[None].contiguous(), k, v


def run(case, attend):
    """attend(q, k, v, scale) returns o and a natural LSE or None."""
    import torch

    case.out[...] = 0
    lse = torch.full((case.batch, case.q_len, case.num_qo_heads), float("-inf"))
    for r, q, k, v in requests(case):
        o, row_lse = attend(q, k, v, case.sm_scale)
        take(o[0].permute(1, 0, 2), case.out[r])
        if row_lse is not None:
            lse[r] = row_lse.reshape(case.num_qo_heads, -1)[:, : case.q_len].T
    take_lse(case, lse, "e")


@assay.kernel(family="paged", declaration=MATH, supports=takes_math, determinism="run_to_run")
@on_gpu
def torch_math(case):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def attend(q, k, v, scale):
        mask = None
        if case.q_len > 1 or case.window_left >= 0:
            position = k.shape[2] - case.q_len + torch.arange(case.q_len, device=q.device)[:, None]
            key = torch.arange(k.shape[2], device=q.device)
            mask = key <= position
            if case.window_left >= 0:
                mask &= key >= position - case.window_left
        with sdpa_kernel(SDPBackend.MATH):
            o = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
        return o, None

    run(case, attend)


@assay.kernel(family="paged", declaration=FLASH, supports=takes_fused, determinism="run_to_run")
@on_gpu
def torch_flash(case):
    import torch

    def attend(q, k, v, scale):
        return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, False, False, scale=scale)[:2]

    run(case, attend)


@assay.kernel(family="paged", declaration=EFFICIENT, supports=takes_efficient, determinism="run_to_run")
@on_gpu
def torch_efficient(case):
    import torch

    def attend(q, k, v, scale):
        return torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.0, False, scale=scale)[:2]

    run(case, attend)


@assay.kernel(family="paged", declaration=CUDNN, supports=takes_cudnn)
@on_gpu
def torch_cudnn(case):
    import torch

    def attend(q, k, v, scale):
        return torch.ops.aten._scaled_dot_product_cudnn_attention(
            q, k, v, None, True, 0.0, False, False, scale=scale
        )[:2]

    run(case, attend)


def prepare():
    """Raises what keeps the kernels from running here."""
    import torch

    torch.zeros(1, device="cuda")
