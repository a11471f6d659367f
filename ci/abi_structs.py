#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what Python knows of the C ABI: structs, enumerations and numbers of kernels/abi/*.h, for ctypes.

Usage: abi_structs.py, after each change of a header. ci/tests/abi_structs_test.py says where that was forgotten.

A struct assay_paged_params is PagedParams, and assay_judge_report is Report. Pointers are addresses, but for those to
structs. An enumeration assay_lse_base is LSE_BASE = {"e": 0, ...}, without what its names have in common; those of an
enumeration that has no name, and numbers by #define, stand for themselves without ASSAY_."""
import itertools
import os
import pathlib
import re
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ROOT / "kernels/abi"
#: File: headers, each behind those that it includes, which structs of them, and which enumerations and numbers.
FILES = {
    "kernels/torch/assay_torch/_abi.py": (("assay.h", "plugin.h"), r"assay_(?:paged|cascade|merge|exchange)_\w+", "ABI|MAX|STATUS|TARGET|DTYPE|LSE_BASE|EXCHANGE|HAZARD"),
    "properties/python/assay/_abi.py": (("assay.h", "plugin.h", "assay_judge.h"), r"assay_(?:array|arithmetic|judge_\w+)", ""),
}
HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""The C ABI for ctypes. ci/abi_structs.py writes this file from {headers} in kernels/abi."""
from ctypes import {names}


def _struct(name, *groups):
    """A struct of groups (type, "names ...")."""
    return type(name, (Structure,), {{"_fields_": [(field, of) for of, names in groups for field in names.split()]}})


'''


def python_name(name):
    return "".join(word.capitalize() for word in re.sub("^assay_(judge_)?", "", name).split("_"))


def fields(body, structs, enumerations):
    """(name, type in Python) of each field of a struct, in order."""
    for declaration in body.split(";")[:-1]:
        word, names = re.fullmatch(r"(?:const )?(\w+) (.*)", " ".join(declaration.split())).groups()
        of = python_name(word) if word in structs else "c_" + enumerations.get(word, word).removesuffix("_t")
        for name, count in re.findall(r"(\w+)(?:\[(\d+)\])?(?:,|$)", names):
            if "*" in names:
                yield name, f"POINTER({of})" if word in structs else "c_void_p"
            else:
                yield name, f"{of} * {count}" if count else of


def struct(name, body, structs, enumerations):
    """A struct in Python, neighbours of one type as one group, lines of whole groups."""
    groups = itertools.groupby(fields(body, structs, enumerations), key=lambda field: field[1])
    text = ", ".join(f'({of}, "{" ".join(name for name, _ in some)}")'.replace(" ", "\0") for of, some in groups)
    lines = textwrap.wrap(text, 140, break_long_words=False, break_on_hyphens=False, initial_indent="    ", subsequent_indent="    ")
    return "\n".join([f'{python_name(name)} = _struct("{python_name(name)}",', *lines]).replace("\0", " ") + ")"


def enumeration(name, body):
    numbers = {word: int(number) for word, number in re.findall(r"(\w+) = (-?\d+)", body)}
    if not name:
        return "\n".join(f"{word.removeprefix('ASSAY_')} = {number}" for word, number in numbers.items())
    common = os.path.commonprefix(list(numbers)).rpartition("_")[0] + "_"
    values = ", ".join(f'"{word.removeprefix(common).lower()}": {number}' for word, number in numbers.items())
    return f"{name.removeprefix('assay_').removeprefix('judge_').upper()} = {{{values}}}"


def text_of(headers):
    return re.sub(r"/\*.*?\*/", " ", "\n".join((HEADERS / header).read_text() for header in headers), flags=re.S)


def bodies(text, wanted):
    """(name, fields) of each struct, in order."""
    return re.findall(rf"typedef struct ({wanted}) \{{(.*?)\}} \1;", text, re.S)


def python_of(headers, wanted, numbers):
    """The text of a file."""
    text = text_of(headers)
    enumerations = {name: of for of, name in re.findall(r"typedef (\w+) (\w+);", text)}
    out = [f"{name} = {number}" for name, number in re.findall(r"#define ASSAY_(\w+) (\d+)", text)]
    out += [enumeration(*found) for found in re.findall(r"(?:typedef u?int32_t (\w+);\s*)?enum \{(.*?)\};", text, re.S)]
    out = [line for line in out if re.match(numbers, line)]
    structs = bodies(text, wanted)
    out += [struct(name, body, dict(structs), enumerations) for name, body in structs]
    body = "\n".join(out) + "\n"
    names = sorted({"Structure", *re.findall(r"\b(?:POINTER|c_\w+)\b", body)})
    return HEAD.format(headers=" and ".join(headers), names=", ".join(names)) + body


if __name__ == "__main__":
    for file, what in FILES.items():
        (ROOT / file).write_text(python_of(*what))
