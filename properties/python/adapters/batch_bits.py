#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the bits of other libraries' attention follow the batch, or the run? On this machine's processor.

batch_bits.py [--shape SHAPE] [--draws N] [--seed N] [NAME...]

Prints what assay.assert_batch_invariant and assert_deterministic say of each. It needs torch, and transformers for hf_*.
Pages are gathered first, so that every request has a row as long as the table, with a mask behind its keys."""
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
    last = seq_lens[:, None] - q.shape[2] + torch.arange(q.shape[2])[None]
    return q, k, v, (torch.arange(k.shape[2])[None, None] <= last[:, :, None])[:, None]


def sdpa(q, k, v, mask, scale, backend):
    with sdpa_kernel([backend]):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale, enable_gqa=True).transpose(1, 2)


class _Layer:
    training, is_causal = False, False

    def __init__(self, group):
        self.num_key_value_groups = group


def hf_eager(q, k, v, mask, scale):
    from transformers.models.llama.modeling_llama import eager_attention_forward

    added = torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, torch.finfo(q.dtype).min)
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


_ALL = {"sdpa_math": functools.partial(sdpa, backend=SDPBackend.MATH), "sdpa_flash": functools.partial(sdpa, backend=SDPBackend.FLASH_ATTENTION),
        "hf_eager": hf_eager, "hf_sdpa": hf_sdpa}  # fmt: skip
FUNCTIONS = {f"{name}_{words}": decode(function, dtype) for name, function in _ALL.items() for words, dtype in (("bf16", torch.bfloat16), ("fp32", torch.float32))}


def said(check, function, *arguments, **options):
    try:
        return f"{check(function, *arguments, device='cpu', **options)} calls have the same bits"
    except assay.BitsError as error:
        return str(error).removeprefix("assay: ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="batch=5,heads=8/2,head_dim=64,keys=300")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*", metavar="NAME")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(FUNCTIONS):
        parser.error(f"{sorted(unknown)[0]!r}, expected some of {', '.join(FUNCTIONS)}")
    for name in asked.names or FUNCTIONS:
        print(f"{name} runs: {said(assay.assert_deterministic, FUNCTIONS[name], asked.shape, seed=asked.seed, runs=20)}")
        print(f"{name} batches: {said(assay.assert_batch_invariant, FUNCTIONS[name], asked.shape, seed=asked.seed, draws=asked.draws)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
