# SPDX-License-Identifier: Apache-2.0
"""The verdict on tensors that are there already: judge, judge_merge, assert_attention, assert_merge."""
import math
import sys

import numpy as np

from . import arithmetic
from . import judge_library as lib
from .judge_report import AttentionError, JudgeReport
from .tensors import Tensor

__all__ = ["AttentionError", "JudgeReport", "assert_attention", "assert_merge", "judge", "judge_merge"]
_BASES = {"e": 0, "natural": 0, 2: 1, "2": 1}
_EMPTY = {"-inf": 0, "inf": 1, "+inf": 1, "either": 2}


def _array(tensor):
    if tensor is None:
        return lib.Array()
    if len(tensor.shape) > 4:
        raise ValueError(f"assay: {tensor.name} has {len(tensor.shape)} dimensions, expected at most 4")
    pad = (0,) * (4 - len(tensor.shape))
    return lib.Array(tensor.data, lib.DTYPES[tensor.dtype], len(tensor.shape), tensor.shape + pad, tensor.stride + pad)


def _optional(name, value):
    return None if value is None else Tensor(name, value)


def _floats(name, value):
    if value is None:
        return None
    tensor = Tensor(name, value).as_floats()
    return tensor if len(tensor.shape) == 1 else tensor.reshape(-1)


def _word(name, value, words):
    if value not in words:
        raise ValueError(f"assay: {name} is {value!r}, expected one of {', '.join(map(repr, words))}")
    return words[value]


def _rows(name, value):
    """[rows, heads, dim]; [batch, queries, heads, dim] is that too."""
    tensor = Tensor(name, value)
    if len(tensor.shape) == 4:
        tensor = tensor.reshape(tensor.shape[0] * tensor.shape[1], *tensor.shape[2:])
    if len(tensor.shape) != 3:
        raise ValueError(f"assay: {name} has shape {list(tensor.shape)}, expected [rows, heads, dim] or [batch, queries, heads, dim]")
    return tensor.unit_rows()


def _lse(value, rows, heads, layout):
    """[rows, heads] out of what kernels return: TH [rows, heads], HT [heads, rows], BHQ [batch, heads, queries]."""
    if value is None:
        return None
    tensor = Tensor("lse", value).as_floats()
    if layout is None:
        fits = [name for name, shape in (("TH", (rows, heads)), ("HT", (heads, rows))) if tensor.shape == shape]
        if len(tensor.shape) == 3:
            fits = ["BHQ"]
        elif rows == heads and fits:
            raise ValueError("assay: lse is square: say lse_layout='TH' ([rows, heads]) or 'HT' ([heads, rows])")
        if not fits:
            raise ValueError(f"assay: lse has shape {list(tensor.shape)}, expected [{rows}, {heads}] or [{heads}, {rows}]")
        layout = fits[0]
    _word("lse_layout", layout, {"TH": 0, "HT": 0, "BHQ": 0})
    if layout == "HT":
        return tensor.transpose(1, 0)
    if layout == "BHQ":
        return tensor.transpose(0, 2, 1).reshape(rows, heads)
    return tensor


def _caches(kv, layout, dtype):
    """k and v as [pages, slots, heads, dim]."""
    if dtype is not None:
        _word("kv_dtype", dtype, {"e4m3": 0, "e5m2": 0})
    if isinstance(kv, (tuple, list)):
        if len(kv) != 2:
            raise ValueError(f"assay: kv has {len(kv)} tensors, expected (k, v) or one pool")
        k, v = Tensor("k", kv[0], dtype), Tensor("v", kv[1], dtype)
    else:
        pool = Tensor("kv", kv)
        if len(pool.shape) != 5 or pool.shape[1] != 2:
            raise ValueError(f"assay: kv has shape {list(pool.shape)}, expected (k, v) or a pool [pages, 2, ...]")
        k, v = Tensor("k", pool.value[:, 0], dtype), Tensor("v", pool.value[:, 1], dtype)
    _word("kv_layout", layout, {"NHD": 0, "HND": 0})
    out = []
    for cache in (k, v):
        if len(cache.shape) == 3:  # [tokens, heads, dim]: pages of one token
            cache = cache.view(cache.value[:, None])
        if len(cache.shape) != 4:
            raise ValueError(f"assay: {cache.name} has shape {list(cache.shape)}, expected [pages, slots, heads, dim]")
        if layout == "HND":
            cache = cache.transpose(0, 2, 1, 3)
        out.append(cache.unit_rows())
    return out


