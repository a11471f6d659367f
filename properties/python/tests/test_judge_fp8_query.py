# SPDX-License-Identifier: Apache-2.0
"""Quantised queries: fp8 q with a scale of the call, a head, or a row and head."""
import assay
import numpy as np
import pytest
from assay import from_float32, judging, to_float32
from test_judge import HEADS, KV_HEADS, Call, library  # noqa: F401  (a fixture)

DRAW = np.random.default_rng(6)
SCALES = {
    "call": np.array([0.5], np.float32),
    "head": DRAW.uniform(0.5, 2, HEADS).astype(np.float32),
    "row and head": DRAW.uniform(0.5, 2, (7, HEADS)).astype(np.float32),
}


class Quantised(Call):
    """A call whose q, k and v are fp8; q is scaled by q_scale, which a kernel may read wrongly."""

    def __init__(self, kv_dtype, q_scale):
        super().__init__(kv_dtype=kv_dtype)
        draw = np.random.default_rng(2)
        self.q8 = from_float32(draw.standard_normal((7, HEADS, 32)) * 2, kv_dtype)
        self.q_scale, self.k_scale, self.v_scale = q_scale, np.array([0.5, 2], np.float32), np.array([3, 0.25], np.float32)

    def run(self):
        """As Call.run, with the scale of q put on its logits: q holds the product in fp32."""
        scale = np.broadcast_to(self.q_scale if self.q_scale.ndim == 2 else self.q_scale[None], (7, HEADS))
        wide = to_float32(self.q8, self.kv_dtype).astype(np.float64) * scale[..., None]
        out, lse = np.zeros(wide.shape), np.full(wide.shape[:2], -np.inf)
        k, v = (to_float32(c, self.kv_dtype) for c in (self.k, self.v))
        for r, n in enumerate(self.lens):
            pages = self.table[r, : -(-n // 4)]
            for row in range(self.cu[r], self.cu[r + 1]):
                end = n - (self.cu[r + 1] - row) + 1
                for head in range(HEADS):
                    kv = head // (HEADS // KV_HEADS)
                    x = k[pages].reshape(-1, KV_HEADS, 32)[:end, kv] @ wide[row, head] * self.scale * float(self.k_scale[kv])
                    weights = np.exp(x - x.max())
                    out[row, head] = weights @ v[pages].reshape(-1, KV_HEADS, 32)[:end, kv] / weights.sum() * float(self.v_scale[kv])
                    lse[row, head] = x.max() + np.log(weights.sum())
        return from_float32(out, "bf16"), lse.astype(np.float32)

    def call(self, out, lse, **options):
        given = dict(
            page_table=self.table, seq_lens=self.lens, qo_indptr=self.cu, lse=lse, sm_scale=self.scale, like="fa2", kv_dtype=self.kv_dtype,
            q_dtype=self.kv_dtype, q_scale=self.q_scale, k_scale=self.k_scale, v_scale=self.v_scale,
        )  # fmt: skip
        return judging.attention_call(out, self.q8, (self.k, self.v), **{**given, **options})


#: What a wrong kernel takes for the scale of row and head.
WRONG = {
    "left out": lambda s: np.ones_like(s),
    "of the next row": lambda s: np.roll(s, 1, axis=0),
    "of the next head": lambda s: np.roll(s, 1, axis=1),
    "of the call": lambda s: np.full_like(s, s.max()),
    "inverted": lambda s: 1 / s,
    "applied twice": lambda s: s * s,
    "one head's off": lambda s: np.where(np.arange(HEADS)[None] == 4, s * np.float32(2), s),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_scale_is_found(wrong):
    call = Quantised("e4m3", SCALES["row and head"])
    other = Quantised("e4m3", WRONG[wrong](SCALES["row and head"]).astype(np.float32))
    made = call.call(*other.run())
    report = made.judge()
    assert report.verdict == "outside"


def test_bytes_of_the_other_type_are_found():
    call = Quantised("e4m3", SCALES["head"])
    assert Quantised.call(call, *call.run(), kv_dtype="e5m2", q_dtype="e5m2").judge().verdict == "outside"


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(q_scale=np.zeros(1, np.float32)), "q_scale of row 0 head 0 is not a finite number above 0"),
        (dict(q_scale=np.full((7, HEADS), np.nan, np.float32)), "q_scale of row 0 head 0 is not a finite"),
        (dict(q_scale=np.ones(5, np.float32)), "q_scale's axis 0 is 5 long"),
        (dict(q_scale=np.ones((3, HEADS), np.float32)), "q_scale's axis 0 is 3 long"),
        (dict(kv_dtype="e5m2"), "k is e5m2, judged are e4m3"),
        (dict(q_dtype=None), "q is uint8"),
    ],
)
def test_what_does_not_fit_is_named(change, words):
    call = Quantised("e4m3", SCALES["call"])
    with pytest.raises((ValueError, TypeError), match=words):
        call.call(*call.run(), **change).judge()


def test_a_scale_of_a_query_that_is_not_quantised_is_refused():
    call = Call()
    with pytest.raises(ValueError, match="q_scale is given and q is not fp8"):
        assay.judge(*call.run()[:1], call.q, (call.k, call.v), page_table=call.table, seq_lens=call.lens, qo_indptr=call.cu, q_scale=[1.0])
