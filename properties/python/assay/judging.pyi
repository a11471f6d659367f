# SPDX-License-Identifier: Apache-2.0
# What judging.py offers, in words of types; ci/wheel.sh compares the two (mypy.stubtest).
import os
from typing import Any, Literal, Sequence

from ._judge.report import AttentionError as AttentionError, JudgeReport as JudgeReport
from .declaration import Declaration

__all__ = ["AttentionError", "JudgeReport", "assert_attention", "assert_merge", "judge", "judge_merge"]
# Of NumPy, of torch, or what DLPack reads; where lists of numbers will do, those too.
_Tensor = Any
_Base = Literal["e", 2]
_Empty = Literal["-inf", "inf", "+inf", "either"]
_Folder = str | os.PathLike[str] | None

def judge(
    out: _Tensor,
    q: _Tensor,
    kv_cache: _Tensor | tuple[_Tensor, _Tensor],
    *,
    seq_lens: _Tensor | None = None,
    seq_lens_before: _Tensor | None = None,
    page_table: _Tensor | None = None,
    v_page_table: _Tensor | None = None,
    page_indptr: _Tensor | None = None,
    last_page_len: _Tensor | None = None,
    cache_batch_idx: _Tensor | None = None,
    leftpad: _Tensor | None = None,
    qo_indptr: _Tensor | None = None,
    kv_indptr: _Tensor | None = None,
    cu_seqlens_q: _Tensor | None = None,
    cu_seqlens_k: _Tensor | None = None,
    lse: _Tensor | None = None,
    lse_base: _Base = "e",
    lse_layout: Literal["TH", "HT", "BHQ", "BQH"] | None = None,
    empty_lse: _Empty = "-inf",
    kv_layout: Literal["NHD", "HND"] = "NHD",
    kv_dtype: str | None = None,
    q_dtype: str | None = None,
    out_dtype: str | None = None,
    causal: bool | None = None,
    mask: _Tensor | None = None,
    packed_mask: _Tensor | None = None,
    mask_indptr: _Tensor | None = None,
    window_left: int | None = -1,
    window_right: int | None = -1,
    sm_scale: float | None = None,
    logits_soft_cap: float = 0.0,
    alibi_slopes: _Tensor | None = None,
    sinks: _Tensor | None = None,
    q_scale: _Tensor | None = None,
    k_scale: _Tensor | None = None,
    v_scale: _Tensor | None = None,
    o_scale: _Tensor | None = None,
    like: str | Declaration = "flash",
    max_rows: int = 0,
    threads: int = 0,
) -> JudgeReport: ...

def assert_attention(
    out: _Tensor,
    q: _Tensor,
    kv_cache: _Tensor | tuple[_Tensor, _Tensor],
    *,
    findings: _Folder = "findings",
    hint_seconds: float | None = None,
    seq_lens: _Tensor | None = None,
    seq_lens_before: _Tensor | None = None,
    page_table: _Tensor | None = None,
    v_page_table: _Tensor | None = None,
    page_indptr: _Tensor | None = None,
    last_page_len: _Tensor | None = None,
    cache_batch_idx: _Tensor | None = None,
    leftpad: _Tensor | None = None,
    qo_indptr: _Tensor | None = None,
    kv_indptr: _Tensor | None = None,
    cu_seqlens_q: _Tensor | None = None,
    cu_seqlens_k: _Tensor | None = None,
    lse: _Tensor | None = None,
    lse_base: _Base = "e",
    lse_layout: Literal["TH", "HT", "BHQ", "BQH"] | None = None,
    empty_lse: _Empty = "-inf",
    kv_layout: Literal["NHD", "HND"] = "NHD",
    kv_dtype: str | None = None,
    q_dtype: str | None = None,
    out_dtype: str | None = None,
    causal: bool | None = None,
    mask: _Tensor | None = None,
    packed_mask: _Tensor | None = None,
    mask_indptr: _Tensor | None = None,
    window_left: int | None = -1,
    window_right: int | None = -1,
    sm_scale: float | None = None,
    logits_soft_cap: float = 0.0,
    alibi_slopes: _Tensor | None = None,
    sinks: _Tensor | None = None,
    q_scale: _Tensor | None = None,
    k_scale: _Tensor | None = None,
    v_scale: _Tensor | None = None,
    o_scale: _Tensor | None = None,
    like: str | Declaration = "flash",
    max_rows: int = 0,
    threads: int = 0,
) -> JudgeReport: ...

def judge_merge(
    out: _Tensor,
    o_in: _Tensor | Sequence[_Tensor],
    lse_in: _Tensor | Sequence[_Tensor],
    *,
    lse: _Tensor | None = None,
    lse_base: _Base = "e",
    lse_layout: Literal["TH", "HT"] | None = None,
    empty_lse: _Empty = "-inf",
    like: str | Declaration = "flash",
    max_rows: int = 0,
    threads: int = 0,
) -> JudgeReport: ...

def assert_merge(
    out: _Tensor,
    o_in: _Tensor | Sequence[_Tensor],
    lse_in: _Tensor | Sequence[_Tensor],
    *,
    findings: _Folder = "findings",
    hint_seconds: float | None = None,
    lse: _Tensor | None = None,
    lse_base: _Base = "e",
    lse_layout: Literal["TH", "HT"] | None = None,
    empty_lse: _Empty = "-inf",
    like: str | Declaration = "flash",
    max_rows: int = 0,
    threads: int = 0,
) -> JudgeReport: ...
