# SPDX-License-Identifier: Apache-2.0
"""A GPU that a process without one pretends to have, for captures of functions of torch: tensors stay on the CPU.

A capture records the operations of torch and runs them. A replay runs them again, with the tensors that they had. Whatever is no
operation of torch runs at the capture alone."""
import contextlib

import torch
from torch.overrides import TorchFunctionMode
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


_TO = torch.Tensor.to


def _on_the_cpu(function):
    """A function of torch that takes "cuda" for the CPU."""

    def called(*given, **named):
        given, named = [one for one in given if not isinstance(one, str)] if function is _TO else given, {**named}
        if named.get("device") == "cuda":
            del named["device"]
        return function(*given, **named)

    return called


def install(put=setattr):
    """`put`: as setattr, which puts an attribute where it stays, or as monkeypatch.setattr."""
    if torch.cuda.CUDAGraph is Graph:
        return
    cuda = dict(is_available=lambda: True, CUDAGraph=Graph, graph=_capture, memory_snapshot=list, current_device=lambda: 0, _sleep=lambda cycles: None)
    for name, value in cuda.items():
        put(torch.cuda, name, value)
    for holder, name in ((torch.Tensor, "to"), (torch, "full")):
        put(holder, name, _on_the_cpu(getattr(holder, name)))
