# SPDX-License-Identifier: Apache-2.0
"""ctypes binding of kernels/abi/assay.h: paged attention v1 and v2 with their plan, cascades, merges.

The structs follow the header line by line: a field added there is added here at the same place.
The library compares `struct_size`, so a struct that lags behind is refused, not misread.
"""
import ctypes
from ctypes import POINTER, Structure, byref, c_char_p, c_float, c_int32, c_int64, c_uint32, c_uint64, c_void_p

TARGET_SIMT, TARGET_CUDA = 0, 1
DTYPES = {"fp16": 0, "bf16": 1, "fp32": 2, "e4m3": 3, "e5m2": 4}
LSE_NATURAL, LSE_BASE2 = 0, 1


class PagedKv(Structure):
    """assay_paged_kv"""

    _fields_ = [
        ("k", c_void_p),
        ("v", c_void_p),
        ("k_stride_page", c_int64),
        ("k_stride_token", c_int64),
        ("k_stride_head", c_int64),
        ("v_stride_page", c_int64),
        ("v_stride_token", c_int64),
        ("v_stride_head", c_int64),
        ("page_table", c_void_p),
        ("seq_lens", c_void_p),
        ("page_table_stride", c_int64),
        ("rows", c_int32),
        ("max_pages", c_int32),
        ("page_size", c_int32),
        ("reserved", c_int32),
    ]


class PagedParams(Structure):
    """assay_paged_params"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("target", c_int32),
        ("dtype", c_int32),
        ("kv_dtype", c_int32),
        ("lse_base", c_int32),
        ("batch", c_int32),
        ("q_len", c_int32),
        ("num_qo_heads", c_int32),
        ("num_kv_heads", c_int32),
        ("head_dim", c_int32),
        ("sm_scale", c_float),
        ("logits_softcap", c_float),
        ("window", c_int32),
        ("num_splits", c_int32),
        ("early_start", c_int32),
        ("even_lengths", c_int32),
        ("q", c_void_p),
        ("q_stride_batch", c_int64),
        ("q_stride_token", c_int64),
        ("q_stride_head", c_int64),
        ("o", c_void_p),
        ("o_stride_batch", c_int64),
        ("o_stride_token", c_int64),
        ("o_stride_head", c_int64),
        ("lse", c_void_p),
        ("lse_stride_batch", c_int64),
        ("lse_stride_token", c_int64),
        ("lse_stride_head", c_int64),
        ("kv", PagedKv),
        ("k_scale", c_void_p),
        ("v_scale", c_void_p),
        ("k_scale_stride", c_int32),
        ("v_scale_stride", c_int32),
        ("alibi_slopes", c_void_p),
        ("sinks", c_void_p),
        ("workspace", c_void_p),
        ("workspace_bytes", c_uint64),
        ("plan", c_void_p),
        ("plan_bytes", c_uint64),
        ("stream", c_void_p),
    ]


class PagedChoice(Structure):
    """assay_paged_choice"""

    _fields_ = [("version", c_int32), ("even_lengths", c_int32)]


class CascadeLevel(Structure):
    """assay_cascade_level"""

    _fields_ = [("kv", PagedKv), ("segment_indptr", c_void_p)]


class CascadeParams(Structure):
    """assay_cascade_params"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("target", c_int32),
        ("dtype", c_int32),
        ("lse_base", c_int32),
        ("batch", c_int32),
        ("num_qo_heads", c_int32),
        ("num_kv_heads", c_int32),
        ("head_dim", c_int32),
        ("sm_scale", c_float),
        ("num_levels", c_int32),
        ("num_splits", c_int32),
        ("reserved", c_int32),
        ("q", c_void_p),
        ("q_stride_batch", c_int64),
        ("q_stride_head", c_int64),
        ("o", c_void_p),
        ("o_stride_batch", c_int64),
        ("o_stride_head", c_int64),
        ("lse", c_void_p),
        ("lse_stride_batch", c_int64),
        ("lse_stride_head", c_int64),
        ("levels", POINTER(CascadeLevel)),
        ("workspace", c_void_p),
        ("workspace_bytes", c_uint64),
        ("stream", c_void_p),
    ]


