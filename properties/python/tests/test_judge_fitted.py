# SPDX-License-Identifier: Apache-2.0
"""A window, scale or cap that the caller gave wrongly is read off a failing row, whatever stands beside it."""
import itertools

import assay
import numpy as np
import pytest
from assay import from_float32, to_float32
from test_judge import library  # noqa: F401  (a fixture)

HEADS, KV_HEADS, DIM, SLOTS = 4, 2, 32, 16
TRUE = dict(window_left=20, sm_scale=0.3, logits_soft_cap=3.0)
CLAIMED = dict(window_left=(-1, 33, 19), sm_scale=(0.2, 1.0, 0.05), logits_soft_cap=(0.0, 1.0, 20.0))
#: What a row sees behind its own key, for one query or several of a request.
ORDERS = [(3, dict(causal=True)), (1, dict(causal=False)), (3, dict(causal=True, window_right=2)), (1, dict(causal=True, window_right=0))]


def attention(q, k, v, window_left, sm_scale, logits_soft_cap):
    """O in double precision of the newest queries of one request; q [rows, heads, dim], k and v [keys, kv heads, dim]."""
    k, v = (x.repeat(HEADS // KV_HEADS, 1) for x in (k, v))
    scores = np.einsum("nhd,lhd->nhl", q, k) * sm_scale
    scores = logits_soft_cap * np.tanh(scores / logits_soft_cap) if logits_soft_cap else scores
    behind = np.arange(len(k)) - (len(k) - len(q)) - np.arange(len(q))[:, None]  # how far a key stands behind the query
    seen = (behind <= 0) & ((-behind <= window_left) | (window_left < 0))
    weights = np.where(seen[:, None], np.exp(scores), 0)
    return np.einsum("nhl,lhd->nhd", weights / weights.sum(2, keepdims=True), v)


CASES = list(itertools.product(TRUE, range(3), (False, True), (False, True)))


@pytest.mark.parametrize("at, case", enumerate(CASES), ids=["-".join(map(str, case)) for case in CASES])
def test_a_number_that_was_given_wrongly_is_named(at, case):
    """One number is wrong and each of the others is given or not; types, layouts and orders go round."""
    wrong, which, *others_given = case
    rng, dtype, of_out = np.random.default_rng(at), *(("fp16", "fp16"), ("bf16", "bf16"), ("fp16", "fp32"))[at % 3]
    queries, order = ORDERS[at % 4]
    plain = dict(window_left=-1, sm_scale=DIM**-0.5, logits_soft_cap=0.0)
    others = dict(zip((name for name in TRUE if name != wrong), others_given))
    used = {name: TRUE[name] if others.get(name, True) else plain[name] for name in TRUE}
    lengths = (49, 61)
    q, *kv = (from_float32(rng.standard_normal(shape).astype(np.float32), dtype) for shape in ((2 * queries, HEADS, DIM), *[(8, SLOTS, KV_HEADS, DIM)] * 2))
    table, rows = rng.permutation(8).reshape(2, 4), []
    for r, length in enumerate(lengths):
        k, v = (to_float32(x, dtype).astype(float)[table[r]].reshape(-1, KV_HEADS, DIM)[:length] for x in kv)
        rows.append(attention(to_float32(q, dtype).astype(float)[r * queries : (r + 1) * queries], k, v, **used))
    out = from_float32(np.concatenate(rows).astype(np.float32), of_out)
    if at % 5 == 0:  # without pages: each request has a line
        kv, tables = [x[table].reshape(2, -1, KV_HEADS, DIM) for x in kv], {}
    else:
        tables = dict(page_table=table)
    call = dict(seq_lens=lengths, **tables, **order)
    assert assay.judge(out, q, tuple(kv), **call, **used).passed
    with pytest.raises(assay.AttentionError) as raised:
        assay.assert_attention(out, q, tuple(kv), **call, **{**used, wrong: CLAIMED[wrong][which]}, findings=None, hint_seconds=1e9)
    assert f"would be inside if {wrong} were {TRUE[wrong]:g}\n" in "\n".join([*raised.value.notes, ""])
