# SPDX-License-Identifier: Apache-2.0
"""The C ABI for ctypes. ci/abi_structs.py writes this file from assay.h and plugin.h and assay_judge.h in kernels/abi."""
from ctypes import Structure, c_char, c_double, c_float, c_int32, c_int64, c_uint32, c_uint64, c_void_p


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
FAMILY = {"paged": 0, "cascade": 1, "merge_state": 2, "merge_states": 3}
DETERMINISM = {"none": 0, "run_to_run": 1}
FORMAT = {"fp32": 0, "call": 1, "fp16": 2, "bf16": 3, "e4m3": 4, "e5m2": 5, "tf32": 6}
EXPONENTIAL = {"natural": 0, "base2": 1}
ACCUMULATOR = {"fp32": 0, "fp64": 1}
BATCH_INVARIANCE = {"none": 0, "fixed": 1, "always": 2}
NAN_CONTRACT = {"values": 1, "scores": 2}
CAPABILITIES = {"checks_arguments": 1, "ragged_queries": 2, "shards": 4}
FIELD61 = 64
HAZARD = 6
INT32 = 32
INT64 = 33
UINT8 = 34
INT8 = 35
EMPTY_LSE = {"minus_inf": 0, "plus_inf": 1, "either": 2}
VERDICT = {"inside": 0, "outside": 1, "undecided": 2}
ORDER_STATE = {"not_looked_for": 0, "none": 1, "found": 2}
Arithmetic = _struct("Arithmetic",
    (c_int32, "mma_block mma_fraction_bits p_format sum_format exponential sum_depth"),
    (c_double, "q_abs_error exp2_rel_error log2_abs_error rcp_rel_error tanh_abs_error"),
    (c_int32, "tile_tokens max_parallel_states max_splits merge_stages partial_format stored_merges score_format p_scale_log2 rounded_before_scale accumulator kv_format q_format product_format qk_sum_format output_format"),
    (c_int32 * 11, "reserved"))
Array = _struct("Array",
    (c_void_p, "data"), (c_int32, "dtype dims"), (c_int64 * 4, "shape stride"))
AttentionParams = _struct("AttentionParams",
    (c_uint32, "struct_size"), (c_int32, "causal"),
    (Array, "out q k v lse page_table v_page_table page_indptr seq_lens qo_indptr k_scale v_scale o_scale q_scale alibi_slopes sinks mask mask_indptr"),
    (c_float, "sm_scale logits_soft_cap"), (c_int32, "window_left window_right lse_base empty_lse max_rows threads"),
    (Arithmetic, "arithmetic"))
MergeParams = _struct("MergeParams",
    (c_uint32, "struct_size"), (c_int32, "max_rows"), (Array, "out lse o_in lse_in"), (c_int32, "lse_base empty_lse threads reserved"),
    (Arithmetic, "arithmetic"))
Budget = _struct("Budget",
    (c_double, "weights p_rounding accumulation normalisation merge output_rounding flush"), (c_double * 5, "reserved"))
Element = _struct("Element",
    (c_int32, "row head dim reserved"), (c_double, "got exact radius allowed ratio"), (Budget, "budget"), (c_char * 64, "reason"))
Order = _struct("Order",
    (c_int32, "state tile splits states backwards reserved"), (c_uint64, "pairs explained doubts"), (c_int32, "doubt_row doubt_head"),
    (c_double, "doubt_ratio"), (c_char * 256, "words"))
Report = _struct("Report",
    (c_uint32, "struct_size"), (c_int32, "verdict"), (c_uint64, "elements claimed findings certified_rows"), (c_int64, "rows rows_judged"),
    (c_double, "worst_ratio worst_ratio_lse median_budget"), (Element, "worst"), (c_double, "worst_ratio_row"), (Order, "order"))
Sharpness = _struct("Sharpness",
    (c_uint32, "struct_size"), (c_int32, "reserved"), (c_double, "scaling sm_scale lost_weight"))
