# SPDX-License-Identifier: Apache-2.0
"""One row of a judged call in one .npz: written where the judge fails a call, read by `python -m assay judge`.

A file may come from anywhere. Nothing of it is executed (no pickles), sizes are looked at before anything is read, and what
does not fit is refused with its name and the limit."""
import hashlib
import json
import lzma
import math
import pathlib
import struct
import zipfile
import zlib
from ctypes import c_float, c_int32

import numpy as np

from .. import _abi
from ..elements import STORED
from . import where
from .call import ATTENTION, MERGE, Call
from .excerpt import excerpt, repeated
from .library import DTYPES
from .tensors import Tensor

FORMAT = 2
MOST_BYTES = 1 << 30  #: of all arrays of a file
MOST_HEADER = 1 << 16
MOST_QUERIES = 1 << 20
_PLACE = ("row", "request", "query")
_STRUCTS = {ATTENTION: _abi.AttentionParams, MERGE: _abi.MergeParams}
_FIELDS = {kind: dict(struct._fields_) for kind, struct in _STRUCTS.items()}
_ARRAYS = {kind: [name for name, type_ in fields.items() if type_ is _abi.Array] for kind, fields in _FIELDS.items()}
_SCALARS = {
    kind: {name: type_ for name, type_ in fields.items() if type_ in (c_int32, c_float) and name not in ("reserved", "struct_size")}
    for kind, fields in _FIELDS.items()
}
_ARITHMETIC = {name: type_ for name, type_ in _abi.Arithmetic._fields_ if name != "reserved"}
_REPEATED = ("out", "q", "lse")
_STORED = {**STORED, **{name: np.dtype(name) for name in ("int64", "uint8", "int8")}}
#: What zipfile raises of bytes that are no archive.
_NO_ZIP = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, NotImplementedError, OSError, RuntimeError, UnicodeError,
)  # fmt: skip


class RecordError(ValueError):
    """A file that is no record of a call; the message names the field and the limit."""


def keep(call, report, folder):
    """The file of the row that a report is about, in a folder that is made where there is none."""
    place = {name: report.worst[name] for name in _PLACE if name in report.worst}
    return write(excerpt(call, report.worst["row"]), place, folder)


def write(call, place, folder):
    """The path of a new file, named after what it holds. `call` comes from excerpt."""
    arrays, dtypes = {}, {}
    for name, tensor in call.given().items():
        array = tensor.numpy()
        arrays[name] = np.ascontiguousarray(array[:1] if _repeats(name, array) else array)
        dtypes[name] = tensor.dtype
    header = {
        "format": FORMAT, "kind": call.kind, "like": call.like, "arithmetic": call.arithmetic, "scalars": call.scalars,
        "dtypes": dtypes, "queries": call.tensors["out"].shape[0], "place": place,
    }  # fmt: skip
    text = json.dumps(header, sort_keys=True).encode()
    digest = hashlib.sha256(text)
    for name in sorted(arrays):
        digest.update(arrays[name].tobytes())
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{call.kind}-{digest.hexdigest()[:12]}.npz"
    np.savez_compressed(path, header=np.frombuffer(text, np.uint8), **arrays)
    return path


def _repeats(name, array):
    """Whether an array holds the row once for every query."""
    return name in _REPEATED or name == "q_scale" and array.ndim == 2


def read(path):
    """(Call, place) of a file. RecordError, or OSError where it cannot be read."""
    with open(path, "rb") as file:
        try:
            return _read(file)
        except _NO_ZIP as error:
            raise RecordError(f"it is no .npz file: {error}") from error


def _read(file):
    with zipfile.ZipFile(file) as archive:
        sizes = {member.filename: member.file_size for member in archive.infolist()}
        if sum(sizes.values()) > MOST_BYTES:
            raise RecordError(f"it holds {sum(sizes.values())} bytes, at most {MOST_BYTES} are read")
        if len(sizes) != len(archive.infolist()):
            raise RecordError("it holds a name twice")
        header = _header(_member(archive, "header", sizes, "uint8", MOST_HEADER))
        kind = header["kind"]
        unknown = set(sizes) - {f"{name}.npy" for name in ("header", *_ARRAYS[kind])}
        if unknown:
            raise RecordError(f"it holds {sorted(unknown)[0]!r}, which is no array of {kind}")
        given = [name for name in _ARRAYS[kind] if f"{name}.npy" in sizes]
        tensors = {name: None for name in _ARRAYS[kind]}
        for name in given:
            tensors[name] = _tensor(archive, name, sizes, header)
    for name in ("out", "q", "k", "v", "seq_lens", "page_table") if kind == ATTENTION else ("out", "o_in", "lse_in"):
        if tensors[name] is None:
            raise RecordError(f"{name} is missing")
    call = Call(kind, tensors, header["scalars"], header["like"], header["arithmetic"])
    return call, header["place"]


