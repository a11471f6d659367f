# SPDX-License-Identifier: Apache-2.0
"""Declarations by name: what a published kernel computes, with the source of every field (arithmetics/*.json)."""
import dataclasses
import functools
import json
import pathlib

from .declaration import Declaration

FOLDER = pathlib.Path(__file__).with_name("arithmetics")
#: Fits any flash kernel with 16-bit weights, and is wide: a narrower name finds more.
WIDEST = "flash"
#: Names that say which kernel is meant, and why there is no arithmetic for it.
REFUSED = {
    "cudnn": "its source is not public and its documentation does not say how it rounds: claim 'flash', which fits what is known of "
    "flash kernels, or a Declaration",
}


def names():
    """What `like` may be."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


@functools.cache
def _load(name):
    if name in REFUSED:
        raise ValueError(f"assay: like is {name!r}: {REFUSED[name]}")
    if name not in names():
        raise ValueError(f"assay: like is {name!r}, expected one of {', '.join(names())}")
    return json.loads((FOLDER / f"{name}.json").read_text())


def describe(name):
    """Kernel, version, note, and of every field its value and source."""
    return json.loads(json.dumps(_load(name)))


def like(name):
    """The Declaration of a name."""
    return Declaration(**{field: entry["value"] for field, entry in _load(name)["fields"].items()})


def resolve(given):
    """A Declaration as it is, or by its name."""
    if isinstance(given, Declaration):
        return given
    if isinstance(given, str):
        return like(given)
    raise TypeError(f"assay: like is a {type(given).__name__}, expected a name or a Declaration")


def fields_of(declaration):
    """As the C struct has them."""
    values = declaration.to_json()
    return {field.name: values[field.name] for field in dataclasses.fields(declaration)}
