# SPDX-License-Identifier: Apache-2.0
"""The C ABI for programs without torch: paged attention v1 and v2 with their plan, cascades, merges.

The structs are those of assay_torch, whose file is read without the package around it. The library compares
`struct_size`, so one that was built from another header refuses them, and misreads nothing."""
import ctypes
import importlib.util
import pathlib
from ctypes import byref, c_char_p, c_int32, c_int64, c_uint64

_FILE = pathlib.Path(__file__).resolve().parents[1] / "torch/assay_torch/_abi.py"
_spec = importlib.util.spec_from_file_location("_abi", _FILE)
_abi = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_abi)
TARGET_SIMT, TARGET_CUDA = _abi.TARGET["simt"], _abi.TARGET["cuda"]
DTYPES, LSE_BASE_2 = _abi.DTYPE, _abi.LSE_BASE["2"]
PagedParams, PagedChoice = _abi.PagedParams, _abi.PagedChoice
CascadeLevel, CascadeParams = _abi.CascadeLevel, _abi.CascadeParams
MergeStateParams, MergeStatesParams = _abi.MergeStateParams, _abi.MergeStatesParams


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
