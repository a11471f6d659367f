# SPDX-License-Identifier: Apache-2.0
"""A test of paged decode attention whose reference and tolerance are one line: the last of `check`."""
import assay
import numpy as np

draw = np.random.default_rng(0)
BATCH, HEADS, KV_HEADS, DIM, PAGE = 3, 8, 2, 64, 16
q = draw.standard_normal((BATCH, HEADS, DIM)).astype(np.float16)
k_cache, v_cache = (draw.standard_normal((32, PAGE, KV_HEADS, DIM)).astype(np.float16) for _ in "kv")
block_table = draw.permutation(32)[:18].reshape(BATCH, 6)
seq_lens = np.array([90, 17, 64])


def my_kernel(mistake=0):
    """In fp32; `mistake`: so many keys too few."""
    out = np.zeros((BATCH, HEADS, DIM), np.float16)
    for r in range(BATCH):
        n = seq_lens[r] - mistake
        k, v = (c[block_table[r]].reshape(-1, KV_HEADS, DIM)[:n].repeat(HEADS // KV_HEADS, 1).astype(np.float32) for c in (k_cache, v_cache))
        scores = np.einsum("hd,nhd->hn", q[r].astype(np.float32), k) / np.sqrt(DIM)
        weights = np.exp(scores - scores.max(1, keepdims=True))
        out[r] = np.einsum("hn,nhd->hd", weights / weights.sum(1, keepdims=True), v)
    return out


def check(out):
    # in the place of: np.testing.assert_allclose(out, reference(q, ...), atol=1e-2, rtol=1e-2)
    return assay.assert_attention(out, q, (k_cache, v_cache), page_table=block_table, seq_lens=seq_lens, like="sdpa_math")


if __name__ == "__main__":
    print(check(my_kernel()))
    try:
        check(my_kernel(mistake=1))
    except assay.AttentionError as error:
        print(error)
