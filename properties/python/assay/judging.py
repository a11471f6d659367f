# SPDX-License-Identifier: Apache-2.0
"""The verdict on tensors that are there already: judge, judge_merge, assert_attention, assert_merge."""
import functools
import math

import numpy as np

from . import arithmetic
from ._judge import inputs, record, where
from ._judge.call import ATTENTION, MERGE, Call
from ._judge.inputs import caches, floats, host, number, word
from ._judge.layouts import Places
from ._judge.names import called
from ._judge.report import AttentionError, JudgeReport

__all__ = ["AttentionError", "JudgeReport", "assert_attention", "assert_merge", "judge", "judge_merge"]
_BASES = {"e": 0, 2: 1}
_EMPTY = {"-inf": 0, "inf": 1, "+inf": 1, "either": 2}


def _call(kind, tensors, like, lse_base, empty_lse, max_rows, threads, **scalars):
    declared = arithmetic.resolve(like)
    scalars.update(
        lse_base=word("lse_base", lse_base, _BASES), empty_lse=word("empty_lse", empty_lse, _EMPTY),
        max_rows=number("max_rows", max_rows, int), threads=number("threads", threads, int),
    )  # fmt: skip
    return Call(kind, tensors, scalars, like if isinstance(like, str) else "its declaration", arithmetic.fields_of(declared))


