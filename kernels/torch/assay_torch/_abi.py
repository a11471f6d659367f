# SPDX-License-Identifier: Apache-2.0
"""The C ABI for ctypes. ci/abi_structs.py writes this file from assay.h and plugin.h in kernels/abi."""
from ctypes import POINTER, Structure, c_float, c_int32, c_int64, c_uint32, c_uint64, c_void_p


def _struct(name, *groups):
    """A struct of groups (type, "names ...")."""
    return type(name, (Structure,), {"_fields_": [(field, of) for of, names in groups for field in names.split()]})


ABI_MAJOR = 0
ABI_MINOR = 14
MAX_RANKS = 8
STATUS = {"ok": 0, "invalid_argument": 1, "unsupported": 2, "workspace_too_small": 3, "capacity_exceeded": 4, "launch_failed": 5, "internal": 7}
TARGET = {"simt": 0, "cuda": 1}
DTYPE = {"fp16": 0, "bf16": 1, "fp32": 2, "e4m3": 3, "e5m2": 4}
LSE_BASE = {"e": 0, "2": 1}
MAX_Q_LEN = 8
MAX_CASCADE_LEVELS = 8
EXCHANGE_HEADS = {"scatter": 0, "all": 1}
HAZARD = 6
PagedKv = _struct("PagedKv",
    (c_void_p, "k v"), (c_int64, "k_stride_page k_stride_token k_stride_head v_stride_page v_stride_token v_stride_head"),
    (c_void_p, "page_table seq_lens"), (c_int64, "page_table_stride"), (c_void_p, "page_indptr"), (c_int64, "page_table_stride_head"),
    (c_int32, "rows max_pages page_size"), (c_int32 * 9, "reserved"))
PagedParams = _struct("PagedParams",
    (c_uint32, "struct_size"), (c_int32, "target dtype kv_dtype lse_base batch q_len num_qo_heads num_kv_heads head_dim"),
    (c_float, "sm_scale logits_soft_cap"), (c_int32, "window_left num_splits enable_pdl even_lengths"), (c_void_p, "q"),
    (c_int64, "q_stride_batch q_stride_token q_stride_head"), (c_void_p, "out"),
    (c_int64, "out_stride_batch out_stride_token out_stride_head"), (c_void_p, "lse"),
    (c_int64, "lse_stride_batch lse_stride_token lse_stride_head"), (PagedKv, "kv"), (c_void_p, "k_scale v_scale"),
    (c_int32, "k_scale_stride v_scale_stride"), (c_void_p, "alibi_slopes sinks qo_indptr workspace"), (c_uint64, "workspace_bytes"),
    (c_void_p, "plan"), (c_uint64, "plan_bytes"), (c_void_p, "stream global_lens"),
    (c_int32, "dcp_world_size dcp_rank dcp_interleave reserved"))
PagedChoice = _struct("PagedChoice",
    (c_int32, "version even_lengths"), (c_int32 * 6, "reserved"))
CascadeLevel = _struct("CascadeLevel",
    (PagedKv, "kv"), (c_void_p, "segment_indptr"), (c_int64 * 3, "reserved"))
CascadeParams = _struct("CascadeParams",
    (c_uint32, "struct_size"), (c_int32, "target dtype lse_base batch num_qo_heads num_kv_heads head_dim"), (c_float, "sm_scale"),
    (c_int32, "num_levels num_splits reserved"), (c_void_p, "q"), (c_int64, "q_stride_batch q_stride_head"), (c_void_p, "out"),
    (c_int64, "out_stride_batch out_stride_head"), (c_void_p, "lse"), (c_int64, "lse_stride_batch lse_stride_head"),
    (POINTER(CascadeLevel), "levels"), (c_void_p, "workspace"), (c_uint64, "workspace_bytes"), (c_void_p, "stream"))
MergeStateParams = _struct("MergeStateParams",
    (c_uint32, "struct_size"), (c_int32, "target dtype lse_base num_rows num_heads head_dim reserved"),
    (c_void_p, "o_a lse_a o_b lse_b out lse"),
    (c_int64, "o_a_stride_row o_a_stride_head lse_a_stride_row lse_a_stride_head o_b_stride_row o_b_stride_head lse_b_stride_row lse_b_stride_head out_stride_row out_stride_head lse_stride_row lse_stride_head"),
    (c_void_p, "stream"))
MergeStatesParams = _struct("MergeStatesParams",
    (c_uint32, "struct_size"), (c_int32, "target dtype lse_base num_rows num_states num_heads head_dim"),
    (c_void_p, "o_in lse_in indptr out lse"),
    (c_int64, "o_in_stride_state o_in_stride_head lse_in_stride_state lse_in_stride_head out_stride_row out_stride_head lse_stride_row lse_stride_head"),
    (c_void_p, "stream"))
ExchangeParams = _struct("ExchangeParams",
    (c_uint32, "struct_size"), (c_int32, "target dtype lse_base heads num_ranks rank num_rows num_heads head_dim enable_pdl max_rows"),
    (c_void_p, "o_in lse_in out lse"),
    (c_int64, "o_in_stride_row o_in_stride_head lse_in_stride_row lse_in_stride_head out_stride_row out_stride_head lse_stride_row lse_stride_head"),
    (c_void_p, "windows"), (c_uint64, "window_bytes timeout_ns"), (c_void_p, "status stream"))
