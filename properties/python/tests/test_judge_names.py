# SPDX-License-Identifier: Apache-2.0
"""Kernels in fp32 that do what fa3, fa3_fp8, fa4 and flashmla name, and others that do not.

fa3_fp8 is wide: 13 bits of an fp8 product let mistakes of a rounding through, and what is found is grosser."""
import assay
import numpy as np
import pytest
from assay import from_float32, to_float32
from test_judge import library  # noqa: F401

HEADS, LOG2E = 4, np.float32(1.4426950408889634)
#: Polynomials for 2^x on 0 .. 1, lowest power first (degree 3 and 2 of flash_attn/cute/utils.py).
DEGREE_3 = (1.0, 0.695146143436431884765625, 0.227564394474029541015625, 0.077119089663028717041015625)
DEGREE_2 = (1.0, 0.6657850742340087890625, 0.330107033252716064453125)


def polynomial(terms):
    def exp2(x):
        x = np.maximum(x, np.float32(-127))
        whole = np.floor(x)
        part, value = x - whole, np.float32(0)
        for term in reversed(terms):
            value = np.float32(value * part) + np.float32(term)
        return np.ldexp(value, whole.astype(int)).astype(np.float32)

    return exp2


class Kernel:
    """One query over a cache of one head, tile by tile, in fp32. The words of a kernel are its attributes."""

    keys, dim, dim_v, tile, dtype = 700, 64, 64, 128, "bf16"
    p_format, p_scale, lag, splits, v_from, v_scale, q_scale = "bf16", 1, 0, 1, 0, 1, 1
    exp2 = staticmethod(np.exp2)

    def __init__(self, spread=3.0, **words):
        vars(self).update(words)
        draw = np.random.default_rng(5)
        self.scale = np.float32(1 / np.sqrt(self.dim))
        self.q = from_float32(draw.standard_normal((1, HEADS, self.dim)) * spread, self.dtype)
        self.k = from_float32(draw.standard_normal((1, self.keys, 1, self.dim)), self.dtype)
        self.v = from_float32(draw.standard_normal((1, self.keys, 1, self.dim_v)) + self.v_from, self.dtype)
        if self.dim != self.dim_v:  # a slice of K
            self.v = self.k[..., : self.dim_v]

    def part(self, q, keys, values):
        """O, not divided, the sum and the maximum in base 2, of some keys."""
        factor = np.float32(self.scale * LOG2E)
        top, total, out = np.full(HEADS, -np.inf, np.float32), np.zeros(HEADS, np.float32), np.zeros((HEADS, self.dim_v), np.float32)
        for at in range(0, len(keys), self.tile):
            scores = (q @ keys[at : at + self.tile].T).astype(np.float32) * factor
            new = np.maximum(top, scores.max(1))
            new = np.where(new - top <= self.lag, top, new)  # the maximum may stay behind
            old = np.exp2(top - new)
            p = self.exp2((scores - new[:, None]).astype(np.float32)).astype(np.float32)
            total = total * old + p.sum(1, dtype=np.float32)
            rounded = to_float32(from_float32(p * self.p_scale, self.p_format), self.p_format) / np.float32(self.p_scale)
            out = out * old[:, None] + (rounded @ values[at : at + self.tile]).astype(np.float32)
            top = new
        return out, total, top

    def run(self):
        q, k, v = (to_float32(x, self.dtype) for x in (self.q, self.k, self.v))
        cuts = np.linspace(0, self.keys, self.splits + 1).astype(int)
        parts = [self.part(q[0] * np.float32(self.q_scale), k[0, a:b, 0], v[0, a:b, 0]) for a, b in zip(cuts, cuts[1:])]
        lse = np.stack([top + np.log2(total) for _, total, top in parts])
        o = np.stack([out / total[:, None] for out, total, _ in parts])
        weights = np.exp2(lse - lse.max(0))
        all_lse = lse.max(0) + np.log2(weights.sum(0))
        return (o * (weights / weights.sum(0))[..., None]).sum(0)[None], (all_lse * np.log(2)).astype(np.float32)[None]

    def judge(self, like, **options):
        out, lse = self.run()
        quantised = dict(kv_dtype=self.dtype, q_dtype=self.dtype, q_scale=[1.0], k_scale=[1.0], v_scale=[1.0]) if self.dtype == "e4m3" else {}
        out = from_float32(out * self.v_scale, "bf16" if quantised else self.dtype)
        return assay.judge(out, self.q, (self.k, self.v), seq_lens=[self.keys], lse=lse, lse_layout="TH", like=like, **quantised, **options)


MLA = dict(dim=576, dim_v=512, tile=64, spread=0.7)
FP8 = dict(dtype="e4m3", p_format="e4m3", p_scale=256, tile=64)


@pytest.mark.parametrize(
    "like, words",
    [
        ("fa3", {}),
        ("fa3", dict(splits=7, dtype="fp16", p_format="fp16")),
        ("fa3_fp8", FP8),
        ("fa3_fp8", dict(FP8, splits=5)),
        ("fa4", dict(exp2=polynomial(DEGREE_3))),
        ("fa4", dict(exp2=polynomial(DEGREE_3), lag=8, dtype="fp16", p_format="fp16", splits=3)),
        ("flashmla", MLA),
        ("flashmla", dict(MLA, splits=9)),
    ],
)
def test_what_is_named_is_inside(like, words):
    report = Kernel(**words).judge(like)
    assert report.passed and report.claimed == report.elements, report


@pytest.mark.parametrize(
    "like, words",
    [
        ("fa3", dict(p_format="e4m3")),
        ("fa3", dict(exp2=polynomial(DEGREE_2), keys=60, spread=0.5)),  # the LSE says so
        ("fa3_fp8", dict(FP8, keys=60, v_from=4, v_scale=2)),
        ("fa3_fp8", dict(FP8, keys=60, q_scale=2)),
        ("fa4", dict(exp2=polynomial(DEGREE_2), keys=60, spread=0.5)),
        ("fa4", dict(exp2=polynomial(DEGREE_3), p_format="e4m3")),
        ("flashmla", dict(MLA, p_format="e4m3")),
        ("flashmla", dict(MLA, q_scale=(576 / 512) ** 0.5)),  # the scale of V's width
    ],
)
def test_what_is_not_named_is_found(like, words):
    report = Kernel(**words).judge(like)
    assert report.verdict == "outside", report
