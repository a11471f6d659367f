# SPDX-License-Identifier: Apache-2.0
"""Calls that were checked once: the parameters of a shape stay filled in, and a call writes its addresses alone.

The host cost of an operator is mostly that of reading what its tensors look like. That is the key here: where it was seen
before, nothing is checked again in Python (the library looks at sizes, alignment and overlap in every call)."""
import ctypes

import torch

from .library import CUDA

_MOST_KEYS = 4096  #: An engine has a few hundred shapes; beyond this they are forgotten and checked again.


def word(struct, *path):
    """Where a field of 8 bytes lies in a struct, in words."""
    at = 0
    for name in path:
        field = getattr(struct, name)
        at, struct = at + field.offset, dict(struct._fields_)[name]
    assert at % 8 == 0
    return at // 8


class Prepared:
    """Parameters of a call. `words` are its memory in steps of 8 bytes, to be written by `word`; `home` is the list of a Pool that
    it goes back to, so that a key is hashed once a call."""

    __slots__ = ("params", "words", "keep", "workspace_bytes", "_name", "_library", "_function", "_reference", "_device", "_stream", "home")

    def __init__(self, name, library, params, device, workspace_bytes=0, keep=None):
        """`keep` is what the parameters point to beside tensors; `device` that of the tensors, for the stream."""
        params.struct_size = ctypes.sizeof(params)
        self.params, self.keep, self.workspace_bytes = params, keep, workspace_bytes
        self.words = memoryview(params).cast("B").cast("Q")
        self._name, self._library, self._function = name, library, library.function(name)
        self._reference = ctypes.byref(params)
        self._device = device.index if library.target == CUDA else None
        self._stream = word(type(params), "stream")
        self.home = None

    def run(self):
        """Calls the library, on CUDA on torch's current stream of the tensors' device."""
        device = self._device
        if device is None:
            status = self._function(self._reference)
        else:
            self.words[self._stream] = _current_stream(device)
            if device == torch._C._cuda_getDevice():
                status = self._function(self._reference)
            else:
                with torch.cuda.device(device):
                    status = self._function(self._reference)
        if status != 0:
            raise self._library.error(self._name, status)


class Pool:
    """Prepared calls by key. A call is taken out while it is used, so that threads never share one."""

    def __init__(self):
        self._idle = {}

    def take(self, key):
        """A call of that key that nobody uses, or None."""
        idle = self._idle.get(key)
        try:
            return idle.pop() if idle else None
        except IndexError:  # another thread took the last one
            return None

    def part(self, key):
        """A Pool of its own, of calls that have this key in common."""
        if len(self._idle) >= _MOST_KEYS:
            self._idle.clear()
        return self._idle.setdefault(key, Pool())

    def give(self, key, call):
        """Back after a call that succeeded."""
        if call.home is None:
            if len(self._idle) >= _MOST_KEYS:
                self._idle.clear()
            call.home = self._idle.setdefault(key, [])
        call.home.append(call)


def workspace(size, device):
    """Scratch from torch's allocator: in a capture it is of the graph's own pool, elsewhere freed in stream order."""
    return torch.empty(size, dtype=torch.uint8, device=device)


def _public_current_stream(device):
    return torch.cuda.current_stream(device).cuda_stream


#: The same handle without the object around it, as torch's own compiled code reads it.
_current_stream = getattr(torch._C, "_cuda_getCurrentRawStream", _public_current_stream)