def _stacked(name, values):
    """A tensor, or one out of a list of them."""
    if not isinstance(values, (list, tuple)):
        return Tensor(name, values)
    arrays = [Tensor(name, value).value for value in values]
    torch = sys.modules.get("torch")
    of_torch = torch is not None and all(isinstance(array, torch.Tensor) for array in arrays)
    return Tensor(name, (torch if of_torch else np).stack(arrays))


def _integers(name, value):
    tensor = Tensor(name, value)
    if tensor.dtype not in ("int32", "int64"):
        raise TypeError(f"assay: {name} is {tensor.dtype_name}, expected int32 or int64")
    return tensor


def _host(tensor):
    """Its values, for sums over a batch."""
    return np.asarray(tensor.value).astype(np.int64)


def _worst(element, q_indptr, requests, rows):
    worst = {name: getattr(element, name) for name in ("row", "head", "dim", "got", "exact", "radius", "allowed", "ratio")}
    if requests:
        if q_indptr is not None:
            request = int(np.searchsorted(_host(q_indptr), element.row, side="right")) - 1
            first = int(_host(q_indptr)[request])
        else:
            each = rows // requests
            request, first = element.row // each, element.row // each * each
        worst.update(request=request, query=element.row - first)
    worst["budget"] = {term: getattr(element, term) for term in lib.TERMS}
    worst["reason"] = element.reason.decode()
    return worst


def _report(report, name, q_indptr=None, requests=0):
    return JudgeReport(
        verdict=lib.VERDICTS[report.verdict], like=name,
        worst=_worst(report.worst, q_indptr, requests, report.rows), ratio=report.worst_ratio,
        ratio_lse=report.worst_ratio_lse, budget=report.median_budget, elements=report.elements, claimed=report.claimed,
        findings=report.findings, rows=report.rows, rows_judged=report.rows_judged,
    )  # fmt: skip


