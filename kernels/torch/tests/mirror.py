# SPDX-License-Identifier: Apache-2.0
"""The memory of a case on a GPU: a copy of all of it, strides, gaps, guards and what overlaps included, and back after the call."""
import contextlib
import ctypes
import os
import types

import numpy as np
import torch
from torch.utils.dlpack import from_dlpack


class _DlTensor(ctypes.Structure):
    """DLTensor and DLManagedTensor of DLPack, one behind the other."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int), ("device_id", ctypes.c_int), ("ndim", ctypes.c_int),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    ]  # fmt: skip


_STORED = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def tensor_at(address, like, device, keep):
    """A tensor of the shape, strides and type of `like` at an address, which need not lie in any memory: that of page 0 of a cache
    whose page ids begin high does not, and may be below 0 where the copy lies low: addresses are taken modulo 2^64. What it refers to
    is appended to `keep`."""
    address %= 1 << 64
    numbers = np.array([*like.shape, *like.stride()], dtype=np.int64)
    at, dims, size = numbers.ctypes.data, like.dim(), like.element_size()
    kind, index = (2, device.index or 0) if device.type == "cuda" else (1, 0)
    made = _DlTensor(address, kind, index, dims, int(size == 1), 8 * size, 1, at, at + 8 * dims, 0, None, None)
    keep += [numbers, made]
    tensor = from_dlpack(_new_capsule(ctypes.addressof(made), b"dltensor", None))
    assert tensor.dtype == _STORED[size], f"stored as {tensor.dtype}, not {_STORED[size]}"
    assert tensor.data_ptr() == address, f"at {tensor.data_ptr():#x}, not {address:#x}"
    return tensor.view(like.dtype)


def _arrays(case):
    """Every array of a case, those of its levels too."""
    for value in vars(case).values():
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, list):
            for level in value:
                yield from _arrays(level)


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, types.SimpleNamespace):
        yield from _tensors(list(vars(value).values()))
    elif isinstance(value, list):
        for part in value:
            yield from _tensors(part)


def _end(tensor):
    """Behind its last byte."""
    steps = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr() + (steps + 1) * tensor.element_size() if tensor.numel() else tensor.data_ptr()


class Mirror:
    """Copies `case` to `device`. `tensors` is what case.torch() is, there."""

    def __init__(self, case, device):
        device = torch.device(device)
        shared = next(a for a in _arrays(case) if hasattr(case._writable[id(a)].base, "keep"))
        memory = np.frombuffer(case._writable[id(shared)].base.keep, np.uint8)
        first, behind = memory.ctypes.data, memory.ctypes.data + len(memory)
        on_host, self.keep = case.torch(), []
        ends = {id(t): _end(t) for t in _tensors(on_host) if first <= _end(t) <= behind}
        self.host = torch.from_numpy(memory[: max(ends.values(), default=first) - first])
        self.copy = torch.empty(len(self.host) or 1, dtype=torch.uint8, device=device)[: len(self.host)]
        self.copy.copy_(self.host)

        def there(value):
            if isinstance(value, types.SimpleNamespace):
                return types.SimpleNamespace(**{name: there(part) for name, part in vars(value).items()})
            if isinstance(value, list):
                return [there(part) for part in value]
            if not isinstance(value, torch.Tensor):
                return value
            if id(value) not in ends:  # made for the case: no memory of the harness
                return value.to(device)
            return tensor_at(self.copy.data_ptr() + value.data_ptr() - first, value, device, self.keep)

        self.tensors = there(on_host)

    def back(self):
        """What the call left, inputs and gaps included: the harness looks whether they changed."""
        self.host.copy_(self.copy)


@contextlib.contextmanager
def tensors(case):
    """The tensors of a case, on the device that ASSAY_TORCH_DEVICE names: the CPU's are the harness' own memory."""
    device = os.environ.get("ASSAY_TORCH_DEVICE", "cpu")
    if device == "cpu":
        yield case.torch()
        return
    mirror = Mirror(case, device)
    yield mirror.tensors
    mirror.back()
