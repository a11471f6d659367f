# SPDX-License-Identifier: Apache-2.0
"""Caches that lie otherwise: packed K, dense caches by an index or padded on the left, lengths from before the append. Each says
what the same call in plain pages says, and each mistake in it is found."""
import assay
import numpy as np
import pytest
from test_judge import KV_HEADS, LENGTHS, PAGE, Call, library  # noqa: F401  (a fixture)

ROOM = 70
X = 8


def dense(call, pad=None):
    """[requests, ROOM, kv heads, dim] each, the keys of a request behind its pad; the rest is what must not be read."""
    out = []
    for cache in (call.k, call.v):
        rows = np.full((len(call.lens), ROOM, *cache.shape[2:]), 0x7F80, cache.dtype)  # infinity
        for r, n in enumerate(call.lens):
            first = 0 if pad is None else pad[r]
            rows[r, first : first + n] = cache[call.table[r, : -(-n // PAGE)]].reshape(-1, *cache.shape[2:])[:n]
        out.append(rows)
    return out


def packed(call):
    """vLLM's older caches: K [page, head, dim / x, slot, x], V [page, head, dim, slot]."""
    pages, slots, heads, dim = call.k.shape
    k = call.k.reshape(pages, slots, heads, dim // X, X).transpose(0, 2, 3, 1, 4)
    return np.ascontiguousarray(k), np.ascontiguousarray(call.v.transpose(0, 2, 3, 1))


ORDER = np.array([2, 0, 3, 1])
PAD = np.array([3, 0, 5, 6])
#: name: (cache and arguments of the layout, and those that somebody gets wrong)
LAYOUTS = {
    "packed K": (
        lambda c: (packed(c), dict(page_table=c.table, seq_lens=c.lens)),
        {
            "chunks and elements exchanged": lambda c: ((packed(c)[0].reshape(40, KV_HEADS, X, PAGE, 4).transpose(0, 1, 4, 3, 2).copy(), packed(c)[1]), {}),
            "pages of the next id": lambda c: (packed(c), dict(page_table=np.where(c.table < 0, -1, (c.table + 1) % 40))),
            "V of the next slot": lambda c: ((packed(c)[0], np.roll(packed(c)[1], 1, axis=3)), {}),
        },
    ),
    "cache_batch_idx": (
        lambda c: ([np.ascontiguousarray(rows[np.argsort(ORDER)]) for rows in dense(c)], dict(cache_batch_idx=ORDER, seq_lens=c.lens)),
        {
            "left out": lambda c: (None, dict(cache_batch_idx=np.arange(4))),
            "the other way": lambda c: (None, dict(cache_batch_idx=np.argsort(ORDER))),
            "one off": lambda c: (None, dict(cache_batch_idx=(ORDER + 1) % 4)),
        },
    ),
    "leftpad": (
        lambda c: (dense(c, PAD), dict(leftpad=PAD, seq_lens=c.lens + PAD)),
        {
            "lengths without the pad": lambda c: (None, dict(seq_lens=np.maximum(c.lens, PAD))),
            "one too few": lambda c: (None, dict(leftpad=PAD - (PAD > 0), seq_lens=c.lens + PAD - (PAD > 0))),
            "one too many": lambda c: (None, dict(leftpad=PAD + 1, seq_lens=c.lens + PAD + 1)),
        },
    ),
    "before the append": (
        lambda c: ((c.k, c.v), dict(page_table=c.table, seq_lens_before=c.lens - np.diff(c.cu))),
        {
            "lengths behind it": lambda c: (None, dict(seq_lens_before=c.lens)),
            "one key too few": lambda c: (None, dict(seq_lens_before=np.maximum(c.lens - np.diff(c.cu) - 1, 0))),
        },
    ),
}  # fmt: skip


def judged(call, kv, arguments):
    out, lse = call.run()
    return assay.judge(out, call.q, kv, cu_seqlens_q=call.cu, lse=lse, like="fa2", **arguments)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_says_what_pages_say(layout):
    call = Call()
    assert judged(call, *LAYOUTS[layout][0](call)) == call.judge(*call.run())


@pytest.mark.parametrize("layout, mistake", [(layout, mistake) for layout, (_, mistakes) in LAYOUTS.items() for mistake in mistakes])
def test_a_mistake_in_a_layout_is_found(layout, mistake):
    call = Call()
    kv, arguments = LAYOUTS[layout][0](call)
    changed, changes = LAYOUTS[layout][1][mistake](call)
    try:
        report = judged(call, kv if changed is None else changed, {**arguments, **changes})
    except ValueError as error:
        assert "seq_lens" in str(error) or "page_table names page -1" in str(error)
    else:
        # Where the pad is read, inputs are infinite and nothing is claimed of that row.
        assert report.verdict == "outside" or report.claimed < report.elements, report


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(page_table=np.zeros((4, 20), np.int32)), "cache_batch_idx and leftpad go with dense caches, without page_table"),
        (dict(cache_batch_idx=[0, 1, 2, 9]), "page_table names page 9"),
        (dict(leftpad=[0, 0, 9, 0]), r"leftpad\[2\] is 9, expected 0 .. seq_lens\[2\] = 5"),
        (dict(leftpad=[0, -1, 0, 0]), r"leftpad\[1\] is -1"),
        (dict(seq_lens=[71, 0, 5, 64], leftpad=[0] * 4), r"seq_lens\[0\] is 71, its cache holds 70"),
        (dict(seq_lens_before=LENGTHS), "seq_lens_before is given beside seq_lens"),
    ],
)
def test_what_does_not_fit_is_named(change, words):
    call = Call()
    with pytest.raises(ValueError, match=words):
        judged(call, dense(call), {**dict(cache_batch_idx=np.arange(4), seq_lens=call.lens), **change})


def test_packed_sizes_that_differ_are_named():
    call = Call()
    k, v = packed(call)
    with pytest.raises(ValueError, match="packed K"):
        judged(call, (k, v[:, :, :-1]), dict(page_table=call.table, seq_lens=call.lens))


def test_a_last_page_has_so_many_slots_or_none():
    call = Call()
    out, lse = call.run()
    entries, indptr = np.array([3, 1, 4, 2]), np.array([0, 2, 2, 3, 4])
    says = lambda last: assay.judge(out, call.q, (call.k, call.v), page_table=entries, page_indptr=indptr, last_page_len=last, cu_seqlens_q=call.cu, lse=lse)  # noqa: E731
    lengths = lambda n: assay.judge(out, call.q, (call.k, call.v), page_table=entries, page_indptr=indptr, seq_lens=n, cu_seqlens_q=call.cu, lse=lse)  # noqa: E731
    assert repr(says([0, 7, 2, 0])) == repr(lengths([PAGE, 0, 2, 0])) != repr(lengths([PAGE + 1, 0, 2, 0]))
    for last, words in (([1, 0, 2, 5], r"last_page_len\[3\] is 5, expected 0 .. 4"), ([-1, 0, 2, 1], r"last_page_len\[0\] is -1"), ([1], "last_page_len has shape")):
        with pytest.raises(ValueError, match=words):
            says(last)
