# SPDX-License-Identifier: Apache-2.0
"""A row whose elements are all inside and whose error no roundings explain; and what a pass is worth."""
import math

import assay
import numpy as np
import pytest
from test_judge import library_or_skip

ROWS, HEADS, KEYS, DIM = 2, 4, 1024, 128


@pytest.fixture(autouse=True)
def library():
    library_or_skip()


class Call:
    """fp16, dense; O as FlashAttention-2 rounds it, with its weights first changed by `weigh`."""

    def __init__(self):
        draw = np.random.default_rng(7)
        self.q = draw.standard_normal((ROWS, HEADS, DIM)).astype(np.float16)
        self.k, self.v = (draw.standard_normal((ROWS, KEYS, 2, DIM)).astype(np.float16) for _ in range(2))

    def run(self, weigh=lambda p: p, values=lambda v: v):
        out = np.zeros(self.q.shape, np.float16)
        for row in range(ROWS):
            for head in range(HEADS):
                scores = self.k[row, :, head // 2].astype(np.float64) @ self.q[row, head].astype(np.float64) / math.sqrt(DIM)
                p = weigh(np.exp(scores - scores.max()))
                out[row, head] = p.astype(np.float16).astype(np.float64) @ values(self.v[row, :, head // 2].astype(np.float64)) / p.sum()
        return out

    def judge(self, out):
        return assay.judge(out, self.q, (self.k, self.v), seq_lens=np.full(ROWS, KEYS, np.int32), like="fa2")


def scaled(out, row=1, head=2):
    wrong = out.copy()
    wrong[row, head] = wrong[row, head].astype(np.float64) * 1.003
    return wrong


def test_a_right_call_is_inside_and_says_what_that_is_worth():
    call = Call()
    report = call.judge(call.run())
    assert report.passed and 0 < report.ratio_row < 0.5
    assert 1e-4 < report.sharpness["scaling"] < 3e-3 and 1e-4 < report.sharpness["sm_scale"] < 5e-3
    assert 1e-5 < report.sharpness["lost_weight"] < 1 / KEYS
    assert "it would have shown O off by 0." in str(report) and "of whole rows" in str(report)


def test_a_scaled_row_is_outside_though_each_of_its_elements_is_inside():
    call = Call()
    report = call.judge(scaled(call.run()))
    assert not report.passed and report.ratio < 1 < report.ratio_row
    assert (report.worst["row"], report.worst["head"], report.worst["dim"], report.findings) == (1, 2, -2, 1)
    assert "row 1 (request 1 query 0) head 2 along its error" in str(report) and "no roundings of the weights explain this row" in str(report)
    assert not report.sharpness  # of passes


def test_hints_about_a_row_name_no_element(tmp_path):
    call = Call()
    with pytest.raises(assay.AttentionError) as failed:
        assay.assert_attention(scaled(call.run()), call.q, (call.k, call.v), seq_lens=np.full(ROWS, KEYS, np.int32), like="fa2", findings=tmp_path)
    said = str(failed.value)
    assert "whole rows, of which no element alone is outside" in said and "row 1 alone; head 2 alone" in said and " dim" not in said
    assert len(list(tmp_path.iterdir())) == 1


def lose_of(key):
    def weigh(p):
        p = p.copy()
        p[key] = 0
        return p

    return weigh


@pytest.mark.parametrize("key", [400, 0, 1023])
def test_the_lost_key_is_named(key):
    call = Call()
    wrong, right = call.run(weigh=lose_of(key)), call.run()
    wrong[0] = right[0]
    with pytest.raises(assay.AttentionError) as failed:
        assay.assert_attention(wrong, call.q, (call.k, call.v), seq_lens=np.full(ROWS, KEYS, np.int32), like="fa2", findings=None, hint_seconds=60)
    said = {0: "the first key", 1023: "the last key"}.get(key, f"key {key}")
    assert f"row 1 would be inside if {said} did not count" in str(failed.value)


def test_the_lost_page_is_named():
    call, page = Call(), range(320, 336)

    def lose(p):
        p = p.copy()
        p[page] = 0
        return p

    wrong, paged = call.run(weigh=lose), [x.reshape(-1, 16, 2, DIM) for x in (call.k, call.v)]
    wrong[0] = call.run()[0]
    table = np.arange(ROWS * KEYS // 16, dtype=np.int32).reshape(ROWS, -1)
    with pytest.raises(assay.AttentionError) as failed:
        assay.assert_attention(wrong, call.q, tuple(paged), seq_lens=np.full(ROWS, KEYS, np.int32), page_table=table, like="fa2", findings=None, hint_seconds=60)
    assert "row 1 would be inside if keys 320 to 335 did not count" in str(failed.value)


def swap(v):
    v = v.copy()
    v[500] = v[501]
    return v


@pytest.mark.parametrize("wrong", [dict(weigh=lose_of(400)), dict(values=swap), dict(weigh=lambda p: p**1.002)])
def test_small_mistakes_are_seen_in_every_row(wrong):
    call = Call()
    report = call.judge(call.run(**wrong))
    assert report.verdict == "outside" and report.findings >= ROWS * HEADS
