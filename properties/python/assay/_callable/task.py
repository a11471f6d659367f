# SPDX-License-Identifier: Apache-2.0
"""One candidate as a JSON object says it: a line of a batch, or the body of a request. Nothing in it is believed."""
import argparse
import json
import math

from .. import arithmetic
from .shape import Shape
from .stages import ASSUMPTIONS

MOST_BYTES = 1 << 20  #: of an object's text
_MOST_TARGET, _MOST_ID, _MOST_SEED = 4096, 256, 1 << 63
_DEVICES = ("auto", "cpu", "cuda", "numpy")
_BASES = ("e", 2)


class FieldError(ValueError):
    """`field`: which one does not fit, "" for the object itself."""

    def __init__(self, field, text):
        super().__init__(f"assay: {field}: {text}" if field else f"assay: {text}")
        self.field = field


def parsed(text):
    """The object of bytes of UTF-8. FieldError where they are none, or name a field twice."""
    if len(text) > MOST_BYTES:
        raise FieldError("", f"the object has more than {MOST_BYTES} bytes")
    try:
        given = json.loads(text.decode(), object_pairs_hook=_without_doubles, parse_constant=_no_number)
    except FieldError:
        raise
    except (ValueError, RecursionError) as error:
        raise FieldError("", f"no JSON: {type(error).__name__}: {str(error)[:200]}") from None
    if not isinstance(given, dict):
        raise FieldError("", f"a JSON {type(given).__name__}, expected an object")
    return given


def _without_doubles(pairs):
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise FieldError("", f"{_said(next(n for n in names if names.count(n) > 1))} is there twice")
    return made


def _no_number(text):
    raise ValueError(f"{text} is no number of JSON")


def _said(value):
    said = ascii(value)
    return said if len(said) <= 80 else said[:80] + "..."


def _text(field, value, most):
    if not isinstance(value, str):
        raise FieldError(field, f"{_said(value)}, expected a text")
    if len(value) > most:
        raise FieldError(field, f"{len(value)} characters, expected at most {most}")
    return value


def _place(field, value):
    """Where a function is."""
    place, colon, name = _text(field, value, _MOST_TARGET).rpartition(":")
    if not (place and colon and name) or value.startswith("-"):
        raise FieldError(field, f"{_said(value)}, expected FILE.py:NAME or MODULE:NAME")
    if not value.isprintable():  # neither NUL nor half a character can be an argument of a process
        raise FieldError(field, f"{_said(value)} has characters that cannot be printed")
    return value


def _target(value):
    return _place("target", value)


def _adapter(value):
    return None if value is None else _place("adapter", value)


def _shape(value):
    try:
        return str(Shape.parse(_text("shape", value, 1000)))
    except ValueError as error:
        raise FieldError("shape", str(error).removeprefix("assay: ").removeprefix("shape: ")[:300]) from None


def _one_of(field, known):
    def checked(value):
        if not any(value == one and type(value) is type(one) for one in known):
            raise FieldError(field, f"{_said(value)}, expected one of {', '.join(map(str, known))}")
        return value

    return checked


def _assume(value):
    if not isinstance(value, list):
        raise FieldError("assume", f"{_said(value)}, expected a list")
    if len(value) > 2 * len(ASSUMPTIONS):
        raise FieldError("assume", f"{len(value)} words, expected at most {2 * len(ASSUMPTIONS)}")
    return [_one_of("assume", tuple(ASSUMPTIONS))(word) for word in value]


def _seed(value):
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST_SEED):
        raise FieldError("seed", f"{_said(value)}, expected a whole number from 0 to {_MOST_SEED - 1}")
    return value


def _flag(field):
    return _one_of(field, (True, False))


def _id(value):
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise FieldError("id", f"{_said(value)}, expected a text or a whole number")
    if isinstance(value, int) and abs(value) >= _MOST_SEED:
        raise FieldError("id", f"{_said(value)}, expected a whole number below {_MOST_SEED}")
    return value if isinstance(value, int) else _text("id", value, _MOST_ID)


_FIELDS = {
    "target": _target, "shape": _shape, "adapter": _adapter, "like": _one_of("like", tuple(arithmetic.names())), "assume": _assume, "seed": _seed,
    "deterministic": _flag("deterministic"), "capturable": _flag("capturable"), "device": _one_of("device", _DEVICES),
    "keep_going": _flag("keep_going"), "explain": _flag("explain"), "lse_base": _one_of("lse_base", _BASES),
}  # fmt: skip


def identity(given):
    """Its "id" where it has one that fits, else None. FieldError where it does not fit."""
    return _id(given["id"]) if "id" in given else None


def arguments(given, defaults=None):
    """What judge_callable is called with. `defaults`: of fields that are missing."""
    identity(given)
    unknown = [name for name in given if name not in _FIELDS and name != "id"]
    if unknown:
        raise FieldError(unknown[0][:40] if unknown[0].isprintable() else "?", f"no field, expected {', '.join([*_FIELDS, 'id'])}")
    made = {**(defaults or {}), **given}
    made.pop("id", None)
    if "target" not in made:
        raise FieldError("target", "missing")
    return {name: _FIELDS[name](value) for name, value in made.items()}


def whole(least, most):
    """A type of a command line: a whole number in that range."""

    def number(text):
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{value}, expected {least} to {most}")
        return value

    return number


def positive(text):
    """Of a command line: a finite number above 0."""
    value = float(text)
    if not (math.isfinite(value) and value > 0):
        raise ValueError(text)
    return value
