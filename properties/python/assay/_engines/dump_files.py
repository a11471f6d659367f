# SPDX-License-Identifier: Apache-2.0
"""What FlashInfer writes at FLASHINFER_LOGLEVEL=10: a folder a call with metadata.jsonl, inputs and outputs as .pt or
.safetensors (flashinfer/api_logging.py). A dump may come from anywhere: sizes are looked at first, nothing is executed."""
import ast
import dataclasses
import json
import math
import pathlib
import re
import sys
import zipfile

import numpy as np

MOST_TEXT = 1 << 26  #: bytes of a metadata.jsonl, and of a header
MOST_SESSION = 1 << 30
MOST_TENSORS = 1 << 33  #: bytes of one file of tensors
MOST_DEPTH = 8
#: NumPy's type, and how assay calls it where NumPy has none.
_SAFE = {
    "F64": ("<f8", None), "F32": ("<f4", None), "F16": ("<f2", None), "BF16": ("<u2", None), "I64": ("<i8", None), "I32": ("<i4", None),
    "I16": ("<i2", None), "I8": ("i1", None), "U8": ("u1", None), "BOOL": ("?", None), "F8_E4M3": ("u1", "e4m3"), "F8_E5M2": ("u1", "e5m2"),
}  # fmt: skip


class DumpError(ValueError):
    """A call of a dump that cannot be read; the message names the file and the limit."""


class Fp8(np.ndarray):
    """Bytes that are fp8 of the type `kind`."""

    kind = None

    def __array_finalize__(self, other):
        self.kind = getattr(other, "kind", None)


@dataclasses.dataclass
class DumpedCall:
    """One call: parameters by name, results in order."""

    folder: str
    name: str  #: Class.method or a function
    self_id: tuple  #: process and object
    arguments: dict
    extra: tuple  #: positional arguments that the signature has no name for
    results: list


def folders(dump):
    """Folders of calls, in the order in which they ended where session.jsonl says so."""
    root = pathlib.Path(dump)
    found = {path.parent.relative_to(root).as_posix() for path in root.glob("**/metadata.jsonl")}
    # Older records name what is written once more by each replay of a graph.
    found -= {f.split("/graph_flushes/")[0] for f in found if "/graph_flushes/" in f}
    order = {}
    session = root / "session.jsonl"
    if session.is_file() and session.stat().st_size <= MOST_SESSION:
        with open(session, errors="replace") as lines:
            for number, line in enumerate(lines):
                # The folder may have been moved since: what stands behind the last of its parts counts.
                match = re.search(r'"dump_dir": "(?:[^"]*/)?([^"/]+(?:/graph_flushes/[^"/]+)?)"', line[-1 << 16 :] if len(line) > 1 << 16 else line)
                if match:
                    order.setdefault(match[1], []).append(number)
    last = {folder: order.get(folder, [1 << 60])[-1] for folder in found}
    first = {folder: order.get(folder, [1 << 60])[0] for folder in found}
    return [(folder, first[folder], last[folder]) for folder in sorted(found, key=lambda f: (last[f], f))]


def read(dump, folder):
    """The DumpedCall of a folder."""
    path = pathlib.Path(dump) / folder
    metadata = _last_record(path / "metadata.jsonl")
    name = metadata.get("function_name")
    if not isinstance(name, str):
        raise DumpError(f"{folder}/metadata.jsonl: function_name is no text")
    kinds = [kind for kind in ("safetensors", "pt") if (path / f"inputs.{kind}").exists() or (path / f"outputs.{kind}").exists()]
    inputs, outputs = ({}, {}) if not kinds else (_tensors(path / f"{which}.{kinds[0]}") for which in ("inputs", "outputs"))
    names, defaults = _signature(metadata.get("function_signature"))
    values = {key: _value(value, inputs) for key, value in dict(metadata.get("input_metadata") or {}).items()}
    values.update({key: value for key, value in inputs.items() if "__" not in key})
    arguments, extra = dict(defaults), {}
    for key, value in values.items():
        if key.startswith("kwarg_"):
            arguments[key[6:]] = value
        elif re.fullmatch(r"arg_\d{1,3}", key):
            index = int(key[4:])
            if index < len(names):
                arguments[names[index]] = value
            else:
                extra[index] = value
    results = [outputs[key] for key in sorted(outputs) if re.fullmatch(r"result(_\d)?", key)]
    return DumpedCall(folder, name, (metadata.get("process_id"), metadata.get("self_id")), arguments, tuple(extra[i] for i in sorted(extra)), results)


