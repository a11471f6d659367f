# SPDX-License-Identifier: Apache-2.0
"""Orders of keys that nobody declared: named in the report, and a head that none of them explains."""
import assay
import numpy as np
from assay import from_float32, to_float32
from test_judge import library  # noqa: F401  (a fixture)

KEYS, KV_HEADS, HEADS, DIM, TILE = 600, 2, 8, 64, 64


def tiled(q, k, v):
    """Attention of one query that takes tiles of keys from the last to the first and rounds weights to bf16."""
    top, total, out = -np.inf, 0.0, np.zeros(DIM)
    for begin in reversed(range(0, KEYS, TILE)):
        logits = k[begin : begin + TILE].astype(np.float64) @ q / np.sqrt(DIM)
        new = max(top, logits.max())
        weights, old = np.exp(logits - new), np.exp(top - new)
        rounded = to_float32(from_float32(weights.astype(np.float32), "bf16"), "bf16")
        total, out, top = total * old + weights.sum(), out * old + rounded @ v[begin : begin + TILE], new
    return out / total


def call(wrong=None, factor=1.0):
    """(out, arguments of judge), with one head multiplied by a factor."""
    draw = np.random.default_rng(2)
    q, k, v = (from_float32(draw.standard_normal(shape), "bf16") for shape in ((1, HEADS, DIM), (1, KEYS, KV_HEADS, DIM), (1, KEYS, KV_HEADS, DIM)))
    plain = [to_float32(x, "bf16")[0] for x in (q, k, v)]
    out = np.stack([tiled(plain[0][h], plain[1][:, h * KV_HEADS // HEADS], plain[2][:, h * KV_HEADS // HEADS]) for h in range(HEADS)])
    if wrong is not None:
        out[wrong] *= factor
    return from_float32(out[None], "bf16"), dict(q=q, kv_cache=(k, v), seq_lens=[KEYS], like="fa2")


def test_the_order_is_named():
    out, arguments = call()
    report = assay.judge(out, **arguments)
    assert report.passed and report.unexplained == 0
    assert report.order == "tiles of 64, 1 split, backwards; 8 of 8 heads of rows explained"
    assert str(report).endswith(f"\n  order of keys: {report.order}")


def test_a_head_that_no_order_explains_is_a_doubt_and_no_finding(tmp_path):
    out, arguments = call(3, 1.004)
    report = assay.assert_attention(out, **arguments, findings=tmp_path)
    assert report.passed and report.unexplained == 1 and not list(tmp_path.iterdir())
    assert "7 of 8 heads of rows explained; no known order explains row 0 head 3 (" in report.order


def test_a_mistake_in_every_head_is_left_to_t0():
    out, arguments = call(range(HEADS), 1.004)
    report = assay.judge(out, **arguments)
    assert report.passed and report.order == "no known order fits"
