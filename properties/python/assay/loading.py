# SPDX-License-Identifier: Apache-2.0
"""Finds a function by MODULE:NAME or FILE.py:NAME."""
import importlib.util
import os
import sys

from . import worker_errors


def _module_of(place):
    if not place.endswith(".py"):
        return importlib.util.find_spec(place)
    if not os.path.isfile(place):
        raise FileNotFoundError(f"assay: {place}: no such file")
    sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
    stem = os.path.splitext(os.path.basename(place))[0]
    return importlib.util.spec_from_file_location(f"__assay_{stem}__", place)


def load(target):
    """The function. Its module runs up to a call of assay.check, which only the process that checks makes.

    Raises what the module raises, and ValueError, ImportError or FileNotFoundError that name the target.
    """
    place, colon, name = target.rpartition(":")
    if not (place and colon and name):
        raise ValueError(f"assay: {target!r} is not MODULE:FUNCTION or FILE.py:FUNCTION")
    module = sys.modules.get(place)
    if module is None:
        found = _module_of(place)
        if found is None:
            raise ImportError(f"assay: no module {place!r}")
        module = importlib.util.module_from_spec(found)
        sys.modules[place] = sys.modules[found.name] = module
        worker_errors.loading = True
        try:
            found.loader.exec_module(module)
        except worker_errors.LoadedSoFar:
            pass
        finally:
            worker_errors.loading = False
    at = module
    for part in name.split("."):
        if not hasattr(at, part):
            raise ValueError(f"assay: {place} has no {name}, or not before its first assay.check()")
        at = getattr(at, part)
    if not callable(at):
        raise ValueError(f"assay: {target} is no function")
    return at
