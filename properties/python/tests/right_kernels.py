# SPDX-License-Identifier: Apache-2.0
"""Right kernels of the other families, in NumPy."""
import types

import assay
import numpy as np

from paged_attention import FP32, LOG2E, attend, attend_all, gather

MERGE = assay.Declaration(
    exp2_rel_error=2.0**-21, log2_abs_error=2.0**-21, rcp_rel_error=2.0**-22, max_splits=1024, merge_stages=1
)
NONE = np.float32(-np.inf)


def bases(case):
    return (np.exp, np.log) if case.lse_base == "e" else (np.exp2, np.log2)


def put(case, o, lse, out_o, out_lse):
    """o is float32 or already of the dtype."""
    if o.dtype == np.float32:
        case.store(out_o, o, case.dtype)
    else:
        out_o[...] = o
    if out_lse is not None:
        out_lse[...] = lse


def same(values):
    return values


def merge_states_of(case, parts, lses, out_o, out_lse, rounded=same):
    """States [n, d] of one row and head, with LSE [n]."""
    exp, log = bases(case)
    alive = [i for i in range(len(lses)) if not lses[i] == NONE]
    if len(alive) <= 1:
        o = parts[alive[0]] if alive else np.zeros(case.head_dim, np.float32)
        put(case, o, lses[alive[0]] if alive else NONE, out_o, out_lse)
        return
    top = np.max(lses[alive])
    weights = rounded(exp(lses[alive] - top))
    total = weights.sum()
    put(case, weights @ case.load(parts[alive], case.dtype) / total, top + log(total), out_o, out_lse)


@assay.kernel(family="merge_state", declaration=MERGE, determinism="run_to_run", batch_invariance="always",
              nan_contract="all")
def merge_state(case):
    merge_pair(case)


def merge_pair(case, rounded=same):
    o = np.stack([case.o_a, case.o_b], axis=2)  # copies: the outputs may be inputs
    lse = np.stack([case.lse_a, case.lse_b], axis=2)
    for r in range(case.num_rows):
        for h in range(case.num_heads):
            out_lse = None if case.lse is None else case.lse[r, h : h + 1]
            merge_states_of(case, o[r, h], lse[r, h], case.out[r, h], out_lse, rounded)


@assay.kernel(family="merge_states", declaration=MERGE, determinism="run_to_run", batch_invariance="always",
              nan_contract="all")
def merge_states(case):
    first = np.arange(case.num_rows + 1) * case.num_states if case.indptr is None else case.indptr
    for r in range(case.num_rows):
        for h in range(case.num_heads):
            of = slice(first[r], first[r + 1])
            lse = None if case.lse is None else case.lse[r, h : h + 1]
            merge_states_of(case, case.o_in[of, h], case.lse_in[of, h], case.out[r, h], lse)


@assay.kernel(family="cascade", declaration=FP32, determinism="run_to_run", nan_contract="all")
def cascade(case):
    q = case.load(case.q)
    for r in range(case.batch):
        for head in range(case.num_qo_heads):
            kv_head = head * case.num_kv_heads // case.num_qo_heads
            k, v = (keys_of(case, r, kv_head, which) for which in ("k_cache", "v_cache"))
            scores = k @ q[r, head] * np.float32(case.sm_scale)
            top = scores.max(initial=NONE)
            o, lse = np.zeros(case.head_dim, np.float32), NONE
            if top != NONE:
                weights = np.exp(scores - top)
                o, lse = weights @ v / weights.sum(), top + np.log(weights.sum())
            lse = lse if case.lse_base == "e" else lse * LOG2E
            put(case, o, lse, case.out[r, head], None if case.lse is None else case.lse[r, head : head + 1])


def keys_of(case, r, kv_head, which):
    """Of one request in all levels."""
    parts = [np.zeros((0, case.head_dim), np.float32)]
    for level in case.levels:
        segment = np.searchsorted(level.segment_indptr, r, side="right") - 1
        if not 0 <= segment < len(level.seq_lens):
            continue
        length = level.seq_lens[segment]
        pages = level.page_table[segment, : -(-length // level.page_size)]
        parts.append(gather(case, getattr(level, which), pages, kv_head, length))
    return np.concatenate(parts)


class Tokens:
    """o or lse of a ragged call, by request and token of it."""

    def __init__(self, array, starts):
        self.array, self.starts = array, starts

    def __getitem__(self, at):
        return self.array[(self.starts[at[0]] + at[1], *at[2:])]

    def __setitem__(self, at, value):
        self.array[(self.starts[at[0]] + at[1], *at[2:])] = value


@assay.kernel(family="paged", declaration=FP32, determinism="run_to_run", nan_contract="all", ragged_queries=True)
def ragged_attention(case):
    attend_ragged(case, lambda tokens: tokens)


def attend_ragged(case, counted_as):
    """A request of n tokens sits at the positions of one of counted_as(n)."""
    starts = case.qo_indptr
    if starts is None:
        attend_all(case, case.seq_lens)
        return
    q = case.load(case.q)
    own = types.SimpleNamespace(**vars(case), load=case.load, store=case.store)
    own.out = Tokens(case.out, starts)
    own.lse = None if case.lse is None else Tokens(case.lse, starts)
    for r, length in enumerate(case.seq_lens):
        tokens = starts[r + 1] - starts[r]
        own.q_len = counted_as(tokens)
        pages = case.page_table[r, : -(-length // case.page_size)]
        for head in range(case.num_qo_heads):
            kv_head = head * case.num_kv_heads // case.num_qo_heads
            k, v = (gather(case, pool, pages, kv_head, length) for pool in (case.k_cache, case.v_cache))
            for token in range(tokens):
                attend(own, r, token, head, kv_head, q[starts[r] + token, head], k, v)


def no_features(case):
    return not case.logits_soft_cap and case.alibi_slopes is None and case.sinks is None and case.kv_dtype == case.dtype


@assay.kernel(family="paged", declaration=FP32, supports=no_features, shards=True)
def sharded_attention(case):
    attend_shards(case, case.dcp_world_size)


def attend_shards(case, ranks):
    """Keys stand where they do among those of all ranks; with ranks 0 where they do in the cache."""
    q = case.load(case.q)
    for r, length in enumerate(case.seq_lens):
        held, total = np.arange(length), length
        if ranks:
            turn, token = np.divmod(held, case.dcp_interleave)
            held, total = (turn * ranks + case.dcp_rank) * case.dcp_interleave + token, case.global_lens[r]
        pages = case.page_table[r, : -(-length // case.page_size)]
        for head in range(case.num_qo_heads):
            kv_head = head * case.num_kv_heads // case.num_qo_heads
            k, v = (gather(case, pool, pages, kv_head, length) for pool in (case.k_cache, case.v_cache))
            for token in range(case.q_len):
                position = total - case.q_len + token
                seen = (held <= position) & (case.window_left < 0 or held >= position - case.window_left)
                scores = k[seen] @ q[r, token, head] * np.float32(case.sm_scale)
                top = scores.max(initial=NONE)
                o, lse = np.zeros(case.head_dim, np.float32), NONE
                if top != NONE:
                    weights = np.exp(scores - top)
                    o, lse = weights @ v[seen] / weights.sum(), top + np.log(weights.sum())
                lse = lse if case.lse_base == "e" else lse * LOG2E
                put(case, o, lse, case.out[r, token, head], None if case.lse is None else case.lse[r, token, head : head + 1])
