# SPDX-License-Identifier: Apache-2.0
"""Caches that lie otherwise, where they do not fit: packed K, dense caches by an index or padded on
the left, lengths from before the append."""
import types

import assay
import numpy as np
import pytest
from test_judge import LENGTHS, PAGE, Call, library  # noqa: F401  (a fixture)

ROOM = 70
X = 8


def dense(call):
    """[requests, ROOM, kv heads, dim] each."""
    return [np.zeros((len(call.lens), ROOM, *cache.shape[2:]), cache.dtype) for cache in (call.k, call.v)]


def packed(call):
    """vLLM's older caches: K [page, head, dim / x, slot, x], V [page, head, dim, slot]."""
    pages, slots, heads, dim = call.k.shape
    k = call.k.reshape(pages, slots, heads, dim // X, X).transpose(0, 2, 3, 1, 4)
    return np.ascontiguousarray(k), np.ascontiguousarray(call.v.transpose(0, 2, 3, 1))


def judged(call, kv, arguments):
    out, lse = call.run()
    return assay.judge(out, call.q, kv, qo_indptr=call.cu, lse=lse, like="fa2", **arguments)


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


#: A cache as a caller holds it, and what else says where keys are.
FORMS = {
    "two tensors": (lambda k, v: (k, v), {}), "a pool": (lambda k, v: np.stack([k, v], 1), {}),
    "two tensors, heads first": (lambda k, v: (k.swapaxes(1, 2), v.swapaxes(1, 2)), dict(kv_layout="HND")),
    "a pool, heads first": (lambda k, v: np.stack([k.swapaxes(1, 2), v.swapaxes(1, 2)], 1), dict(kv_layout="HND")),
    "packed": (lambda k, v: packed(types.SimpleNamespace(k=k, v=v)), {}),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_what_is_wrong_with_k_or_v_is_said_of_it(form):
    call, (make, options) = Call(), FORMS[form]
    out, _ = call.run()
    for q, written, words in ((call.q[..., 1:], out, "k's axis 3 is"), (call.q, out[..., 1:], "v's axis 3 is")):
        with pytest.raises(ValueError, match=f"assay: {words} {call.q.shape[2]} long"):
            assay.judge(written, q, make(call.k, call.v), page_table=call.table, seq_lens=call.lens, qo_indptr=call.cu, **options)


@pytest.mark.parametrize("stored, name", [("i1", "int8"), ("i4", "int32"), ("i8", "int64"), ("f2", "fp16"), ("f4", "fp32")])
def test_types_that_do_not_fit_are_called_by_their_names(stored, name):
    call = Call()
    out, _ = call.run()
    arguments = dict(page_table=call.table, seq_lens=call.lens, qo_indptr=call.cu)
    with pytest.raises(ValueError, match=f"v is {name}, judged are bf16$"):
        assay.judge(out, call.q, (call.k, call.v.astype(stored)), **arguments)
    if name != "int8":
        with pytest.raises(ValueError, match=f"k is {name}, judged are bf16, e4m3, e5m2, int8$"):
            assay.judge(out, call.q, (call.k.astype(stored), call.v), **arguments)


def test_packed_sizes_that_differ_are_named():
    call = Call()
    k, v = packed(call)
    with pytest.raises(ValueError, match="packed K"):
        judged(call, (k, v[:, :, :-1]), dict(page_table=call.table, seq_lens=call.lens))


def test_a_last_page_has_so_many_slots_or_none():
    call = Call()
    out, lse = call.run()
    entries, indptr = np.array([3, 1, 4, 2]), np.array([0, 2, 2, 3, 4])
    says = lambda last: assay.judge(out, call.q, (call.k, call.v), page_table=entries, page_indptr=indptr, last_page_len=last, qo_indptr=call.cu, lse=lse)  # noqa: E731
    lengths = lambda n: assay.judge(out, call.q, (call.k, call.v), page_table=entries, page_indptr=indptr, seq_lens=n, qo_indptr=call.cu, lse=lse)  # noqa: E731
    assert repr(says([0, 7, 2, 0])) == repr(lengths([PAGE, 0, 2, 0])) != repr(lengths([PAGE + 1, 0, 2, 0]))
    for last, words in (([1, 0, 2, 5], r"last_page_len\[3\] is 5, expected 0 .. 4"), ([-1, 0, 2, 1], r"last_page_len\[0\] is -1"), ([1], "last_page_len has shape")):
        with pytest.raises(ValueError, match=words):
            says(last)
