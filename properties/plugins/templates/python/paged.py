# SPDX-License-Identifier: Apache-2.0
"""Paged decode attention in NumPy, one query row after another: a right kernel to start from."""
import assay
import numpy as np

LOG2E = np.float32(1.4426950408889634)
NONE = np.float32(-np.inf)

# Bounds come from these: assay's properties/plugins/DECLARATION.md says how to choose each.
DECLARATION = assay.Declaration(
    exponential="natural",
    sum_depth=64,  # np.sum adds in pairs
    exp2_rel_error=2.0**-21,  # np.exp of float32: 4 units in the last place at most
    log2_abs_error=2.0**-21,
    rcp_rel_error=2.0**-23,
    tile_tokens=4096,  # all scores stand before the first weight
)


def supports(case):
    """What is refused here is outside the kernel's envelope, and reported as such."""
    if case.kv_dtype != case.dtype:
        raise assay.Unsupported("no fp8 cache")
    if case.logits_soft_cap or case.alibi_slopes is not None or case.sinks is not None:
        raise assay.Unsupported("no softcap, ALiBi or sinks")


@assay.kernel(
    family="paged",
    declaration=DECLARATION,
    name="my_kernel",
    determinism="run_to_run",
    nan_contract="all",
    supports=supports,
)
def attention(case):
    q = case.load(case.q)
    scale = np.float32(case.sm_scale)
    for request, length in enumerate(case.seq_lens):
        for head in range(case.num_qo_heads):
            kv_head = head * case.num_kv_heads // case.num_qo_heads
            k, v = (gather(case, pool, request, length, kv_head) for pool in (case.k_cache, case.v_cache))
            for token in range(case.q_len):
                position = length - case.q_len + token  # the queries are the newest tokens
                end = max(0, position + 1)  # causal
                begin = max(0, position - case.window_left) if case.window_left >= 0 else 0
                scores = k[begin:end] @ q[request, token, head] * scale
                write(case, request, token, head, *softmax(scores, v[begin:end]))


def gather(case, pool, request, length, kv_head):
    """[length, head_dim] of one request and head, page by page."""
    pages = case.page_table[request, : -(-length // case.page_size)]
    return case.load(pool[pages, :, kv_head].reshape(-1, case.head_dim)[:length], case.kv_dtype)


def softmax(scores, v):
    """O and LSE of one query row; 0 and -inf without keys."""
    if len(scores) == 0:
        return np.zeros(v.shape[1], np.float32), NONE
    top = scores.max()  # NaN where one is
    weights = np.exp(scores - top)
    total = weights.sum()
    return weights @ v / total, top + np.log(total)


def write(case, request, token, head, o, lse):
    case.store(case.out[request, token, head], o, case.dtype)
    if case.lse is not None:
        case.lse[request, token, head] = lse if case.lse_base == "e" else lse * LOG2E
