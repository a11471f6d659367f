# SPDX-License-Identifier: Apache-2.0
"""What the candidate's process does: keeps tensors, calls the function, puts its results where the judge reads them."""
import faulthandler
import os
import sys

import numpy as np

from .. import loading
from ..worker import CHANNEL_FD, MEMORY_FD, Channel, Memory, raised_text
from ..worker_errors import Unsupported
from .arguments import Arguments

#: Blocks that are filled with NaN and given back before a call, so that memory nobody wrote is not 0 by chance.
_NAN_BLOCKS = tuple(1 << at for at in range(8, 23))
_CYCLES = 1 << 28  #: that a GPU waits before inputs are written: 0.15 s


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

    def zeros_lse(self, q):
        return np.full(q.shape[:-1], np.nan, np.float32)


class TorchTensors:
    """On a GPU where there is one; what is written is read in the order of the current stream, without waiting for others."""

    def __init__(self, device):
        import torch

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

    def like(self, q):
        return self.torch.full_like(q, float("nan"))

    def zeros_lse(self, q):
        return self.torch.full(q.shape[:-1], float("nan"), device=self.device)


class Served:
    def __init__(self, target, device):
        self.function = loading.load(target)
        self.arguments = Arguments(self.function)
        self.tensors = TorchTensors(device) if device != "numpy" and "torch" in sys.modules else NumPyTensors()
        self.stores = {}  # tensors that stay where they are, by name
        self.kept = None  # results of an earlier call, as they were returned

    def inputs(self, request, arrays):
        """Tensors of a call: new ones, or those of an earlier call with new bytes."""
        store = request["store"]
        if store is not None and store in self.stores:
            self.tensors.refill(self.stores[store], arrays, request["busy"])
            return self.stores[store]
        made = {name: self.tensors.made(array) for name, array in arrays.items()}
        if store is not None:
            self.stores[store] = made
        return made

    def given(self, request, tensors):
        shape, q = request["shape"], tensors["q"]
        given = {name: tensors.get(name) for name in ("q", "k_cache", "v_cache", "page_table", "seq_lens")}
        given["kv_cache"] = (given["k_cache"], given["v_cache"])
        given.update({name: shape[name] for name in ("page_size", "num_qo_heads", "num_kv_heads", "head_dim")})
        given.update(sm_scale=request["sm_scale"], max_seq_len=shape["keys"], out=None, lse=None)
        if "out" in self.arguments.by_name.values():
            given["out"] = self.tensors.like(q)
        if "lse" in self.arguments.by_name.values():
            given["lse"] = self.tensors.zeros_lse(q)
        return given

    def results(self, returned, given):
        """(out, lse or None) of what the function returned or wrote."""
        if returned is None and given["out"] is not None:
            returned = (given["out"], given["lse"]) if given["lse"] is not None else given["out"]
        parts = tuple(returned) if isinstance(returned, (tuple, list)) else (returned,)
        if not 1 <= len(parts) <= 2 or not all(self.tensors.is_plain(part) for part in parts if part is not None) or parts[0] is None:
            raise TypeError(f"the function returned {_described(returned)}, expected out or (out, lse), plain tensors")
        return parts[0], parts[1] if len(parts) == 2 else None

    def call(self, request, arrays):
        tensors = self.inputs(request, arrays)
        given = self.given(request, tensors)
        self.tensors.nan_everywhere()
        out, lse = self.results(self.arguments.call(self.function, given), given)
        results = {"out": self.tensors.host(out)}
        if lse is not None:
            results["lse"] = self.tensors.host(lse)
        if request["keep"]:
            self.kept = out
        elif self.kept is not None:
            results["earlier"] = self.tensors.host(self.kept)
        if request["inputs_back"]:
            results.update({f"input {name}": self.tensors.host(tensor) for name, tensor in tensors.items()})
        return results


def _said(error):
    return str(error) if str(error).startswith("assay: ") else raised_text(error, os.path.dirname(os.path.dirname(__file__)))


def _described(value):
    if isinstance(value, (tuple, list)):
        return f"({', '.join(type(part).__name__ for part in value)})"
    return f"a {type(value).__name__}"


def _arrays(request, memory):
    return {name: np.frombuffer(memory, np.dtype(t["dtype"]), count=int(np.prod(t["shape"])), offset=t["offset"]).reshape(t["shape"])
            for name, t in request["tensors"].items()}  # fmt: skip


def _put(results, memory, begin, end):
    """Copies results behind the inputs; says where each lies."""
    said = {}
    for name, array in results.items():
        if begin + array.nbytes > end:
            raise ValueError(f"{name} has {array.nbytes} bytes, more than there is room for")
        memory[begin : begin + array.nbytes] = array.tobytes()
        said[name] = {"dtype": array.dtype.str, "shape": list(array.shape), "offset": begin}
        begin += array.nbytes + -array.nbytes % 64
    return said


def serve(target, device, away):
    """Answers calls until the judge is done. Exit code of the process."""
    faulthandler.enable(all_threads=False)
    channel, memory = Channel(CHANNEL_FD), Memory(MEMORY_FD)
    try:
        served = Served(target, device)
    except (ValueError, ImportError, FileNotFoundError) as error:
        channel.send({"unknown" if str(error).startswith("assay: ") else "failed": _said(error)})
        return 1
    except BaseException as error:  # SystemExit ends the process as any error would
        channel.send({"failed": _said(error)})
        return 1
    np.seterr(all="ignore")
    channel.send({"ready": True, "tensors": type(served.tensors).__name__, "device": served.tensors.device, "isolation": away})
    while (request := channel.receive()) is not None:
        room, _ = memory.room(request["bytes"])
        reply = {"reply": request["call"]}
        try:
            reply["results"] = _put(served.call(request, _arrays(request, room)), room, request["results_at"], request["bytes"])
        except Unsupported as refusal:
            reply["refused"] = str(refusal)[:1000]
        except BaseException as error:
            reply["raised"] = _said(error)
        sys.stdout.flush()
        channel.send(reply)
    return 0
