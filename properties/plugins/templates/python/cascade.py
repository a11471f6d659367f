# SPDX-License-Identifier: Apache-2.0
"""Cascade attention in NumPy, one query row after another: a right kernel to start from."""
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


@assay.kernel(
    family="cascade", declaration=DECLARATION, name="my_kernel", determinism="run_to_run", nan_contract="all"
)
def attention(case):
    q = case.load(case.q)
    scale = np.float32(case.sm_scale)
    for request in range(case.batch):
        for head in range(case.num_qo_heads):
            kv_head = head * case.num_kv_heads // case.num_qo_heads
            k, v = (gather(case, request, kv_head, which) for which in ("k_cache", "v_cache"))
            write(case, request, head, *softmax(k @ q[request, head] * scale, v))


def gather(case, request, kv_head, which):
    """[keys, head_dim] of one request and head: its segments of all levels, page by page."""
    parts = [np.zeros((0, case.head_dim), np.float32)]
    for level in case.levels:
        segment = np.searchsorted(level.segment_indptr, request, side="right") - 1
        if not 0 <= segment < len(level.seq_lens):
            continue  # the level leaves the request out
        length = level.seq_lens[segment]
        pages = level.page_table[segment, : -(-length // level.page_size)]
        tokens = getattr(level, which)[pages, :, kv_head].reshape(-1, case.head_dim)[:length]
        parts.append(case.load(tokens, case.kv_dtype))
    return np.concatenate(parts)


def softmax(scores, v):
    """O and LSE of one query row; 0 and -inf without keys."""
    if len(scores) == 0:
        return np.zeros(v.shape[1], np.float32), NONE
    top = scores.max()  # NaN where one is
    weights = np.exp(scores - top)
    total = weights.sum()
    return weights @ v / total, top + np.log(total)


def write(case, request, head, o, lse):
    case.store(case.out[request, head], o, case.dtype)
    if case.lse is not None:
        case.lse[request, head] = lse if case.lse_base == "e" else lse * LOG2E
