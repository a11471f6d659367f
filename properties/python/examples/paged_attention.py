# SPDX-License-Identifier: Apache-2.0
"""Paged attention in NumPy, row by row: every dtype, window, softcap, ALiBi, sinks and an fp8 cache.

python3 examples/paged_attention.py
"""
import assay
import numpy as np

LOG2E = np.float32(1.4426950408889634)
FP32 = assay.Declaration(
    exponential="natural",
    sum_depth=64,  # np.sum adds in pairs: 25 within a block of 128, one more per doubling of the blocks
    exp2_rel_error=2.0**-21,  # np.exp of float32: 4 units in the last place at most
    log2_abs_error=2.0**-21,  # np.log likewise
    rcp_rel_error=2.0**-23,  # a division
    tanh_abs_error=2.0**-21,
    tile_tokens=4096,  # all scores stand before the first weight
)


@assay.kernel(family="paged", declaration=FP32, determinism="run_to_run", nan_contract="all")
def paged_attention(case):
    attend_all(case, case.seq_lens)


def attend_all(case, lengths):
    q = case.load(case.q)
    for r, length in enumerate(lengths):
        pages = case.page_table[r, : -(-length // case.page_size)]
        for head in range(case.num_qo_heads):
            kv_head = head * case.num_kv_heads // case.num_qo_heads
            k, v = (gather(case, pool, pages, kv_head, length) for pool in (case.k_cache, case.v_cache))
            for token in range(case.q_len):
                attend(case, r, token, head, kv_head, q[r, token, head], k, v)


def gather(case, pool, pages, kv_head, length):
    """[length, head_dim] of one request and head."""
    tokens = pool[pages, :, kv_head].reshape(-1, case.head_dim)[:length]
    return case.load(tokens, case.kv_dtype)


def scale_of(scales, kv_head):
    return np.float32(1) if scales is None else scales[kv_head % len(scales)]


def attend(case, r, token, head, kv_head, q, k, v):
    position = len(k) - case.q_len + token
    end = max(0, position + 1)
    begin = max(0, position - case.window_left) if case.window_left >= 0 else 0
    scores = k[begin:end] @ q * (np.float32(case.sm_scale) * scale_of(case.k_scale, kv_head))
    if case.logits_soft_cap:
        cap = np.float32(case.logits_soft_cap)
        scores = cap * np.tanh(scores / cap)
    if case.alibi_slopes is not None:
        scores += case.alibi_slopes[head] * np.arange(begin - position, end - position, dtype=np.float32)
    sink = np.float32(-np.inf) if case.sinks is None else case.sinks[head]
    top = np.append(scores, sink).max()  # NaN where one is
    out, lse = np.zeros(case.head_dim, np.float32), top
    if top != -np.inf:
        weights = np.exp(scores - top)
        total = weights.sum() + np.exp(sink - top)
        out = weights @ v[begin:end] / total * scale_of(case.v_scale, kv_head)
        lse = top + np.log(total)
    case.store(case.out[r, token, head], out, case.dtype)
    if case.lse is not None:
        case.lse[r, token, head] = lse if case.lse_base == "e" else lse * LOG2E


if __name__ == "__main__":
    print(assay.check(paged_attention, cases=4).raise_for_findings().text)
