# SPDX-License-Identifier: Apache-2.0
"""Custom masks: every form of the same mask gets the same verdict, mistakes in it are found, misfits are named."""
import dataclasses
import assay
import numpy as np
import pytest
from assay import from_float32, judging, to_float32
from assay._judge import record as judge_record
from test_judge import exact_attention, library  # noqa: F401  (a fixture)

QUERIES, KEYS, PAGE = [4, 1, 6], [37, 20, 50], 4
SCALE = 0.25


class Masked:
    """Three requests with a mask each, over pages, and what a right kernel writes."""

    def __init__(self, masks=None, seed=1):
        draw = np.random.default_rng(seed)
        self.masks = masks or [draw.random((q, k)) < 0.6 for q, k in zip(QUERIES, KEYS)]
        numbers = lambda *shape: from_float32(draw.standard_normal(shape), "bf16")  # noqa: E731
        self.q, self.k, self.v = numbers(sum(QUERIES), 4, 16), numbers(40, PAGE, 2, 16), numbers(40, PAGE, 2, 16)
        pages = draw.permutation(40)
        self.table = np.full((3, 13), -1, np.int32)
        for r, n in enumerate(KEYS):
            count = -(-n // PAGE)
            self.table[r, :count], pages = pages[:count], pages[count:]
        self.cu = np.concatenate([[0], np.cumsum(QUERIES)])

    def run(self, masks=None, scattered=None):
        """O and LSE with these masks in the place of its own."""
        out, lse = np.zeros((sum(QUERIES), 4, 16)), np.zeros((sum(QUERIES), 4), np.float32)
        for r, n in enumerate(KEYS):
            keys, values = (to_float32(c[self.table[r, : -(-n // PAGE)]].reshape(-1, 2, 16)[:n], "bf16") for c in (self.k, self.v))
            rows = slice(self.cu[r], self.cu[r + 1])
            mask = (masks or self.masks)[r]
            with np.errstate(invalid="ignore", divide="ignore"):
                o, s = exact_attention(to_float32(self.q[rows], "bf16"), keys, values, SCALE, np.where(mask.any(1, keepdims=True), mask, True))
            empty = ~mask.any(1)
            o[empty], s[empty] = 0, -np.inf
            out[rows], lse[rows] = o, s
        return from_float32(out, "bf16"), lse

    def arguments(self, out, lse):
        return dict(
            out=out, q=self.q, kv_cache=(self.k, self.v), page_table=self.table, seq_lens=KEYS, qo_indptr=self.cu, lse=lse, sm_scale=SCALE, like="fa2"
        )  # fmt: skip

    def judge(self, out, lse, **mask):
        return assay.judge(**self.arguments(out, lse), **(mask or dict(mask=flat(self.masks))))


def flat(masks):
    return np.concatenate([m.reshape(-1) for m in masks])


def packed(masks, bitorder="little"):
    return np.concatenate([np.packbits(m.reshape(-1), bitorder=bitorder) for m in masks])


def dense(masks):
    out = np.ones((3, max(QUERIES), max(KEYS)), bool)
    for r, m in enumerate(masks):
        out[r, : m.shape[0], : m.shape[1]] = m
    return out


def tree():
    """All of the prefix, and of the draft tokens a row's ancestors and itself."""
    masks = []
    for q, k in zip(QUERIES, KEYS):
        mask = np.zeros((q, k), bool)
        mask[:, : k - q] = True
        for i in range(q):
            node = i
            while node >= 0:
                mask[i, k - q + node] = True
                node = (node - 1) // 2 if node else -1
        masks.append(mask)
    return masks


def test_a_tree_of_draft_tokens():
    call = Masked(tree())
    assert call.judge(*call.run()).passed
    assert not call.judge(*call.run([np.tri(q, k, k - q, bool) for q, k in zip(QUERIES, KEYS)])).passed


def test_a_row_that_sees_nothing_is_zero():
    call = Masked()
    call.masks[2][3] = False
    out, lse = call.run()
    assert call.judge(out, lse).passed
    out[8, 0, 0] = 0x3F80
    assert call.judge(out, lse).worst["row"] == 8


def test_a_mask_of_all_is_no_mask_and_a_triangle_is_causal():
    call = Masked([np.tri(q, k, k - q, bool) for q, k in zip(QUERIES, KEYS)])
    out, lse = call.run()
    plain = assay.judge(**call.arguments(out, lse))
    assert plain.passed and plain.order
    plain = dataclasses.replace(plain, order="")  # keys that a mask shows have lost their places
    assert call.judge(out, lse) == plain
    assert call.judge(out, lse, mask=flat([np.ones_like(m) for m in call.masks]), causal=True) == plain
    window = assay.judge(**call.arguments(out, lse), window_left=9)
    joined = [m & (np.arange(k)[None] >= k - q + np.arange(q)[:, None] - 9) for m, q, k in zip(call.masks, QUERIES, KEYS)]
    assert not window.passed and call.judge(out, lse, mask=flat(call.masks), window_left=9).worst == window.worst
    assert call.judge(*call.run(joined), mask=flat(call.masks), window_left=9).passed


def flipped(masks, request, query, key):
    masks = [m.copy() for m in masks]
    masks[request][query, key] ^= True
    return masks


def shifted(mask):
    return np.roll(mask, 1, axis=1)


#: The mask that a wrong kernel reads in the place of the right one.
WRONG = {
    "one bit": lambda m: flipped(m, 2, 3, 17),
    "first key of a request": lambda m: flipped(m, 1, 0, 0),
    "last key of the last row": lambda m: flipped(m, 2, 5, 49),
    "shifted by a key": lambda m: [shifted(x) for x in m],
    "rows in reverse": lambda m: [x[::-1] for x in m],
    "inverted": lambda m: [~x for x in m],
    "not looked at": lambda m: [np.ones_like(x) for x in m],
    "causal in its place": lambda m: [np.tri(*x.shape, x.shape[1] - x.shape[0], bool) for x in m],
    "causal beside it": lambda m: [x & np.tri(*x.shape, x.shape[1] - x.shape[0], bool) for x in m],
    "stride of the longest request": lambda m: [m[0], m[1], np.resize(m[2].reshape(-1)[1:], m[2].shape)],
    "bits from the top": lambda m: [np.unpackbits(np.packbits(x.reshape(-1), bitorder="big"), bitorder="little")[: x.size].reshape(x.shape).astype(bool) for x in m],
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_mask_is_found(wrong):
    call = Masked()
    report = call.judge(*call.run(WRONG[wrong](call.masks)))
    assert report.verdict == "outside"


def test_hidden_keys_between_cost_room_for_their_tiles():
    call = Masked([np.arange(k)[None].repeat(q, 0) % 4 == 0 for q, k in zip(QUERIES, KEYS)])
    like = assay.Declaration(**{**assay.arithmetic.like("fa2").__dict__, "tile_tokens": 16})
    out, lse = call.run()
    scattered = assay.judge(**{**call.arguments(out, lse), "like": like}, mask=flat(call.masks))
    together = assay.judge(
        out[4:5], call.q[4:5], [np.ascontiguousarray(c[call.table[1, :5]].reshape(-1, 2, 16)[::4])[None] for c in (call.k, call.v)],
        seq_lens=[5], lse=lse[4:5], sm_scale=SCALE, like=like,
    )  # fmt: skip
    assert scattered.passed and together.passed
    alone = judging.attention_call(**{**call.arguments(out, lse), "like": like}, mask=flat(call.masks))
    assert judge_record.excerpt(alone, 4).judge().budget >= together.budget


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(mask=np.ones(7, bool)), "mask has 7 elements, request 0 has those from 0 to 148"),
        (dict(mask=np.ones(500, bool)), "mask of request 2 ends at 500, expected 468"),
        (dict(mask=np.ones(468, np.float32)), "mask is float32, expected bool or uint8"),
        (dict(mask=np.ones((3, 2, 50), bool)), r"mask has shape \[3, 2, 50\], expected \[3, 6, 50\] or one axis"),
        (dict(packed_mask=np.ones(9, np.uint8)), r"packed_mask is uint8 of shape \[9\], expected uint8 of \[60\]"),
        (dict(mask=np.ones(468, bool), mask_indptr=[0, 148, 168, 999]), "mask of request 2 ends at 999, expected 468"),
        (dict(mask=np.ones(468, bool), mask_indptr=[0, 1 << 62, 168, 468]), "mask of request 0 ends at"),
        (dict(mask=np.ones(468, bool), mask_indptr=[-5, 148, 168, 468]), r"mask_indptr\[0\] is -5"),
        (dict(mask=np.ones(468, bool), alibi_slopes=[1.0] * 4), "mask is given with alibi_slopes"),
        (dict(mask_indptr=[0, 148, 168, 468]), "mask_indptr is given without mask"),
    ],
)
def test_what_does_not_fit_is_named(change, words):
    call = Masked()
    with pytest.raises((ValueError, TypeError), match=words):
        assay.judge(**call.arguments(*call.run()), **change)


def test_the_causal_mask_of_torch_begins_at_the_first_key():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, n, 32, dtype=torch.bfloat16) for n in (3, 9, 9))
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    tensors = [t.transpose(1, 2) for t in (out, q, k, v)]
    of_torch = torch.ones(len(q), q.shape[2], k.shape[2]).tril().bool()
    assert assay.judge(*tensors[:2], tensors[2:], seq_lens=[9, 9], causal=False, mask=of_torch).passed
    assert assay.judge(*tensors[:2], tensors[2:], seq_lens=[9, 9], causal=True).verdict == "outside"