def judge(
    out, q, kv, *, seq_lens=None, page_table=None, v_page_table=None, page_indptr=None, last_page_len=None,
    cu_seqlens_q=None, cu_seqlens_k=None, lse=None, lse_base="e", lse_layout=None, empty_lse="-inf", kv_layout="NHD",
    kv_dtype=None, causal=True, window=(-1, -1), sm_scale=None, softcap=0.0, alibi_slopes=None, sinks=None, k_scale=None, v_scale=None,
    like=arithmetic.WIDEST, rows=0, threads=0,
):  # fmt: skip
    """Says of every output of an attention call whether a right kernel could have written it. Changes nothing.

    out, q        [rows, heads, dim] or [batch, queries, heads, dim]; q as the kernel read it (bf16 or fp16; before a
                  reference scales it in place), out bf16, fp16 or fp32
    kv            (k, v), each [pages, slots, kv_heads, dim] (kv_layout "HND": [pages, kv_heads, slots, dim]), one pool
                  [pages, 2, ...], dense [batch, tokens, kv_heads, dim] without a table, or ragged
                  [tokens, kv_heads, dim] with cu_seqlens_k; of q's type or fp8 with k_scale, v_scale ([1] or [kv_heads]);
                  kv_dtype "e4m3" or "e5m2" where the bytes are uint8
    seq_lens      [batch] keys of each request, those of its own queries included; FlashInfer's last_page_len with
                  page_indptr says the same
    page_table    [batch, columns], what stands behind a request's keys is not read; or [entries] with page_indptr
                  [batch + 1]; v_page_table where V lies in other pages
    cu_seqlens_q  [batch + 1] where queries are ragged; else all requests have as many
    lse           [rows, heads], [heads, rows] or [batch, heads, queries] (lse_layout "TH", "HT", "BHQ" where the shape
                  does not say); lse_base "e" or 2; empty_lse "-inf", "inf" or "either"
    causal        query i of n stands at position seq_lens - n + i and sees nothing behind it; window (left, right) in
                  keys beside that, -1: all
    like          the arithmetic that is claimed: a name (assay.arithmetic.names()) or a Declaration. The default fits
                  any flash kernel and is wide: a narrower name finds more
    rows          0: all rows; else that many (first, last, longest, and others spread), for large calls

    Tensors of NumPy, torch (of a GPU: copied) and DLPack; bf16 in NumPy is uint16. Returns a JudgeReport. ValueError
    and TypeError name the argument that does not fit. The bounds: oracle/README.md.
    """
    out, q = _rows("out", out), _rows("q", q)
    k, v = _caches(kv, kv_layout, kv_dtype)
    page_table = None if page_table is None else _integers("page_table", page_table)
    indptr = None if page_indptr is None else _integers("page_indptr", page_indptr)
    if cu_seqlens_k is not None:
        if page_table is not None or seq_lens is not None:
            raise ValueError("assay: cu_seqlens_k says what page_table and seq_lens would: give one of them")
        indptr = _integers("cu_seqlens_k", cu_seqlens_k)
        page_table = Tensor("page_table", np.arange(k.shape[0], dtype=np.int64))
        seq_lens = np.diff(_host(indptr))
    if last_page_len is not None:
        if indptr is None or seq_lens is not None:
            raise ValueError("assay: last_page_len goes with page_indptr, and in the place of seq_lens")
        pages = np.diff(_host(indptr))
        last = _host(_integers("last_page_len", last_page_len))
        seq_lens = np.where(pages > 0, (pages - 1) * k.shape[1] + last, 0)
    if seq_lens is None:
        raise ValueError("assay: seq_lens is not given (or last_page_len, or cu_seqlens_k)")
    seq_lens = _integers("seq_lens", seq_lens)
    q_indptr = None if cu_seqlens_q is None else _integers("cu_seqlens_q", cu_seqlens_q)
    declared = arithmetic.resolve(like)
    left, right = (-1 if side is None else int(side) for side in window)
    keep = dict(
        out=out, q=q, k=k, v=v, lse=_lse(lse, out.shape[0], out.shape[1], lse_layout), page_table=page_table,
        v_page_table=None if v_page_table is None else _integers("v_page_table", v_page_table), page_indptr=indptr,
        seq_lens=seq_lens, q_indptr=q_indptr, k_scale=_floats("k_scale", k_scale), v_scale=_floats("v_scale", v_scale),
        alibi_slopes=_floats("alibi_slopes", alibi_slopes), sinks=_floats("sinks", sinks),
    )  # fmt: skip
    params = lib.Attention(
        causal=int(bool(causal)), sm_scale=1 / math.sqrt(q.shape[2]) if sm_scale is None else float(sm_scale),
        softcap=float(softcap), window_left=left, window_right=right, lse_base=_word("lse_base", lse_base, _BASES),
        empty_lse=_word("empty_lse", empty_lse, _EMPTY), max_rows=int(rows), threads=int(threads),
        arithmetic=lib.Arithmetic(**arithmetic.fields_of(declared)), **{name: _array(t) for name, t in keep.items()},
    )  # fmt: skip
    report = lib.call("assay_judge_attention", params)
    return _report(report, like if isinstance(like, str) else "its declaration", q_indptr, len(_host(seq_lens)))


def judge_merge(out, states, lse_in, *, lse=None, lse_base="e", lse_layout=None, empty_lse="-inf", like=arithmetic.WIDEST, rows=0, threads=0):
    """The same of a merge of attention states.

    out       [rows, heads, dim], bf16, fp16 or fp32
    states    O of each state, a list or a tensor [states, rows, heads, dim] of out's type; lse_in likewise
              [states, rows, heads]
    others    as in judge
    """
    out = _rows("out", out)
    o = _stacked("states", states)
    keep = dict(
        out=out, lse=_lse(lse, out.shape[0], out.shape[1], lse_layout), o=o.unit_rows(),
        lse_in=_stacked("lse_in", lse_in).as_floats(),
    )  # fmt: skip
    declared = arithmetic.resolve(like)
    params = lib.Merge(
        max_rows=int(rows), lse_base=_word("lse_base", lse_base, _BASES), empty_lse=_word("empty_lse", empty_lse, _EMPTY),
        threads=int(threads), arithmetic=lib.Arithmetic(**arithmetic.fields_of(declared)),
        **{name: _array(t) for name, t in keep.items()},
    )  # fmt: skip
    return _report(lib.call("assay_judge_merge", params), like if isinstance(like, str) else "its declaration")


def assert_attention(*arguments, **options):
    """judge, and AttentionError unless every element is inside. Returns the report."""
    return judge(*arguments, **options).raise_for_findings()


def assert_merge(*arguments, **options):
    """judge_merge, and AttentionError unless every element is inside. Returns the report."""
    return judge_merge(*arguments, **options).raise_for_findings()
