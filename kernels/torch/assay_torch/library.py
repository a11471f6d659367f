# SPDX-License-Identifier: Apache-2.0
"""The shared libraries: libassay_simt for CPU tensors, libassay_cuda for CUDA tensors, each loaded when it is first needed.

Looked for at $ASSAY_LIBRARY_SIMT and $ASSAY_LIBRARY_CUDA (a file), then in the `lib` folder of the package `assay` of the
same wheel, then by the loader's own search."""
import contextlib
import ctypes
import functools
import importlib.util
import os
import pathlib

import torch

from ._abi import ABI_MAJOR, ABI_MINOR, TARGET
from .errors import BY_STATUS, AssayError, Unsupported

SIMT, CUDA = TARGET["simt"], TARGET["cuda"]
NAMES = {number: name for name, number in TARGET.items()}
TARGETS = {"cpu": SIMT, "cuda": CUDA}  #: by the type of a torch device


class Library:
    """One library. `function(name)` is an entry point that takes a struct by reference and returns a status."""

    def __init__(self, target, path):
        # A launch takes microseconds, and other threads that take the interpreter lock meanwhile would delay the return
        # by up to their switch interval; the executor computes for long and lets them run.
        self._dll = (ctypes.PyDLL if target == CUDA else ctypes.CDLL)(path)
        self._dll.assay_last_error.restype = ctypes.c_char_p
        self._dll.assay_status_name.restype = ctypes.c_char_p
        self.target, self.path = target, path
        self._require_version()

    def _require_version(self):
        """A library takes the structs of earlier headers, and not of later ones."""
        version = getattr(self._dll, "assay_abi_version", lambda: 0)()
        major, minor = version >> 16, version & 0xFFFF
        if major != ABI_MAJOR or minor < ABI_MINOR:
            raise Unsupported(f"{self.path} is of ABI version {major}.{minor}, expected {ABI_MAJOR}.{ABI_MINOR} or a later minor version")

    def function(self, name):
        return getattr(self._dll, "assay_" + name)

    def error(self, name, status):
        """The exception of a status other than ASSAY_OK of this thread's last call."""
        status_name = self._dll.assay_status_name(status).decode()
        message = self._dll.assay_last_error().decode()
        return BY_STATUS.get(status, AssayError)(f"{name}: {status_name}: {message}")

    def ask(self, name, params, device, *rest):
        """Calls an entry point that answers without a launch, for calls on a torch device. Raises what `error` makes."""
        params.struct_size = ctypes.sizeof(params)
        # The library looks at the current device: how many processors it has decides sizes.
        with torch.cuda.device(device) if self.target == CUDA else contextlib.nullcontext():
            status = self.function(name)(ctypes.byref(params), *rest)
        if status != 0:
            raise self.error(name, status)

    def size(self, name, params, device):
        """Bytes that a *_size entry point answers."""
        size = ctypes.c_uint64()
        self.ask(name, params, device, ctypes.byref(size))
        return size.value


def _candidates(name):
    given = os.environ.get(f"ASSAY_LIBRARY_{name.upper()}")
    if given:
        return [given]
    file = f"libassay_{name}.so"
    package = importlib.util.find_spec("assay")
    folders = [pathlib.Path(place) / "lib" for place in (package.submodule_search_locations or ())] if package else []
    return [str(folder / file) for folder in folders if (folder / file).is_file()] + [file]


@functools.cache
def library(target):
    """The Library of a target. Unsupported where it is not found, with the places looked at."""
    name = NAMES[target]
    tried = []
    for path in _candidates(name):
        try:
            return Library(target, path)
        except OSError as error:
            tried.append(str(error))
    raise Unsupported(
        f"no library for {'CUDA' if target == CUDA else 'CPU'} tensors: set ASSAY_LIBRARY_{name.upper()} to the path of "
        f"libassay_{name}.so, or install attention-assay with it ({'; '.join(tried)})"
    )


def target_of(device_type):
    """assay_target of tensors on such a device."""
    if device_type not in TARGETS:
        raise Unsupported(f"tensors are on {device_type}, supported are {' and '.join(TARGETS)}")
    return TARGETS[device_type]
