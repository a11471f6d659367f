#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges PyTorch's scaled_dot_product_attention on a GPU, backend by backend: judge_sdpa.py [SECONDS]

Right kernels first (random shapes of decode and causal prefill, scores of two sizes), then ten mistakes between tensors
and kernel, beside what allclose says of them at 1e-2 and 1e-3.
"""
import sys
import time

import assay
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa

BACKENDS = {
    "flash": (SDPBackend.FLASH_ATTENTION, "sdpa_flash"),
    "efficient": (SDPBackend.EFFICIENT_ATTENTION, "sdpa_efficient"),
    "math": (SDPBackend.MATH, "sdpa_math"),
    "cudnn": (SDPBackend.CUDNN_ATTENTION, "sdpa_flash"),  # closed source: taken to be a flash kernel
}
#: batch, query heads, kv heads, head_dim, queries, keys; as many queries as keys are causal.
SHAPES = [
    (4, 16, 4, 128, 1, 257), (2, 8, 8, 64, 1, 1024), (3, 8, 2, 128, 1, 33), (8, 16, 4, 64, 1, 1), (1, 8, 1, 128, 96, 96),
    (2, 4, 4, 64, 200, 200), (2, 8, 2, 128, 64, 64), (1, 4, 2, 256, 33, 33), (4, 32, 8, 128, 1, 2048),
]  # fmt: skip


def judge(out, q, k, v, like):
    q, k, v, out = (t.transpose(1, 2) for t in (q, k, v, out))
    return assay.judge(out, q, (k, v), seq_lens=[k.shape[1]] * k.shape[0], like=like)


def call(backend, dtype, shape, size):
    """None where PyTorch has no such kernel."""
    batch, heads, kv_heads, dim, queries, keys = shape
    q = torch.randn(batch, heads, queries, dim, device="cuda", dtype=dtype) * size
    k, v = (torch.randn(batch, kv_heads, keys, dim, device="cuda", dtype=dtype) for _ in "kv")
    wide = [t.repeat_interleave(heads // kv_heads, 1) for t in (k, v)]
    try:
        with sdpa_kernel(BACKENDS[backend][0]):
            out = sdpa(q, *wide, is_causal=queries > 1)
    except RuntimeError as error:
        if "No available kernel" in str(error):
            return None
        raise
    return judge(out, q, k, v, BACKENDS[backend][1])


def right_kernels(seconds):
    end, totals = time.monotonic() + seconds, {name: [0, 0, 0.0] for name in BACKENDS}
    while time.monotonic() < end:
        for backend, total in totals.items():
            for dtype in (torch.bfloat16, torch.float16):
                for shape in SHAPES:
                    for size in (1.0, 8.0):
                        report = call(backend, dtype, shape, size)
                        if report is None:
                            continue
                        total[0] += report.claimed
                        total[1] += report.findings
                        total[2] = max(total[2], report.ratio)
                        if not report.passed:
                            print(backend, dtype, shape, size, report, sep="\n")
    for backend, (claimed, findings, ratio) in totals.items():
        print(f"{backend:10} {claimed:>10} judged, {findings} not inside, worst |error| / allowed {ratio:.3f}")


def shifted(tensor, heads):
    return tensor.roll(heads, 1)


def through_fp8(tensor):
    return tensor.to(torch.float8_e4m3fn).to(tensor.dtype)


def without(tensor, request, head, key):
    tensor = tensor.clone()
    tensor[request, head, key] = 0
    return tensor


MISTAKES = {
    "last key dropped": lambda q, k, v: sdpa(q, k[:, :, :-1], v[:, :, :-1]),
    "first key dropped": lambda q, k, v: sdpa(q, k[:, :, 1:], v[:, :, 1:]),
    "keys of the next head": lambda q, k, v: sdpa(q, shifted(k, 1), v),
    "values of the next kv head": lambda q, k, v: sdpa(q, k, shifted(v, 4)),
    "queries of the next request": lambda q, k, v: sdpa(q.roll(1, 0), k, v),
    "scale off by 0.8 %": lambda q, k, v: sdpa(q, k, v, scale=1 / 11.4),
    "two keys the same": lambda q, k, v: sdpa(q, torch.cat([k[:, :, :17], k[:, :, 18:19], k[:, :, 18:]], 2), v),
    "one value lost": lambda q, k, v: sdpa(q, k, without(v, 1, 5, 100)),
    "keys through fp8": lambda q, k, v: sdpa(q, through_fp8(k), v),
    "values through fp8": lambda q, k, v: sdpa(q, k, through_fp8(v)),
}


def mistakes():
    q = torch.randn(2, 8, 1, 128, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(2, 2, 300, 128, device="cuda", dtype=torch.bfloat16) for _ in "kv")
    wide = [t.repeat_interleave(4, 1) for t in (k, v)]
    exact = sdpa(q.float(), *(t.float() for t in wide))
    for name, run in {"none": sdpa, **MISTAKES}.items():
        out = run(q, *wide)
        seen = [not judge(out, q, k, v, "sdpa_flash").passed]
        seen += [not torch.allclose(out.float(), exact, atol=t, rtol=t) for t in (1e-2, 1e-3)]
        print(f"{name:28} judge {seen[0]!s:5}  1e-2 {seen[1]!s:5}  1e-3 {seen[2]}")


if __name__ == "__main__":
    right_kernels(float(sys.argv[1]) if len(sys.argv) > 1 else 60)
    mistakes()
