# SPDX-License-Identifier: Apache-2.0
"""A GPU that a process without one pretends to have, for captures of functions of torch: tensors stay on the CPU.

A capture records the operations of torch and runs them. A replay runs them again, with the tensors that they had. Whatever is no
operation of torch runs at the capture alone."""
import contextlib
import types

import torch
from torch.overrides import TorchFunctionMode

from assay._callable import calling

NOT_PERMITTED = "CUDA error: operation not permitted when stream is capturing"


class _Recording(TorchFunctionMode):
    def __init__(self, calls):
        super().__init__()
        self.calls = calls

    def __torch_function__(self, function, kinds, given=(), named=None):
        if function in (torch.Tensor.item, torch.Tensor.tolist):  # the host reads numbers
            raise RuntimeError(NOT_PERMITTED + "\nCompile with something.")
        made = function(*given, **(named or {}))
        self.calls.append((function, given, named or {}, made))
        return made


class Graph:
    def __init__(self):
        self.calls = []

    def replay(self):
        for function, given, named, made in self.calls:
            again = function(*given, **named)
            if isinstance(made, torch.Tensor) and made.untyped_storage().data_ptr() != again.untyped_storage().data_ptr():
                made.copy_(again)


@contextlib.contextmanager
def _capture(graph):
    try:
        with _Recording(graph.calls):
            yield
    except RuntimeError as error:
        raise RuntimeError("CUDA error: operation failed due to a previous error during capture") from error


CUDA = types.SimpleNamespace(CUDAGraph=Graph, graph=_capture, memory_snapshot=list, current_device=lambda: 0)


class Tensors(calling.TorchTensors):
    """Tensors of the CPU that are said to be on a GPU."""

    def __init__(self, device):
        super().__init__("cpu")
        self.torch = types.SimpleNamespace(**{name: getattr(torch, name) for name in ("from_numpy", "bfloat16", "int16", "full", "full_like", "Tensor")}, cuda=CUDA)

    @property
    def device(self):
        return "cuda"

    @device.setter
    def device(self, _):
        pass

    def made(self, array):
        return self._of_host(array)

    def refill(self, tensors, arrays, busy):
        super().refill(tensors, arrays, False)

    def nan_everywhere(self):
        pass

    def nan_lse(self, q):
        return torch.full(q.shape[:-1], float("nan"))


def install():
    calling.TorchTensors = Tensors
