# SPDX-License-Identifier: Apache-2.0
"""The memory of a case on a GPU: a copy of all of it, strides, gaps, guards and what overlaps included, and back after the call."""
import contextlib
import os
import types

import numpy as np
import torch

ALIGNMENT = 512  # of torch's allocations: addresses keep their alignment on the device


def _arrays(case):
    """Every array of a case, those of its levels too."""
    for value in vars(case).values():
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, list):
            for level in value:
                yield from _arrays(level)


def _end(tensor):
    """Behind its last byte."""
    steps = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr() + (steps + 1) * tensor.element_size() if tensor.numel() else tensor.data_ptr()


class Mirror:
    """Copies `case` to `device`. `tensors` is what case.torch() is, there. A cache whose page ids begin high starts below the memory
    of the case: the copy has room in front, of which no call may read."""

    def __init__(self, case, device):
        shared = next(a for a in _arrays(case) if hasattr(case._writable[id(a)].base, "keep"))
        memory = np.frombuffer(case._writable[id(shared)].base.keep, np.uint8)
        self.first, behind = memory.ctypes.data, memory.ctypes.data + len(memory)
        on_host = case.torch()
        mirrored = [t for t in self._all(on_host) if self.first <= _end(t) <= behind]
        self.bytes = max((_end(t) for t in mirrored), default=self.first) - self.first
        self.room = max([0, *(self.first - t.data_ptr() for t in mirrored)])
        self.room += -self.room % ALIGNMENT
        self.host = torch.from_numpy(memory[: self.bytes])
        self.copy = torch.empty(self.room + self.bytes, dtype=torch.uint8, device=device)
        self.copy[self.room :].copy_(self.host)
        ours = {id(t) for t in mirrored}

        def there(value):
            if isinstance(value, types.SimpleNamespace):
                return types.SimpleNamespace(**{name: there(part) for name, part in vars(value).items()})
            if isinstance(value, list):
                return [there(part) for part in value]
            if not isinstance(value, torch.Tensor):
                return value
            return self._at(value) if id(value) in ours else value.to(device)

        self.tensors = there(on_host)

    def _all(self, value):
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (types.SimpleNamespace, list)):
            for part in vars(value).values() if isinstance(value, types.SimpleNamespace) else value:
                yield from self._all(part)

    def _at(self, tensor):
        """The tensor in the copy, as many bytes behind its begin as on the host."""
        offset = self.room + tensor.data_ptr() - self.first
        storage, size = self.copy.untyped_storage(), tensor.element_size()
        assert offset % size == 0
        return torch.empty(0, dtype=tensor.dtype, device=self.copy.device).set_(storage, offset // size, tensor.shape, tensor.stride())

    def back(self):
        """What the call left, inputs and gaps included: the harness looks whether they changed."""
        self.host.copy_(self.copy[self.room :])


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
