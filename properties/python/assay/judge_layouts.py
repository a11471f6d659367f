# SPDX-License-Identifier: Apache-2.0
"""Layouts of caches that become pages: packed K, dense caches read by an index or padded on the left."""
import numpy as np

from .judge_inputs import host
from .tensors import Tensor


def unpacked(k, v):
    """k and v as [pages, slots, heads, dim] of K [pages, heads, dim / x, slots, x] and V [pages, heads, dim, slots]."""
    pages, heads, chunks, slots, x = k.shape
    if len(v.shape) != 4 or v.shape != (pages, heads, chunks * x, slots):
        raise ValueError(
            f"assay: v has shape {list(v.shape)}, beside packed K of {list(k.shape)} expected [{pages}, {heads}, {chunks * x}, {slots}]"
        )
    return k.transpose(0, 3, 1, 2, 4).reshape(pages, slots, heads, chunks * x), v.transpose(0, 3, 1, 2)


def dense_pages(k, v, seq_lens, cache_batch_idx, leftpad):
    """(k, v, page_table, page_indptr, seq_lens) of caches [batch, slots, heads, dim] without a table."""
    lengths = host(seq_lens)
    index = np.arange(len(lengths)) if cache_batch_idx is None else host(cache_batch_idx)
    if leftpad is None:
        return k, v, Tensor("page_table", index[:, None].copy()), None, seq_lens
    room, pad = k.shape[1], host(leftpad)
    for r, (n, first) in enumerate(zip(lengths, pad)):
        if not 0 <= first <= n:
            raise ValueError(f"assay: leftpad[{r}] is {first}, expected 0 .. seq_lens[{r}] = {n}")
        if n > room:
            raise ValueError(f"assay: seq_lens[{r}] is {n}, its cache holds {room}")
    # Pages of one token.
    entries = [index[r] * room + np.arange(first, n) for r, (n, first) in enumerate(zip(lengths, pad))]
    indptr = np.concatenate([[0], np.cumsum(lengths - pad)])
    k, v = (cache.reshape(cache.shape[0] * room, 1, *cache.shape[2:]) for cache in (k, v))
    table = np.concatenate(entries or [np.zeros(0, np.int64)])
    return k, v, Tensor("page_table", table), Tensor("page_indptr", indptr), Tensor("seq_lens", lengths - pad)


def in_pages_of_one(scale):
    """Scales of tokens of a dense cache, as its tokens became pages."""
    if scale is None or len(scale.shape) < 3:
        return scale
    return scale.reshape(scale.shape[0] * scale.shape[1], 1, *scale.shape[2:])
