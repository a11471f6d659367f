# SPDX-License-Identifier: Apache-2.0
"""Calls a function of tensors: tensors of the kind that it takes, arguments by its names, results as arrays."""
import sys

import numpy as np

from .arguments import Arguments

#: Blocks that are filled with NaN and given back before a call, so that memory nobody wrote is not 0 by chance.
_NAN_BLOCKS = tuple(1 << at for at in range(8, 23))
_CYCLES = 1 << 31  #: that a GPU waits before inputs are written: 1.1 s, in which a function may make what it keeps


class NumPyTensors:
    device = "cpu"

    def made(self, array):
        return np.array(array)

    def refill(self, tensors, arrays, busy):
        for name, array in arrays.items():
            tensors[name][...] = array

    def host(self, tensor):
        return np.ascontiguousarray(tensor)

    def is_plain(self, value):
        return type(value) is np.ndarray

    def nan_everywhere(self):
        blocks = [np.full(size // 4, np.nan, np.float32) for size in _NAN_BLOCKS for _ in range(2)]
        del blocks

    def like(self, q):
        return np.full_like(q, 0x7FC1 if q.dtype == np.uint16 else np.nan)

    def nan_lse(self, q):
        return np.full(q.shape[:-1], np.nan, np.float32)


class TorchTensors:
    """On a GPU where there is one; what is written is read in the order of the current stream, without waiting for others."""

    def __init__(self, device):
        import torch

        if device == "cuda" and not torch.cuda.is_available():
            raise ValueError("assay: device is 'cuda', and torch finds no GPU")
        self.torch = torch
        self.device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device

    def _of_host(self, array):
        tensor = self.torch.from_numpy(np.array(array.view(np.int16) if array.dtype == np.uint16 else array))
        return tensor.view(self.torch.bfloat16) if array.dtype == np.uint16 else tensor

    def made(self, array):
        return self._of_host(array).to(self.device)

    def refill(self, tensors, arrays, busy):
        """With `busy` the copies wait on the stream while the caller goes on."""
        there = {name: self.made(array) for name, array in arrays.items()}
        if busy and self.device != "cpu":
            self.torch.cuda._sleep(_CYCLES)
        for name, tensor in there.items():
            tensors[name].copy_(tensor)

    def host(self, tensor):
        there = tensor.detach().contiguous().cpu()
        return (there.view(self.torch.int16) if there.dtype == self.torch.bfloat16 else there).numpy()

    def is_plain(self, value):
        return type(value) is self.torch.Tensor

    def nan_everywhere(self):
        blocks = [self.torch.full((size // 4,), float("nan"), device=self.device) for size in _NAN_BLOCKS for _ in range(2)]
        del blocks

    def nan_in_freed(self):
        """NaN in all memory of a GPU that this process holds and no tensor has. Pools of graphs stay as they are."""
        here = [part for part in self.torch.cuda.memory_snapshot() if part["device"] == self.torch.cuda.current_device() and not any(part.get("segment_pool_id", ()))]
        free = sorted((block["size"] for part in here for block in part["blocks"] if block["state"] == "inactive"), reverse=True)
        blocks = [self.torch.full((size // 4,), float("nan"), device=self.device) for size in free]
        del blocks

    def like(self, q):
        return self.torch.full_like(q, float("nan"))

    def nan_lse(self, q):
        return self.torch.full(q.shape[:-1], float("nan"), device=self.device)


def tensors_for(device):
    """torch's where "cuda" is asked for or the process has torch or Triton, unless `device` is "numpy"."""
    if device != "cuda" and (device == "numpy" or not {"torch", "triton"} & sys.modules.keys()):
        return NumPyTensors()
    try:
        return TorchTensors(device)
    except ImportError as error:
        raise ValueError(f"assay: device is {device!r}, which takes tensors of torch: {error}") from None


class Caller:
    """A function, and the tensors that it takes."""

    def __init__(self, function, device):
        self.function, self.arguments = function, Arguments(function)
        self.tensors = tensors_for(device)

    def call(self, shape, sm_scale, tensors):
        """(out, lse or None), as the function made them. `shape` is a dictionary of its numbers."""
        return self.returned(self.given(shape, sm_scale, tensors))

    def returned(self, given):
        """(out, lse or None) of one call with these values of parameters."""
        return self._results(self.arguments.call(self.function, given), given)

    def given(self, shape, sm_scale, tensors):
        """A value for every parameter that a function may have."""
        q = tensors["q"]
        given = {name: tensors.get(name) for name in ("q", "k_cache", "v_cache", "page_table", "seq_lens")}
        given["kv_cache"] = (given["k_cache"], given["v_cache"])
        given.update({name: shape[name] for name in ("page_size", "num_qo_heads", "num_kv_heads", "head_dim")})
        given.update(sm_scale=sm_scale, max_seq_len=shape["keys"], out=None, lse=None)
        if "out" in self.arguments.by_name.values():
            given["out"] = self.tensors.like(q)
        if "lse" in self.arguments.by_name.values():
            given["lse"] = self.tensors.nan_lse(q)
        return given

    def _wrote(self, returned, out):
        """Raises where a function with a parameter `out` returns another tensor and leaves something else there."""
        first = returned[0] if isinstance(returned, (tuple, list)) and len(returned) > 0 else returned
        if first is not out and self.tensors.is_plain(first) and self.tensors.host(first).tobytes() != self.tensors.host(out).tobytes():
            raise TypeError("the function returned another output than it wrote into `out`")

    def _results(self, returned, given):
        """(out, lse or None) of what the function returned or wrote."""
        if returned is None and given["out"] is not None:
            returned = (given["out"], given["lse"]) if given["lse"] is not None else given["out"]
        elif given["out"] is not None:
            self._wrote(returned, given["out"])
        parts = tuple(returned) if isinstance(returned, (tuple, list)) else (returned,)
        if not 1 <= len(parts) <= 2 or not all(self.tensors.is_plain(part) for part in parts if part is not None) or parts[0] is None:
            raise TypeError(f"the function returned {_described(returned)}, expected out or (out, lse), plain tensors")
        return parts[0], parts[1] if len(parts) == 2 else None


def _described(value):
    if isinstance(value, (tuple, list)):
        return f"({', '.join(type(part).__name__ for part in value)})"
    return f"a {type(value).__name__}"
