#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the bits of an attention follow the batch, or the run?

batch_bits.py [--shape SHAPE] [--draws N] [--seed N] [--device cpu|cuda] [NAME...]    sdpa_* and hf_* where none is named

Prints what assay.assert_batch_invariant and assert_deterministic say of each. It needs torch, transformers for hf_*, vLLM's CPU
build for vllm_*, assay_torch and its library for assay_*, and a GPU with Triton for triton. Pages are gathered for sdpa_* and
hf_*, so that every request has a row as long as the table, with a mask behind its keys; the others read pages of their own."""
import argparse
import functools
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import assay


def gathered(q, k_cache, v_cache, page_table, seq_lens):
    """q, K and V [batch, heads, tokens, dim], and which key each query sees."""
    q = q[:, :, None] if q.dim() == 3 else q.transpose(1, 2)
    k, v = (cache[page_table.long()].flatten(1, 2).transpose(1, 2) for cache in (k_cache, v_cache))
    last = seq_lens[:, None] - q.shape[2] + torch.arange(q.shape[2], device=q.device)[None]
    return q, k, v, (torch.arange(k.shape[2], device=q.device)[None, None] <= last[:, :, None])[:, None]


def sdpa(q, k, v, mask, scale, backend):
    with sdpa_kernel([backend]):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale, enable_gqa=True).transpose(1, 2)


class _Layer:
    training, is_causal = False, False

    def __init__(self, group):
        self.num_key_value_groups = group


def hf_eager(q, k, v, mask, scale):
    from transformers.models.llama.modeling_llama import eager_attention_forward

    added = torch.zeros(mask.shape, dtype=q.dtype, device=q.device).masked_fill(~mask, torch.finfo(q.dtype).min)
    return eager_attention_forward(_Layer(q.shape[1] // k.shape[1]), q, k, v, added, scaling=scale)[0]


def hf_sdpa(q, k, v, mask, scale):
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    return sdpa_attention_forward(_Layer(q.shape[1] // k.shape[1]), q, k, v, mask, scaling=scale, is_causal=False)[0]


def decode(attention, dtype):
    def function(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
        *tensors, mask = gathered(q, k_cache, v_cache, page_table, seq_lens)
        out = attention(*(tensor.to(dtype) for tensor in tensors), mask, sm_scale)
        return out[:, 0] if q.dim() == 3 else out

    return function


def vllm_cpu(q, k_cache, v_cache, page_table, seq_lens, sm_scale, may_split):
    """vLLM's operators; `may_split`: whether the scheduler may split rows."""
    from vllm import _custom_ops as ops
    from vllm.v1.attention.backends.cpu_attn import _get_attn_isa

    pages, slots, heads, dim = k_cache.shape
    isa, rows = _get_attn_isa(q.dtype, slots, dim), q.reshape(-1, *q.shape[-2:])
    k, v = (torch.zeros(pages, heads, slots, dim, dtype=q.dtype) for _ in range(2))
    ops.cpu_attn_reshape_and_cache(k_cache.flatten(0, 1), v_cache.flatten(0, 1), k, v, torch.arange(pages * slots), isa)
    begins = torch.arange(len(q) + 1, dtype=torch.int32) * (len(rows) // len(q))
    plan = ops.cpu_attn_get_scheduler_metadata(len(q), rows.shape[1], heads, dim, seq_lens, q.dtype, begins, True, -1, isa, may_split)
    out = torch.empty_like(rows)
    ops.cpu_attention_with_kv_cache(rows, k, v, out, begins, seq_lens, sm_scale, True, None, -1, page_table, 0.0, plan, None)
    return out.reshape(q.shape)


def vllm_split(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return vllm_cpu(q, k_cache, v_cache, page_table, seq_lens, sm_scale, True)


def vllm_whole(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return vllm_cpu(q, k_cache, v_cache, page_table, seq_lens, sm_scale, False)


def ours(version, num_splits):
    def function(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
        from assay_torch import paged_attention

        return paged_attention(q, (k_cache, v_cache), page_table, seq_lens, sm_scale=sm_scale, version=version, num_splits=num_splits)

    return function


def triton(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    from triton_decode import launch

    return launch(q, k_cache, v_cache, page_table, seq_lens, sm_scale)[0]


_ALL = {"sdpa_math": functools.partial(sdpa, backend=SDPBackend.MATH), "sdpa_flash": functools.partial(sdpa, backend=SDPBackend.FLASH_ATTENTION),
        "hf_eager": hf_eager, "hf_sdpa": hf_sdpa}  # fmt: skip
FUNCTIONS = {f"{name}_{words}": decode(function, dtype) for name, function in _ALL.items() for words, dtype in (("bf16", torch.bfloat16), ("fp32", torch.float32))}
FUNCTIONS.update(vllm_split=vllm_split, vllm_whole=vllm_whole, triton=triton)
FUNCTIONS.update(assay_v1=ours(1, 0), assay_v2=ours(2, 0), assay_v2_of_4_splits=ours(2, 4))


def said(check, function, *arguments, **options):
    try:
        return f"{check(function, *arguments, **options)} calls have the same bits"
    except assay.BitsError as error:
        return str(error).removeprefix("assay: ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="batch=5,heads=8/2,head_dim=64,keys=300")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("names", nargs="*", metavar="NAME")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(FUNCTIONS):
        parser.error(f"{sorted(unknown)[0]!r}, expected some of {', '.join(FUNCTIONS)}")
    where = dict(seed=asked.seed, device=asked.device)
    for name in asked.names or [name for name in FUNCTIONS if name.startswith(("sdpa", "hf"))]:
        print(f"{name} runs: {said(assay.assert_deterministic, FUNCTIONS[name], asked.shape, runs=20, **where)}")
        print(f"{name} batches: {said(assay.assert_batch_invariant, FUNCTIONS[name], asked.shape, draws=asked.draws, **where)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
