# SPDX-License-Identifier: Apache-2.0
"""ctypes binding of kernels/abi/assay.h: paged attention v1 and v2 with their plan, cascades, merges.

The structs are read from the header of this tree. The library compares `struct_size`, so one that was
built from another header refuses them, and misreads nothing.
"""
import ctypes
import pathlib
import re
from ctypes import POINTER, Structure, byref, c_char_p, c_float, c_int32, c_int64, c_uint32, c_uint64, c_void_p

HEADER = pathlib.Path(__file__).resolve().parents[1] / "abi" / "assay.h"
TARGET_SIMT, TARGET_CUDA = 0, 1
DTYPES = {"fp16": 0, "bf16": 1, "fp32": 2, "e4m3": 3, "e5m2": 4}
LSE_NATURAL, LSE_BASE2 = 0, 1
_SCALARS = {"int32_t": c_int32, "int64_t": c_int64, "uint32_t": c_uint32, "uint64_t": c_uint64, "float": c_float}
# Numbers of the header's enumerations.
_SCALARS |= dict.fromkeys(("assay_target", "assay_dtype", "assay_lse_base", "assay_exchange_heads"), c_int32)


def _fields(declaration, structs):
    """(name, type) of each name in `const T *a, *b`, which are pointers to other structs or to anything."""
    words = re.findall(r"\w+", re.sub(r"\bconst\b", "", declaration))
    of = structs.get(words[0]) or _SCALARS.get(words[0])
    if "*" in declaration:
        of = POINTER(structs[words[0]]) if words[0] in structs else c_void_p
    return [(name, of) for name in words[1:]]


def _read_structs(text):
    """The structs of the header by name, in its order: each knows those in front of it."""
    structs = {}
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for name, body in re.findall(r"typedef struct (\w+) {(.*?)} \1;", text, re.S):
        declarations = [line.strip() for line in body.split(";") if line.strip()]
        fields = [field for line in declarations for field in _fields(line, structs)]
        structs[name] = type(name, (Structure,), {"_fields_": fields})
    return structs


_STRUCTS = _read_structs(HEADER.read_text())
PagedKv, PagedParams, PagedChoice, CascadeLevel, CascadeParams, MergeStateParams, MergeStatesParams, ExchangeParams = (
    _STRUCTS[f"assay_{name}"]
    for name in (
        "paged_kv",
        "paged_params",
        "paged_choice",
        "cascade_level",
        "cascade_params",
        "merge_state_params",
        "merge_states_params",
        "exchange_params",
    )
)


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