class MergeStateParams(Structure):
    """assay_merge_state_params"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("target", c_int32),
        ("dtype", c_int32),
        ("lse_base", c_int32),
        ("num_rows", c_int32),
        ("num_heads", c_int32),
        ("head_dim", c_int32),
        ("reserved", c_int32),
        ("o_a", c_void_p),
        ("lse_a", c_void_p),
        ("o_b", c_void_p),
        ("lse_b", c_void_p),
        ("o", c_void_p),
        ("lse", c_void_p),
        ("o_a_stride_row", c_int64),
        ("o_a_stride_head", c_int64),
        ("lse_a_stride_row", c_int64),
        ("lse_a_stride_head", c_int64),
        ("o_b_stride_row", c_int64),
        ("o_b_stride_head", c_int64),
        ("lse_b_stride_row", c_int64),
        ("lse_b_stride_head", c_int64),
        ("o_stride_row", c_int64),
        ("o_stride_head", c_int64),
        ("lse_stride_row", c_int64),
        ("lse_stride_head", c_int64),
        ("stream", c_void_p),
    ]


class MergeStatesParams(Structure):
    """assay_merge_states_params"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("target", c_int32),
        ("dtype", c_int32),
        ("lse_base", c_int32),
        ("num_rows", c_int32),
        ("num_states", c_int32),
        ("num_heads", c_int32),
        ("head_dim", c_int32),
        ("o_in", c_void_p),
        ("lse_in", c_void_p),
        ("indptr", c_void_p),
        ("o", c_void_p),
        ("lse", c_void_p),
        ("o_in_stride_state", c_int64),
        ("o_in_stride_head", c_int64),
        ("lse_in_stride_state", c_int64),
        ("lse_in_stride_head", c_int64),
        ("o_stride_row", c_int64),
        ("o_stride_head", c_int64),
        ("lse_stride_row", c_int64),
        ("lse_stride_head", c_int64),
        ("stream", c_void_p),
    ]


class AssayError(RuntimeError):
    """A status other than ASSAY_OK, with the library's message."""


class Assay:
    """The library at `path`. Every call raises AssayError where the C call returns a status."""

    def __init__(self, path):
        self._lib = ctypes.CDLL(path)
        self._lib.assay_last_error.restype = c_char_p

    def _call(self, name, params, *rest):
        params.struct_size = ctypes.sizeof(params)
        call = getattr(self._lib, "assay_" + name)
        if call(byref(params), *rest) != 0:
            raise AssayError(f"{name}: {self._lib.assay_last_error().decode()}")

    def _size(self, name, params):
        size = c_uint64()
        self._call(name, params, byref(size))
        return size.value

    def paged_attention_v1(self, params):
        self._call("paged_attention_v1", params)

    def paged_attention_v2(self, params):
        self._call("paged_attention_v2", params)

    def paged_attention_v2_plan(self, params):
        self._call("paged_attention_v2_plan", params)

    def paged_attention_v2_workspace_size(self, params):
        return self._size("paged_attention_v2_workspace_size", params)

    def paged_attention_v2_plan_size(self, params):
        return self._size("paged_attention_v2_plan_size", params)

    def paged_attention_choose(self, params, lens):
        """PagedChoice for requests of these lengths."""
        choice = PagedChoice()
        self._call("paged_attention_choose", params, c_int64(sum(lens)), c_int32(max(lens)), byref(choice))
        return choice

    def cascade_attention(self, params):
        self._call("cascade_attention", params)

    def cascade_attention_workspace_size(self, params):
        return self._size("cascade_attention_workspace_size", params)

    def merge_state(self, params):
        self._call("merge_state", params)

    def merge_states(self, params):
        self._call("merge_states", params)
