# SPDX-License-Identifier: Apache-2.0
"""A paged decode kernel in Triton, of our own: one program a request, kv head and 16 query heads; no splits.

16-bit caches, any group and page size, windows; keys in tiles of 64 through an online softmax of base 2.
"""
import assay
import numpy as np
from on_gpu import LOG2E, TENSOR_CORES, gather, on_gpu, one_key, plain_decode, put, take, take_lse

try:
    import triton
    import triton.language as tl
except ImportError:  # what is taken can be asked without it
    triton = None

TILE = 64
ROWS = 16
TRITON = assay.Declaration(
    **TENSOR_CORES,  # tl.dot of 16 rows is mma.m16n8k16
    p_format="call",  # p.to(v.dtype)
    exponential="base2",
    sum_depth=TILE,  # tl.sum over a tile: a tree, and what a thread holds in front of it
    exp2_rel_error=2.0**-22,  # tl.exp2 is ex2.approx
    log2_abs_error=2.0**-22,  # tl.log2
    rcp_rel_error=2.0**-22,  # div.full
    tile_tokens=TILE,
)


def takes(case):
    plain_decode(case, window=True)


if triton is not None:

    @triton.jit(do_not_specialize=["table_stride", "window_left", "group", "kv_heads", "page_size"])
    def _decode(
        q, k, v, o, lse, table, table_stride, lengths, scale, window_left, group, kv_heads, page_size,
        D: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr,
    ):  # fmt: skip
        request = tl.program_id(0).to(tl.int64)
        kv_head = tl.program_id(1)
        rows = tl.program_id(2) * ROWS + tl.arange(0, ROWS)
        there = rows < group
        dims = tl.arange(0, D)
        heads = (request * kv_heads + kv_head) * group + rows
        at = heads[:, None] * D + dims[None, :]
        query = tl.load(q + at, mask=there[:, None], other=0.0)
        length = tl.load(lengths + request)
        begin = tl.where(window_left >= 0, tl.maximum(length - 1 - window_left, 0), 0)
        top = tl.full((ROWS,), float("-inf"), tl.float32)
        total = tl.zeros((ROWS,), tl.float32)
        acc = tl.zeros((ROWS, D), tl.float32)
        for first in range(begin, length, TILE):
            tokens = first + tl.arange(0, TILE)
            live = tokens < length
            page = tl.load(table + request * table_stride + tokens // page_size, mask=live, other=0).to(tl.int64)
            key = ((page * page_size + tokens % page_size) * kv_heads + kv_head)[:, None] * D + dims[None, :]
            keys = tl.load(k + key, mask=live[:, None], other=0.0)
            scores = tl.dot(query, tl.trans(keys)) * scale
            scores = tl.where(live[None, :], scores, float("-inf"))
            new_top = tl.maximum(top, tl.max(scores, axis=1))
            # -inf - -inf would be NaN where all scores are -inf.
            base = tl.where(new_top == float("-inf"), 0.0, new_top)
            weights = tl.exp2(scores - base[:, None])
            rescale = tl.exp2(top - base)
            values = tl.load(v + key, mask=live[:, None], other=0.0)
            total = total * rescale + tl.sum(weights, axis=1)
            acc = acc * rescale[:, None] + tl.dot(weights.to(values.dtype), values)
            top = new_top
        empty = total == 0.0
        out = acc / tl.where(empty, 1.0, total)[:, None]
        tl.store(o + at, out.to(query.dtype), mask=there[:, None])
        tl.store(lse + heads, tl.where(empty, float("-inf"), top + tl.log2(total)), mask=there)


def launch(q, k_cache, v_cache, page_table, seq_lens, sm_scale, window_left=-1):
    """(out, LSE in base 2) of tensors on a GPU: q [batch, num_qo_heads, head_dim], or with 1 behind batch, caches [pages,
    page_size, num_kv_heads, head_dim]."""
    import torch

    page_size, kv_heads, dim = k_cache.shape[1:]
    group = q.shape[-2] // kv_heads
    o = torch.empty_like(q)
    lse = torch.empty((len(q), q.shape[-2]), dtype=torch.float32, device=q.device)
    scale = float(np.float32(sm_scale) * np.float32(LOG2E))
    _decode[(len(q), kv_heads, triton.cdiv(group, ROWS))](
        q, k_cache, v_cache, o, lse, page_table, page_table.shape[1], seq_lens, scale, window_left, group, kv_heads, page_size,
        D=dim, ROWS=ROWS, TILE=TILE,
    )  # fmt: skip
    return o, lse


@assay.kernel(family="paged", declaration=TRITON, supports=takes, determinism="run_to_run", batch_invariance="always",
              nan_contract="all")
@on_gpu
def triton_decode(case):
    if triton is None:
        raise ImportError("no Triton here")
    if case.batch == 0:
        return
    kv = gather(case.k_cache, case.v_cache, case.page_table, case.seq_lens, case.page_size, case.dtype)
    table = np.zeros((case.batch, max(1, max(len(row) for row in kv.rows))), np.int32)
    for r, row in enumerate(kv.rows):
        table[r, : len(row)] = row
    o, lse = launch(put(case.q, case.dtype), kv.k, kv.v, put(table, "int32"), put(case.seq_lens, "int32"), case.sm_scale, case.window_left)
    take(o, case.out)
    take_lse(case, lse, 2)


def prepare():
    """Compiles it for every dtype and head_dim. Raises what keeps it from that."""
    for dtype in ("bf16", "fp16"):
        for head_dim in (64, 128, 256):
            triton_decode(one_key(dtype=dtype, kv_dtype=dtype, head_dim=head_dim))
