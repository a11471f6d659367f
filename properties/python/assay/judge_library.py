# SPDX-License-Identifier: Apache-2.0
"""libassay_judge through ctypes: the structs of assay_judge.h, and finding the library.

ctypes and not a compiled module: one wheel then serves every version of Python and of torch.
"""
import ctypes
import dataclasses
import functools
import os
import pathlib
import shutil

from .declaration import Declaration

i32, i64, u64, f32, f64 = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64, ctypes.c_float, ctypes.c_double
NAME = "libassay_judge.so"
CUDA_NAME = "libassay_judge_cuda.so"
DTYPES = {"fp16": 0, "bf16": 1, "fp32": 2, "e4m3": 3, "e5m2": 4, "int32": 32, "int64": 33, "uint8": 34, "int8": 35}
VERDICTS = ("inside", "outside", "undecided")
TERMS = ("weights", "p_rounding", "accumulation", "normalisation", "merge", "output_rounding", "flush")


class Array(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", i32), ("dims", i32), ("shape", i64 * 4), ("stride", i64 * 4)]


class Arithmetic(ctypes.Structure):
    _fields_ = [(field.name, f64 if field.type is float else i32) for field in dataclasses.fields(Declaration)]


class Attention(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32), ("causal", i32), ("out", Array), ("q", Array), ("k", Array), ("v", Array),
        ("lse", Array), ("page_table", Array), ("v_page_table", Array), ("page_indptr", Array), ("seq_lens", Array),
        ("q_indptr", Array), ("k_scale", Array), ("v_scale", Array), ("o_scale", Array), ("q_scale", Array),
        ("alibi_slopes", Array), ("sinks", Array), ("mask", Array), ("mask_indptr", Array),
        ("sm_scale", f32), ("softcap", f32), ("window_left", i32), ("window_right", i32), ("lse_base", i32),
        ("empty_lse", i32), ("max_rows", i32), ("threads", i32), ("arithmetic", Arithmetic),
    ]  # fmt: skip


class Merge(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32), ("max_rows", i32), ("out", Array), ("lse", Array), ("o", Array),
        ("lse_in", Array), ("lse_base", i32), ("empty_lse", i32), ("threads", i32), ("reserved", i32),
        ("arithmetic", Arithmetic),
    ]  # fmt: skip


class Element(ctypes.Structure):
    _fields_ = [
        ("row", i32), ("head", i32), ("dim", i32), ("reserved", i32), ("got", f64), ("exact", f64), ("radius", f64),
        ("allowed", f64), ("ratio", f64), *[(term, f64) for term in TERMS], ("reason", ctypes.c_char * 64),
    ]  # fmt: skip


class Report(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32), ("verdict", i32), ("elements", u64), ("claimed", u64), ("findings", u64),
        ("certified_rows", u64), ("rows", i64), ("rows_judged", i64), ("worst_ratio", f64), ("worst_ratio_lse", f64),
        ("median_budget", f64), ("worst", Element),
    ]  # fmt: skip


class LibraryError(RuntimeError):
    """The library of the judge is not there, or is of another version."""


def find_library():
    """ASSAY_JUDGE_LIBRARY, else the one in this wheel, else that of the `assay` on PATH or in ASSAY_PROGRAM."""
    named = os.environ.get("ASSAY_JUDGE_LIBRARY")
    if named:
        return named
    program = os.environ.get("ASSAY_PROGRAM") or shutil.which("assay")
    places = [pathlib.Path(__file__).parent / "lib"]
    if program:
        folder = pathlib.Path(program).resolve().parent
        places += [folder, folder.parent / "lib", *folder.parent.glob("lib/*-linux-gnu")]
    for place in places:
        if (place / NAME).is_file():
            return str(place / NAME)
    raise LibraryError(
        f"assay: {NAME} was not found: set ASSAY_JUDGE_LIBRARY to it (build/program/{NAME} of the tree), "
        "put an installed assay on PATH, or install the package (pip install . at the root of the tree)"
    )


@functools.cache
def library():
    path = find_library()
    try:
        loaded = ctypes.CDLL(path)
        for name, params in (("assay_judge_attention", Attention), ("assay_judge_merge", Merge)):
            function = getattr(loaded, name)
            function.argtypes, function.restype = [ctypes.POINTER(params), ctypes.POINTER(Report)], i32
        loaded.assay_judge_last_error.restype = ctypes.c_char_p
    except (OSError, AttributeError) as error:
        raise LibraryError(f"assay: {path}: {error}") from error
    return loaded


@functools.cache
def cuda_library():
    """libassay_judge_cuda: ASSAY_JUDGE_CUDA_LIBRARY, else the one beside libassay_judge; None where neither is there."""
    path = os.environ.get("ASSAY_JUDGE_CUDA_LIBRARY")
    if not path:
        beside = pathlib.Path(find_library()).parent / CUDA_NAME
        if not beside.is_file():
            return None
        path = str(beside)
    try:
        loaded = ctypes.CDLL(path)
        for name, params in (("assay_judge_attention", Attention), ("assay_judge_merge", Merge)):
            function = getattr(loaded, name + "_cuda")
            function.argtypes, function.restype = [ctypes.POINTER(params), ctypes.c_void_p, ctypes.POINTER(Report)], i32
        loaded.assay_judge_last_error.restype = ctypes.c_char_p
    except (OSError, AttributeError) as error:
        raise LibraryError(f"assay: {path}: {error}") from error
    return loaded


def _report(loaded, name, params, *stream):
    params.struct_size = ctypes.sizeof(params)
    report = Report(struct_size=ctypes.sizeof(Report))
    if getattr(loaded, name)(ctypes.byref(params), *stream, ctypes.byref(report)) != 0:
        raise ValueError("assay: " + loaded.assay_judge_last_error().decode().replace("q_indptr", "cu_seqlens_q"))
    return report


def call(name, params):
    """The report of a call; ValueError with the library's words where it refuses one."""
    return _report(library(), name, params)


def call_on_gpu(name, params, stream):
    """The same of tensors on a GPU, behind what `stream` (an address) holds."""
    return _report(cuda_library(), name + "_cuda", params, stream)
