#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the dump flashinfer_gpu.tar.xz: python3 flashinfer_gpu.py FILE, on a machine with a GPU, torch, safetensors, FlashInfer.

FlashInfer writes what it was given and what it returned (FLASHINFER_LOGLEVEL=10). Three requests whose last pages are
partial, full and of one token: decode, causal prefill, a cascade of two levels, merges of two and of three states."""
import os
import pathlib
import sys
import tarfile
import tempfile

HEADS, KV_HEADS, DIM, PAGE = 2, 1, 128, 4
LENGTHS, QUERIES = (15, 8, 5), (3, 1, 4)


def tables(torch, lengths, first=0):
    """indptr, indices, last_page_len; pages of the requests lie in one another's way."""
    counts = [-(-n // PAGE) for n in lengths]
    total = sum(counts)
    order = first + torch.randperm(total, dtype=torch.int32)
    indptr = torch.tensor([0, *counts], dtype=torch.int32).cumsum(0, dtype=torch.int32)
    return [t.cuda() for t in (indptr, order, torch.tensor([(n - 1) % PAGE + 1 for n in lengths], dtype=torch.int32))]


def calls(torch, flashinfer):
    torch.manual_seed(1)
    half = dict(dtype=torch.float16, device="cuda")
    pool = torch.randn(12, 2, PAGE, KV_HEADS, DIM, **half)
    queries = torch.tensor([0, *QUERIES], dtype=torch.int32).cumsum(0, dtype=torch.int32).cuda()
    q = torch.randn(sum(QUERIES), HEADS, DIM, **half)
    one_each = q[: len(LENGTHS)].contiguous()

    def workspace():
        return torch.zeros(64 << 20, dtype=torch.uint8, device="cuda")

    sizes = (HEADS, KV_HEADS, DIM, PAGE)
    decode = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace(), "NHD")
    decode.plan(*tables(torch, LENGTHS), *sizes, q_data_type=torch.float16, kv_data_type=torch.float16)
    decode.run(one_each, pool, return_lse=True)
    prefill = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace(), "NHD")
    prefill.plan(queries, *tables(torch, LENGTHS), *sizes, causal=True)
    prefill.run(q, pool, return_lse=True)
    cascade = flashinfer.MultiLevelCascadeAttentionWrapper(2, workspace(), "NHD")
    prefix, own = tables(torch, (8,)), tables(torch, LENGTHS, first=2)
    ends = [torch.tensor([0, len(LENGTHS)], dtype=torch.int32).cuda(), torch.arange(len(LENGTHS) + 1, dtype=torch.int32).cuda()]
    cascade.plan(ends, *[list(pair) for pair in zip(prefix, own)], *sizes)
    cascade.run(one_each, pool)
    v, s = torch.randn(5, 3, HEADS, DIM, **half), torch.randn(5, 3, HEADS, device="cuda") * 3
    flashinfer.merge_state(v[:, 0].contiguous(), s[:, 0].contiguous(), v[:, 1].contiguous(), s[:, 1].contiguous())
    flashinfer.merge_states(v, s)
    torch.cuda.synchronize()


def main(path):
    with tempfile.TemporaryDirectory() as folder:
        # Constructors are left out: each holds the scratch of 64 MB.
        os.environ.update(FLASHINFER_LOGLEVEL="10", FLASHINFER_DUMP_DIR=folder, FLASHINFER_DUMP_SAFETENSORS="1", FLASHINFER_DUMP_EXCLUDE="*__init__")
        import flashinfer
        import torch

        calls(torch, flashinfer)
        with tarfile.open(path, "w:xz") as file:
            for part in sorted(pathlib.Path(folder).rglob("*")):
                file.add(part, part.relative_to(folder), recursive=False)


if __name__ == "__main__":
    main(sys.argv[1])