def _queries(q, qo_indptr, requests):
    """How many queries each request has."""
    return np.diff(host(qo_indptr)) if qo_indptr is not None else np.full(requests, q.shape[0] // max(requests, 1))


def _side(name, keys):
    """Keys on one side of a query's own, -1: all."""
    return -1 if keys is None else number(name, keys, int)


def attention_call(
    out, q, kv_cache, *, seq_lens=None, seq_lens_before=None, page_table=None, v_page_table=None, page_indptr=None, last_page_len=None,
    cache_batch_idx=None, leftpad=None, qo_indptr=None, kv_indptr=None, cu_seqlens_q=None, cu_seqlens_k=None, lse=None,
    lse_base="e", lse_layout=None, empty_lse="-inf", kv_layout="NHD", kv_dtype=None, q_dtype=None, out_dtype=None, causal=None,
    mask=None, packed_mask=None, mask_indptr=None, window_left=-1, window_right=-1, sm_scale=None, logits_soft_cap=0.0,
    alibi_slopes=None, sinks=None, q_scale=None, k_scale=None, v_scale=None, o_scale=None, like=arithmetic.WIDEST, max_rows=0, threads=0,
):  # fmt: skip
    """Says of every output of an attention call whether a right kernel could have written it. Changes nothing.

    out, q        [rows, heads, dim] or [batch, queries, heads, dim]; q as the kernel read it (bf16 or fp16; before a
                  reference scales it in place), out bf16, fp16 or fp32
    kv_cache      (k, v), each [pages, slots, kv_heads, dim] (kv_layout "HND": [pages, kv_heads, slots, dim]), one pool
                  [pages, 2, ...], dense [batch, tokens, kv_heads, dim] without a table, or ragged
                  [tokens, kv_heads, dim] with kv_indptr; or packed, K [pages, kv_heads, dim / x, slots, x] and V
                  [pages, kv_heads, dim, slots]; of q's type, fp8 or int8 with k_scale, v_scale: [1], [kv_heads], of tokens
                  [pages, slots, kv_heads] (laid as the cache), or of blocks of their elements [.., blocks];
                  kv_dtype "e4m3" or "e5m2" where the bytes are uint8
    seq_lens      [batch] keys of each request, those of its own queries included; FlashInfer's last_page_len with
                  page_indptr says the same. seq_lens_before: without them, as calls that append are given
    page_table    [batch, columns], what stands behind a request's keys is not read; or [entries] with page_indptr
                  [batch + 1]; v_page_table where V lies in other pages
    leftpad       [batch] slots of dense caches in front of the first key, counted in seq_lens; cache_batch_idx [batch]:
                  which row of them a request has
    qo_indptr     [batch + 1] where queries are ragged; else all requests have as many. qo_indptr and kv_indptr may be given as
                  cu_seqlens_q and cu_seqlens_k, too
    lse           [rows, heads], [heads, rows], [batch, heads, queries] or [batch, queries, heads] (lse_layout "TH", "HT",
                  "BHQ", "BQH" where the shape does not say); lse_base "e" or 2; empty_lse "-inf", "inf" or "either"
    causal        query i of n stands at position seq_lens - n + i and sees nothing behind it (the default, but with a
                  mask)
    window_left   how many keys before its own one a query sees, window_right: behind it; -1: all
    sm_scale      what scores are multiplied by, 1 / sqrt(dim) unless given; logits_soft_cap c > 0: then c tanh(score / c)
    mask          which query sees which key of its request: flat, request after request (mask_indptr [batch + 1] where it
                  is a part of more), or [batch, queries, keys]; packed_mask: as bits, the lowest first, each request from a
                  byte of its own
    q_scale       of fp8 q (then k and v are of the same type; q_dtype where its bytes are uint8): [1], [heads] or
                  [rows, heads]
    o_scale       [1], of fp8 out (out_dtype where its bytes are uint8): O is out times it
    like          the arithmetic that is claimed: a name (assay.arithmetic.names()) or a Declaration. The default fits
                  any flash kernel and is wide: a narrower name finds more
    max_rows      0: all rows; else that many (first, last, longest, and others spread), for large calls

    Tensors of NumPy, torch (of a GPU: copied) and DLPack; bf16 in NumPy is uint16. Returns a JudgeReport. ValueError
    and TypeError name the argument that does not fit. The bounds: oracle/BOUNDS.md.
    """
    out, q = inputs.rows("out", out, out_dtype), inputs.rows("q", q, q_dtype)
    k, v = caches(kv_cache, kv_layout, kv_dtype)
    name_of_q, qo_indptr = inputs.one_of_two("qo_indptr", qo_indptr, "cu_seqlens_q", cu_seqlens_q)
    name_of_kv, kv_indptr = inputs.one_of_two("kv_indptr", kv_indptr, "cu_seqlens_k", cu_seqlens_k)
    inputs.require_groups(q, k, v, kv_layout)
    given = (("k_scale", k_scale), ("v_scale", v_scale))
    scales = [inputs.kv_scale(name, scale, kv_layout, kv_indptr is not None) for name, scale in given]
    qo_indptr = inputs.optional_integers(name_of_q, qo_indptr)
    places = Places(
        k, v, scales, inputs.optional_integers("page_table", page_table, (1, 2)), inputs.optional_integers("page_indptr", page_indptr),
        seq_lens,
    )  # fmt: skip
    if kv_indptr is not None:
        places.ragged(name_of_kv, kv_indptr)
    if last_page_len is not None:
        places.ends_in(last_page_len)
    if seq_lens_before is not None:
        places.before(seq_lens_before, lambda requests: _queries(q, qo_indptr, requests))
    places.dense(cache_batch_idx, leftpad)
    masked = mask is not None or packed_mask is not None
    if masked:
        lengths = host(places.seq_lens)
        mask = inputs.mask_bytes(mask, packed_mask, _queries(q, qo_indptr, len(lengths)), lengths)
    tensors = dict(
        out=out, q=q, lse=inputs.lse_of(lse, out.shape[0], out.shape[1], lse_layout), qo_indptr=qo_indptr, **places.tensors(),
        v_page_table=inputs.optional_integers("v_page_table", v_page_table, (1, 2)), o_scale=floats("o_scale", o_scale),
        q_scale=inputs.query_scale(q_scale, q.shape[0], q.shape[1]), alibi_slopes=floats("alibi_slopes", alibi_slopes),
        sinks=floats("sinks", sinks), mask=mask, mask_indptr=inputs.optional_integers("mask_indptr", mask_indptr),
    )  # fmt: skip
    return _call(
        ATTENTION, tensors, like, lse_base, empty_lse, max_rows, threads, causal=word("causal", causal, {None: int(not masked), True: 1, False: 0}),
        sm_scale=1 / math.sqrt(max(q.shape[2], 1)) if sm_scale is None else number("sm_scale", sm_scale),
        logits_soft_cap=number("logits_soft_cap", logits_soft_cap), window_left=_side("window_left", window_left),
        window_right=_side("window_right", window_right),
    )  # fmt: skip


def merge_call(out, o_in, lse_in, *, lse=None, lse_base="e", lse_layout=None, empty_lse="-inf", like=arithmetic.WIDEST, max_rows=0, threads=0):
    """The same of a merge of attention states.

    out       [rows, heads, dim], bf16, fp16 or fp32
    o_in      O of each state, a list or a tensor [states, rows, heads, dim] of out's type; lse_in likewise
              [states, rows, heads]
    others    as in judge
    """
    out, o_in = inputs.rows("out", out), inputs.stacked("o_in", o_in).unit_rows()
    if o_in.dtype != out.dtype:
        raise ValueError(f"assay: o_in is {o_in.dtype}, expected {out.dtype} as out is")
    tensors = dict(
        out=out, lse=inputs.lse_of(lse, out.shape[0], out.shape[1], lse_layout), o_in=o_in, lse_in=inputs.stacked("lse_in", lse_in).as_floats(),
    )  # fmt: skip
    return _call(MERGE, tensors, like, lse_base, empty_lse, max_rows, threads)


def _like(described):
    """Gives a function the signature and the text of another."""
    return functools.wraps(described, assigned=("__doc__",), updated=())


@_like(attention_call)
def judge(*arguments, **options):
    return called("judge", attention_call, arguments, options).judge()


@_like(merge_call)
def judge_merge(*arguments, **options):
    return called("judge_merge", merge_call, arguments, options).judge()


def asserted(call, folder, hint_seconds=None):
    """The report of a call, or AttentionError: then the rows concerned lie in a file in `folder` (None: in none)."""
    report = call.judge()
    if report.passed:
        return report
    kept = record.keep(call, report, folder) if folder else None
    try:
        notes = [] if report.by_order_alone else where.notes(call, report, seconds=hint_seconds)
    except Exception as error:  # the verdict stands, whatever becomes of what is said about it
        notes = [f"  where: could not be looked at ({type(error).__name__}: {error})"]
    raise AttentionError(report, kept, notes)


def assert_attention(*arguments, findings="findings", hint_seconds=None, **options):
    """judge, and AttentionError unless every element is inside: the row concerned is then written to a file in the
    folder `findings` (None: nowhere), and the error's last line judges it again. Suppositions about the cause take up to
    `hint_seconds` of processor time (2 unless given). Returns the report."""
    return asserted(called("assert_attention", attention_call, arguments, options), findings, _seconds(hint_seconds))


def assert_merge(*arguments, findings="findings", hint_seconds=None, **options):
    """judge_merge, and AttentionError as by assert_attention."""
    return asserted(called("assert_merge", merge_call, arguments, options), findings, _seconds(hint_seconds))


def _seconds(given):
    return None if given is None else number("hint_seconds", given)
