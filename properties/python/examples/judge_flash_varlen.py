#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges FlashAttention-2 as PyTorch has it (ragged queries and keys) and, where FlashInfer is installed, XQA: random calls
on a GPU. judge_flash_varlen.py [OUTPUTS]: until each has so many outputs that were judged, or a minute is over."""
import sys
import time

import assay
import torch


def lengths(count, most):
    return torch.randint(1, most + 1, (count,), dtype=torch.int32, device="cuda")


def ends(counts):
    return torch.cat([torch.zeros_like(counts[:1]), counts.cumsum(0, dtype=torch.int32)])


def flash(draw):
    """One ragged causal call: 64 requests of 1 to 64 queries and up to 192 keys before them."""
    dtype, dim, heads, kv_heads = ((torch.bfloat16, torch.float16)[draw % 2], (128, 64)[draw // 2 % 2], 32, (8, 32)[draw // 4 % 2])
    queries = lengths(64, 64)
    keys = queries + lengths(64, 192)
    q = torch.randn(int(queries.sum()), heads, dim, device="cuda", dtype=dtype) * (1.0, 6.0)[draw // 8 % 2]
    k, v = (torch.randn(int(keys.sum()), kv_heads, dim, device="cuda", dtype=dtype) for _ in "kv")
    out, lse = torch.ops.aten._flash_attention_forward(
        q, k, v, ends(queries), ends(keys), int(queries.max()), int(keys.max()), 0.0, True, False
    )[:2]  # fmt: skip
    return assay.judge(out, q, (k, v), cu_seqlens_q=ends(queries), cu_seqlens_k=ends(keys), lse=lse, lse_layout="HT", like="fa2")


def xqa(draw):
    """One decode call: 256 requests of up to 640 keys, 32 query heads of 4 kv heads, pages of 64."""
    import flashinfer

    lens, pages = lengths(256, 640), 10
    pool = torch.randn(256 * pages, 2, 64, 4, 128, device="cuda", dtype=torch.float16)
    q = torch.randn(256, 32, 128, device="cuda", dtype=torch.float16) * (1.0, 4.0)[draw % 2]
    table = torch.randperm(256 * pages, device="cuda").to(torch.int32).view(256, pages)
    out = flashinfer.decode.xqa_batch_decode_with_kv_cache(
        q, pool, torch.zeros(128 << 20, dtype=torch.uint8, device="cuda"), table, lens, pages * 64, 128**-0.5, 1.0, -1, kv_layout="NHD"
    )
    return assay.judge(out, q, pool, page_table=table, seq_lens=lens, kv_layout="NHD", like="xqa")


def judged(name, call, outputs):
    claimed = findings = calls = 0
    worst, end = 0.0, time.monotonic() + 60
    torch.manual_seed(1)
    while claimed < outputs and time.monotonic() < end:
        try:
            report = call(calls)
        except ImportError:
            return
        claimed, findings, calls, worst = claimed + report.claimed, findings + report.findings, calls + 1, max(worst, report.ratio)
        if not report.passed:
            print(report)
    print(f"{name}: {calls} calls, {claimed} outputs judged, {findings} findings, worst ratio {worst:.3f}, {torch.cuda.get_device_name(0)}", flush=True)


if __name__ == "__main__":
    wanted = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    for name, call in (("fa2", flash), ("xqa", xqa)):
        judged(name, call, wanted)