def _last_record(path):
    if not path.is_file():
        raise DumpError(f"{path.name} is no file")
    size = path.stat().st_size
    if size > MOST_TEXT:
        raise DumpError(f"{path.name} has {size} bytes, at most {MOST_TEXT} are read")
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
    try:
        record = json.loads(lines[-1]) if lines else None
    except (ValueError, RecursionError) as error:
        raise DumpError(f"{path.name} is no JSON: {error}") from error
    if not isinstance(record, dict):
        raise DumpError(f"{path.name} holds no record")
    return record


def _signature(text):
    """Names of the positional parameters, and defaults of all, out of str(inspect.signature(f))."""
    try:
        arguments = ast.parse(f"def f{text}: pass").body[0].args
    except (SyntaxError, ValueError, RecursionError, MemoryError, AttributeError, IndexError):
        return [], {}
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    pairs = list(zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults))
    pairs += [(a.arg, default) for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults) if default is not None]
    defaults = {}
    for name, node in pairs:
        try:
            defaults[name] = ast.literal_eval(node)
        except (ValueError, RecursionError):
            continue
    return positional, defaults


def _value(value, tensors, depth=0):
    """A value as the metadata describes it, with its tensors. What has only a repr is that text."""
    if not isinstance(value, dict) or depth > MOST_DEPTH:
        return value
    kind = value.get("type")
    if kind == "torch.Tensor":
        return tensors.get(value.get("tensor_key"))
    if kind in ("list", "tuple") and isinstance(value.get("items"), list) and not value.get("truncated"):
        return [_value(item, tensors, depth + 1) for item in value["items"]]
    return value.get("value", value.get("repr"))


def _tensors(path):
    if not path.exists():
        return {}
    if not path.is_file():
        raise DumpError(f"{path.name} is no file")
    size = path.stat().st_size
    if size > MOST_TENSORS:
        raise DumpError(f"{path.name} has {size} bytes, at most {MOST_TENSORS} are read")
    return _safetensors(path, size) if path.suffix == ".safetensors" else _torch(path)


def _torch(path):
    """Tensors of torch.save, read by torch without unpickling anything but tensors."""
    try:
        import torch
    except ImportError:
        raise DumpError(f"{path.name} needs torch, which is not installed (FLASHINFER_DUMP_SAFETENSORS=1 writes files that do not)") from None
    if tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2]) < (2, 6):
        raise DumpError(f"{path.name} is not read by torch {torch.__version__}: before 2.6 a file may execute code (CVE-2025-32434)")
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > MOST_TENSORS:
            raise DumpError(f"{path.name} holds {size} bytes, at most {MOST_TENSORS} are read")
        held = torch.load(path, map_location="cpu", weights_only=True)
    except DumpError:
        raise
    except Exception as error:  # whatever torch raises of bytes that are none of its files
        raise DumpError(f"{path.name} is not read: {type(error).__name__}: {str(error)[:200]}") from error
    if not isinstance(held, dict):
        raise DumpError(f"{path.name} holds no tensors by name")
    return {name: value for name, value in held.items() if isinstance(name, str) and isinstance(value, torch.Tensor)}


def _safetensors(path, size):
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(MOST_TEXT, size):
            raise DumpError(f"{path.name} has a header of {length} bytes, at most {min(MOST_TEXT, size)} are read")
        try:
            header = json.loads(file.read(length).decode())
        except (ValueError, RecursionError) as error:
            raise DumpError(f"{path.name} has no header: {error}") from error
        data = file.read()
    if not isinstance(header, dict):
        raise DumpError(f"{path.name} has no table as its header")
    return {name: _array(path, name, entry, data) for name, entry in header.items() if name != "__metadata__"}


def _array(path, name, entry, data):
    try:
        (dtype, kind), shape, (begin, end) = _SAFE[entry["dtype"]], entry["shape"], entry["data_offsets"]
        numbers = [*shape, begin, end]
        fits = all(isinstance(n, int) and 0 <= n <= sys.maxsize for n in numbers) and begin <= end <= len(data)
        fits = fits and math.prod(shape) * np.dtype(dtype).itemsize == end - begin and len(shape) <= 8
    except (KeyError, TypeError, ValueError):
        fits = False
    if not fits:
        raise DumpError(f"{path.name}: {name} is described by {str(entry)[:100]}, which does not fit its {len(data)} bytes")
    array = np.frombuffer(data[begin:end], dtype).reshape(shape)
    if kind is not None:
        array = array.view(Fp8)
        array.kind = kind
    return array
