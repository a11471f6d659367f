# SPDX-License-Identifier: Apache-2.0
"""Kernels that take one batch, one number of heads, one page size and no LSE, and say nothing of which: one that is right,
and wrong ones."""
import numpy as np
from paged_attention import FP32

import assay

SHAPE = dict(batch=8, num_kv_heads=8, group_size=4, head_dim=64, page_size=16, no_lse="yes")
_SIZES = dict(num_kv_heads=8, num_qo_heads=32, head_dim=64, page_size=16, dtype="bf16", kv_dtype="bf16", q_len=1, window_left=-1)


def supports(case):
    features = case.logits_soft_cap or any(f is not None for f in (case.sinks, case.alibi_slopes, case.lse))
    return not features and len(case.seq_lens) == 8 and all(getattr(case, name) == value for name, value in _SIZES.items())


def one_shape(function):
    return assay.kernel(family="paged", declaration=FP32, supports=supports)(function)


def attend(case, keys_of=lambda length: np.arange(length), head_of=lambda head: head // 4, pages_of=lambda table, request: table[request]):
    q, out = case.load(case.q)[:, 0], np.zeros((8, 32, 64), np.float32)
    for request, length in enumerate(int(n) for n in case.seq_lens):
        pages = pages_of(case.page_table, request)[: -(-length // 16)]
        k, v = (case.load(cache[pages], case.kv_dtype).reshape(-1, 8, 64)[keys_of(length)] for cache in (case.k_cache, case.v_cache))
        for head in range(32 if length else 0):
            scores = k[:, head_of(head)] @ q[request, head] * np.float32(case.sm_scale)
            weights = np.exp(scores - scores.max())
            out[request, head] = weights @ v[:, head_of(head)] / weights.sum()
    case.store(case.out, out[:, None])


@one_shape
def right(case):
    attend(case)


@one_shape
def splits_from_whole_pages(case):
    """The first keys of each split of 100 count in the split before, too."""
    attend(case, keys_of=lambda length: np.concatenate([np.arange(b // 16 * 16, min(b + 100, length)) for b in range(0, max(length, 1), 100)]))


@one_shape
def heads_in_turn(case):
    attend(case, head_of=lambda head: head % 8)


@one_shape
def last_request_by_the_table_of_the_first(case):
    attend(case, pages_of=lambda table, request: table[0 if request == 7 else request])


@one_shape
def loses_key_64(case):
    attend(case, keys_of=lambda length: np.delete(np.arange(length), [64] if length > 64 else []))


WRONG = (splits_from_whole_pages, heads_in_turn, last_request_by_the_table_of_the_first, loses_key_64)