def judge(path):
    """The JudgeReport of a file; of its worst element the row, request and query are those of the call that it was cut from."""
    return explained(path)[0]


def explained(path, seconds=None):
    """(JudgeReport of a file, notes about what fails: suppositions take so many seconds of processor time)."""
    call, place = read(path)
    try:
        report = call.judge()
        row = report.worst["row"]
        notes = [] if report.passed or report.by_order_alone else where.notes(call, report, place.get("row", row) - row, seconds)
    except ValueError as error:
        raise RecordError(str(error).removeprefix("assay: ")) from error
    report.worst.update(place)
    return report, notes


def _member(archive, name, sizes, dtype, most):
    """One array, its size known before it is read."""
    if f"{name}.npy" not in sizes:
        raise RecordError(f"{name} is missing")
    with archive.open(f"{name}.npy") as file:
        try:
            version = np.lib.format.read_magic(file)
            reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
            shape, fortran, found = reader(file)
        except Exception as error:  # NumPy parses the text of a header, and lets through what its parser raises
            raise RecordError(f"{name} is no array: {error}") from error
        if found.hasobject or found != np.dtype(dtype):
            raise RecordError(f"{name} is {found}, expected {dtype}")
        if len(shape) > 4 or fortran and len(shape) > 1:
            raise RecordError(f"{name} has shape {list(shape)}, expected at most 4 axes in C order")
        size = math.prod(shape) * found.itemsize
        if any(axis < 0 for axis in shape) or size > most:
            raise RecordError(f"{name} has {size} bytes, at most {most} are read")
        data = file.read(size)
        if len(data) != size or file.read(1):
            raise RecordError(f"{name} has not the {size} bytes of its shape {list(shape)}")
    return np.frombuffer(data, found).reshape(shape)


def _tensor(archive, name, sizes, header):
    dtype = header["dtypes"].get(name)
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise RecordError(f"dtypes.{name} is {dtype!r}, expected one of {', '.join(DTYPES)}")
    array = _member(archive, name, sizes, _STORED[dtype], MOST_BYTES)
    if _repeats(name, array):
        if len(array.shape) < 2 or array.shape[0] != 1:
            raise RecordError(f"{name} has shape {list(array.shape)}, expected one row")
        array = repeated(array, header["queries"])
    return Tensor(name, array, dtype if array.dtype == np.uint8 else None)


def _header(array):
    """The header with every field of the type that it must have."""
    try:
        header = json.loads(array.tobytes().decode())
    except ValueError as error:
        raise RecordError(f"header is no JSON: {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise RecordError(f"format is {header.get('format') if isinstance(header, dict) else None!r}, expected {FORMAT}")
    kind = header.get("kind")
    if kind not in (ATTENTION, MERGE):
        raise RecordError(f"kind is {kind!r}, expected {ATTENTION} or {MERGE}")
    _numbers("scalars", header.get("scalars"), _SCALARS[kind])
    _numbers("arithmetic", header.get("arithmetic"), _ARITHMETIC)
    if not isinstance(header.get("dtypes"), dict) or not isinstance(header.get("like"), str) or len(header["like"]) > 64:
        raise RecordError("dtypes or like is missing, or no table and no name")
    _integer("queries", header.get("queries"), 1, MOST_QUERIES)
    place = header.get("place")
    if not isinstance(place, dict) or set(place) - set(_PLACE):
        raise RecordError(f"place is not a table of {', '.join(_PLACE)}")
    for name, value in place.items():
        _integer(f"place.{name}", value, -(1 << 31), 1 << 31)
    return header


def _numbers(field, given, types):
    if not isinstance(given, dict) or set(given) != set(types):
        raise RecordError(f"{field} has not the fields {', '.join(types)}")
    for name, value in given.items():
        if types[name] is c_int32:
            _integer(f"{field}.{name}", value, -(1 << 31), (1 << 31) - 1)
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e308 and not isinstance(value, float):
            raise RecordError(f"{field}.{name} is {str(value)[:40]}, expected a number")


def _integer(name, value, least, most):
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise RecordError(f"{name} is {value!r}, expected an integer, {least} .. {most}")
