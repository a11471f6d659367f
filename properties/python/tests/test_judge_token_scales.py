# SPDX-License-Identifier: Apache-2.0
"""e4m3 and int8 caches with a scale for each token and head, or for blocks of its elements: kernels that round as such kernels do are
inside, a scale read from elsewhere is found, in every layout."""
import assay
import numpy as np
import pytest
from assay import arithmetic, from_float32, judging, to_float32
from test_judge import DIM, HEADS, KV_HEADS, PAGE, PAGES, Call, library  # noqa: F401  (a fixture)

BF16 = assay.Declaration(**{**arithmetic.like("triton_flash").__dict__, "p_format": "bf16"})


class Scaled(Call):
    """A call over quantised caches; `blocks` scales for each token and head."""

    def __init__(self, kind="e4m3", blocks=1, seed=1):
        super().__init__(seed=seed)
        draw = np.random.default_rng(seed)
        values = draw.standard_normal((2, PAGES, PAGE, KV_HEADS, DIM))
        if kind == "int8":
            self.k, self.v = np.clip(np.rint(values * 40), -128, 127).astype(np.int8)
        else:
            self.k, self.v = (from_float32(v * 50, "e4m3") for v in values)
        self.kind, shape = kind, (PAGES, PAGE, KV_HEADS) + ((blocks,) if blocks > 1 else ())
        self.k_scale, self.v_scale = (draw.uniform(0.005, 0.05, shape).astype(np.float32) for _ in "kv")

    def wide(self, scales):
        """K and V in fp64 with these scales."""
        out = []
        for cache, scale in zip((self.k, self.v), scales):
            values = cache.astype(np.float64) if self.kind == "int8" else to_float32(cache, "e4m3").astype(np.float64)
            scale = scale.reshape(PAGES, PAGE, KV_HEADS, -1).astype(np.float64)
            out.append((values.reshape(*scale.shape, -1) * scale[..., None]).reshape(values.shape))
        return out

    def run(self, scales=None, narrow=False):
        """Exactly; `narrow`: as a kernel in fp32 that multiplies scores and weights by the scales, and rounds those weights to bf16."""
        k, v = self.wide(scales or (self.k_scale, self.v_scale))
        raw = [c.astype(np.float32) if self.kind == "int8" else to_float32(c, "e4m3") for c in (self.k, self.v)]
        q, out, lse = to_float32(self.q, "bf16"), np.zeros(self.q.shape), np.full(self.q.shape[:2], -np.inf)
        for r, n in enumerate(self.lens):
            at = self.table[r, np.arange(n) // PAGE], np.arange(n) % PAGE
            for row in range(self.cu[r], self.cu[r + 1]):
                end = n - (self.cu[r + 1] - row) + 1
                for head in range(HEADS):
                    kv = head // (HEADS // KV_HEADS)
                    if narrow:
                        x = (raw[0][at][:end, kv] @ q[row, head]) * self.k_scale[at][:end, kv] * np.float32(self.scale)
                        p = np.exp(x - x.max())
                        weights = to_float32(from_float32(p * self.v_scale[at][:end, kv], "bf16"), "bf16")
                        out[row, head] = weights @ raw[1][at][:end, kv] / p.sum(dtype=np.float32)
                    else:
                        x = k[at][:end, kv] @ q[row, head] * self.scale
                        p = np.exp(x - x.max())
                        out[row, head] = p @ v[at][:end, kv] / p.sum()
                    lse[row, head] = x.max() + np.log(p.sum())
        return from_float32(out, "bf16"), lse.astype(np.float32)

    def call(self, out, lse, **options):
        given = dict(
            page_table=self.table, seq_lens=self.lens, qo_indptr=self.cu, lse=lse, sm_scale=self.scale, like=BF16,
            kv_dtype="e4m3" if self.kind == "e4m3" else None, k_scale=self.k_scale, v_scale=self.v_scale,
        )  # fmt: skip
        return judging.attention_call(out, self.q, options.pop("kv", (self.k, self.v)), **{**given, **options})


@pytest.mark.parametrize("kind", ["e4m3", "int8"])
@pytest.mark.parametrize("seed", range(4))
def test_a_kernel_that_rounds_scaled_weights_is_inside(kind, seed):
    call = Scaled(kind, seed=seed)
    report = call.call(*call.run(narrow=True)).judge()
    assert report.passed and report.ratio > 0.1, report


#: What a wrong kernel takes for the scales of K and V.
WRONG = {
    "K's left out": lambda k, v: (np.ones_like(k), v),
    "V's left out": lambda k, v: (k, np.ones_like(v)),
    "exchanged": lambda k, v: (v, k),
    "K's of the next token": lambda k, v: (np.roll(k, 1, axis=1), v),
    "V's of the next token": lambda k, v: (k, np.roll(v, 1, axis=1)),
    "of the next page": lambda k, v: (np.roll(k, 1, axis=0), np.roll(v, 1, axis=0)),
    "of the other head": lambda k, v: (k[:, :, ::-1], v[:, :, ::-1]),
    "of the page's first token": lambda k, v: (k[:, :1].repeat(PAGE, 1), v[:, :1].repeat(PAGE, 1)),
    "squared": lambda k, v: (k * k, v),
    "slots and heads exchanged": lambda k, v: tuple(s.transpose(0, 2, 1, *range(3, s.ndim)).reshape(s.shape) for s in (k, v)),
    "one of V's": lambda k, v: (k, np.where(np.arange(v.size).reshape(v.shape) % 7 == 3, v * np.float32(1.5), v)),
    "K's of the next block": lambda k, v: (np.roll(k, 1, axis=3), v) if k.ndim == 4 else None,
}


@pytest.mark.parametrize("kind", ["e4m3", "int8"])
@pytest.mark.parametrize("blocks", [1, 4])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_scale_from_elsewhere_is_found(kind, blocks, wrong):
    call = Scaled(kind, blocks)
    scales = WRONG[wrong](call.k_scale, call.v_scale)
    if scales is None:
        pytest.skip("one block")
    made = call.call(*call.run(scales))
    report = made.judge()
    assert report.verdict == "outside"


def test_int8_with_a_scale_of_the_call_or_a_head():
    call = Scaled("int8")
    for scale in (np.array([0.02], np.float32), np.array([0.01, 0.03], np.float32)):
        full = np.broadcast_to(scale, (PAGES, PAGE, KV_HEADS)).copy()
        out, lse = call.run((full, full))
        said = call.call(out, lse, k_scale=scale, v_scale=scale).judge()
        assert said.passed and said == call.call(out, lse, k_scale=full, v_scale=full).judge()
        assert not call.call(out, lse, k_scale=scale * 2, v_scale=scale).judge().passed


def test_scales_out_of_range_of_keys_that_are_seen_leave_no_claim():
    call = Scaled("int8")
    out, lse = call.run()
    call.k_scale[call.table[3, 0], 0] = np.nan
    report = call.call(out, lse).judge()
    assert report.claimed == report.elements - 4 * HEADS * (DIM + 1)
    call = Scaled("int8")
    unused = np.setdiff1d(np.arange(PAGES), call.table)
    call.k_scale[unused] = call.v_scale[unused] = np.nan
    assert call.call(out, lse).judge().passed


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(k_scale=np.ones((PAGES, PAGE, 3), np.float32)), "k_scale's axis 2 is 3 long"),
        (dict(v_scale=np.ones((PAGES, PAGE, KV_HEADS, 5), np.float32)), "v_scale has 5 blocks, which do not divide 32 elements"),
        (dict(v_scale=None), "v_scale is missing, int8 caches have one"),
        (dict(like=arithmetic.like("sdpa_math"), k_scale=np.ones(2, np.float32), v_scale=np.ones(5, np.float32)), "v_scale's axis 0 is 5 long"),
        (dict(like=assay.Declaration(p_format="fp16")), "v_scale is one of tokens, judged where weights stay fp32 or are rounded to bf16"),
    ],
)
def test_what_does_not_fit_is_named(change, words):
    call = Scaled("int8")
    with pytest.raises((ValueError, TypeError), match=words):
        call.call(*call.run(), **change).judge()


def test_scales_of_tokens_with_e5m2_are_refused():
    call = Scaled("e4m3")
    with pytest.raises(ValueError, match="k_scale is one of tokens, judged with e4m3 and int8"):
        call.call(*call.run(), kv_dtype="e5m2").judge()
