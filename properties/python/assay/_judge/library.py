# SPDX-License-Identifier: Apache-2.0
"""libassay_judge through ctypes: finding and calling it.

ctypes and not a compiled module: one wheel then serves every version of Python and of torch.
"""
import ctypes
import functools
import os
import pathlib

from .. import _abi, _processor
from ..program import on_path

NAME = "libassay_judge.so"
CUDA_NAME = "libassay_judge_cuda.so"
#: Numbers of the types that are judged.
DTYPES = {name: number for name, number in _abi.DTYPE.items() if name != "field61"}
DTYPES.update(int32=_abi.INT32, int64=_abi.INT64, uint8=_abi.UINT8, int8=_abi.INT8)
_ENTRIES = (("assay_judge_attention", _abi.AttentionParams), ("assay_judge_merge", _abi.MergeParams))
_SHARPNESS = "assay_judge_attention_sharpness"


class LibraryError(RuntimeError):
    """The library of the judge is not there, or is of another version."""


def find_library():
    """ASSAY_JUDGE_LIBRARY, else the one in this wheel, else that of the `assay` on PATH or in ASSAY_PROGRAM."""
    named = os.environ.get("ASSAY_JUDGE_LIBRARY")
    if named:
        return named
    program = os.environ.get("ASSAY_PROGRAM") or on_path()
    inside = pathlib.Path(__file__).parents[1] / "lib"
    places = [inside]
    if program:
        folder = pathlib.Path(program).resolve().parent
        places += [folder, folder.parent / "lib", *folder.parent.glob("lib/*-linux-gnu")]
    for place in places:
        if (place / NAME).is_file():
            if place == inside:
                _processor.warn()
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
        for name, params in _ENTRIES:
            function = getattr(loaded, name)
            function.argtypes, function.restype = [ctypes.POINTER(params), ctypes.POINTER(_abi.Report)], ctypes.c_int32
        getattr(loaded, _SHARPNESS).argtypes = [ctypes.POINTER(_abi.AttentionParams), ctypes.POINTER(_abi.Sharpness)]
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
        for name, params in _ENTRIES:
            function = getattr(loaded, name + "_cuda")
            function.argtypes, function.restype = [ctypes.POINTER(params), ctypes.c_void_p, ctypes.POINTER(_abi.Report)], ctypes.c_int32
        loaded.assay_judge_last_error.restype = ctypes.c_char_p
    except (OSError, AttributeError) as error:
        raise LibraryError(f"assay: {path}: {error}") from error
    return loaded


def _report(loaded, name, params, *stream, of=_abi.Report):
    params.struct_size = ctypes.sizeof(params)
    report = of(struct_size=ctypes.sizeof(of))
    if getattr(loaded, name)(ctypes.byref(params), *stream, ctypes.byref(report)) != 0:
        raise ValueError("assay: " + loaded.assay_judge_last_error().decode())
    return report


def call(name, params):
    """The report of a call; ValueError with the library's words where it refuses one."""
    return _report(library(), name, params)


def sharpness(params):
    """What a pass of a call of attention is worth."""
    return _report(library(), _SHARPNESS, params, of=_abi.Sharpness)


def call_on_gpu(name, params, stream):
    """The same of tensors on a GPU, behind what `stream` (an address) holds."""
    return _report(cuda_library(), name + "_cuda", params, stream)
