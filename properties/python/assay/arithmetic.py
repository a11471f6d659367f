# SPDX-License-Identifier: Apache-2.0
"""Declarations by name: what a published kernel computes, with the source of every field (arithmetics/*.json)."""
import dataclasses
import json

from .declaration import Declaration, entry_of, names

__all__ = ["WIDEST", "describe", "fields_of", "like", "names", "resolve"]
#: Fits any flash kernel with 16-bit weights, and is wide: a narrower name finds more.
WIDEST = "flash"
like = Declaration.like


def describe(name):
    """Kernel, version, note, and of every field its value and source."""
    return json.loads(json.dumps(entry_of(name)))


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
