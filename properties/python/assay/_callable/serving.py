# SPDX-License-Identifier: Apache-2.0
"""What the candidate's process does: keeps tensors, calls the function, puts its results where the judge reads them."""
import faulthandler
import os
import sys

import numpy as np

from .. import loading
from ..worker import CHANNEL_FD, MEMORY_FD, Channel, Memory, raised_text
from ..worker_errors import Unsupported
from .calling import Caller
from .graphs import Graph, NotCaptured


class Served:
    def __init__(self, target, adapter, device):
        function = loading.load(target)
        if adapter is not None and not callable(function := loading.load(adapter)(function)):
            raise ValueError(f"assay: {adapter} gave a {type(function).__name__}, expected a function")
        self.caller = Caller(function, device)
        self.tensors = self.caller.tensors
        self.stores = {}  # tensors that stay where they are, by name
        self.kept = None  # results of an earlier call, as they were returned
        self.graph = None  # the call that was captured last

    def inputs(self, request, arrays):
        """Tensors of a call: new ones, or those of an earlier call with new bytes."""
        store = request["store"]
        if store is not None and store in self.stores:
            self.tensors.refill(self.stores[store], arrays, request["busy"])
            return self.stores[store]
        made = {name: self.tensors.made(np.zeros_like(array) if request["busy"] else array) for name, array in arrays.items()}
        if store is not None:
            self.stores[store] = made
        if request["busy"]:
            self.tensors.refill(made, arrays, True)
        return made

    def _returned(self, request, tensors):
        if request["graph"] is None:
            return self.caller.call(request["shape"], request["sm_scale"], tensors)
        if request["graph"] == "capture":
            self.graph = None  # gives back the memory of the one before
            self.graph = Graph(self.caller, request["shape"], request["sm_scale"], tensors)
        return self.graph.replay()

    def call(self, request, arrays):
        tensors = self.inputs(request, arrays)
        self.tensors.nan_everywhere()
        out, lse = self._returned(request, tensors)
        results = {"out": self.tensors.host(out)}
        if lse is not None:
            results["lse"] = self.tensors.host(lse)
        if request["keep"]:
            self.kept = out
        elif self.kept is not None:
            results["earlier"] = self.tensors.host(self.kept)
        for name, tensor in self.stores.get(request["inputs_back"], {}).items():
            results[f"input {name}"] = self.tensors.host(tensor)
        return results


def _holders():
    """Modules of this package, and their classes."""
    package = __name__.partition(".")[0]
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == package]
    return modules + [kind for module in modules for kind in vars(module).values() if isinstance(kind, type) and kind.__module__.partition(".")[0] == package]


def _watched():
    """A function that raises where something of this package is replaced from now on, of which the judge believes what it says."""
    before = [(holder, name, value, getattr(value, "__code__", None)) for holder in _holders() for name, value in vars(holder).items() if callable(value)]

    def check():
        for holder, name, value, code in before:
            if vars(holder).get(name) is not value or getattr(value, "__code__", None) is not code:
                raise RuntimeError(f"the function replaces {name} of {holder.__name__}, a part of what calls it")

    return check


def _said(error):
    return str(error) if str(error).startswith("assay: ") else raised_text(error, os.path.dirname(os.path.dirname(__file__)))


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


def serve(target, adapter, device, away):
    """Answers calls until the judge is done. Exit code of the process."""
    faulthandler.enable(all_threads=False)
    channel, memory, check = Channel(CHANNEL_FD), Memory(MEMORY_FD), _watched()
    try:
        served = Served(target, adapter, device)
    except (ValueError, ImportError, FileNotFoundError) as error:
        channel.send({"unknown" if str(error).startswith("assay: ") else "failed": _said(error)})
        return 1
    except BaseException as error:  # SystemExit ends the process as any error would
        channel.send({"failed": _said(error)})
        return 1
    np.seterr(all="ignore")
    channel.send({"ready": True, "tensors": type(served.tensors).__name__, "device": served.tensors.device, "isolation": away, "parameters": sorted(set(served.caller.arguments.by_name.values()))})
    while (request := channel.receive()) is not None:
        room, _ = memory.room(request["bytes"])
        reply = {"reply": request["call"]}
        try:
            results = served.call(request, _arrays(request, room))
            check()
            reply["results"] = _put(results, room, request["results_at"], request["bytes"])
        except Unsupported as refusal:
            reply["refused"] = str(refusal)[:1000]
        except NotCaptured as error:
            reply["not captured"] = str(error)[:1000]
        except BaseException as error:
            reply["raised"] = _said(error)
        sys.stdout.flush()
        channel.send(reply)
    return 0
