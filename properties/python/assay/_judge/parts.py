# SPDX-License-Identifier: Apache-2.0
"""Parts of a call as calls of their own: a row, a head, an element, an LSE. The judge decides each by itself."""
import dataclasses
import math
import time

import numpy as np

from .call import ATTENTION
from .inputs import host
from .tensors import Tensor

_OF_ROWS = ("out", "q", "lse")
_OF_KEYS = ("k", "v", "k_scale", "v_scale")
_OF_HEADS = ("alibi_slopes", "sinks", "q_scale")
_OF_STATES = ("o_in", "lse_in")


def changed(call, scalars=(), **arrays):
    """The call with other numbers and other tensors; an array of None takes its tensor away."""
    tensors = dict(call.tensors)
    for name, array in arrays.items():
        given = tensors[name].given if tensors.get(name) is not None else "uint8" if name == "mask" else None
        tensors[name] = None if array is None else Tensor(name, array, given)
    return dataclasses.replace(call, tensors=tensors, scalars={**call.scalars, **dict(scalars)})


def filled(call, name, value):
    """The call with one number everywhere in a tensor."""
    return changed(call, **{name: np.full_like(call.tensors[name].numpy(), value)})


def heads_of(call):
    return call.tensors["out"].shape[1]


def dims_of(call):
    return call.tensors["out"].shape[2]


def group_of(call):
    """Query heads a kv head; of a merge 1."""
    return heads_of(call) // call.tensors["k"].shape[2] if call.kind == ATTENTION else 1


def keys_of(call, row):
    """Keys of the row's request; of a merge its states."""
    if call.kind != ATTENTION:
        return call.tensors["o_in"].shape[0]
    return int(host(call.tensors["seq_lens"])[call.request_of(row)[0]])


def cost_of(call, row=0):
    """About how many products the judge forms of a row, and as many as what else it does costs: of each head, and once
    what fails in interval arithmetic, which takes 20 us a key."""
    of_key = call.tensors["q"].shape[2] + dims_of(call) if call.kind == ATTENTION else dims_of(call)
    return heads_of(call) * (keys_of(call, row) * of_key + (1 << 13)) + (keys_of(call, row) << 11)


class Spent(Exception):
    """No work is left."""


class Work:
    """What may be judged: so many products, in so many seconds of this process' time."""

    clock = staticmethod(time.process_time)

    def __init__(self, left, seconds=math.inf):
        self.left, self.until = left, self.clock() + seconds

    def judge(self, part, as_it_is=False):
        """The report of a part of one row; Spent."""
        self.left -= cost_of(part)
        if self.left < 0 or self.clock() >= self.until:
            raise Spent
        return part.judge() if as_it_is else light(part).judge()


def light(part):
    """The same row behind one without keys, so that the row and head of which the judge computes a reference in interval
    arithmetic, the first, costs nothing. What the report counts as claimed has the other row's outputs, too."""
    if part.kind != ATTENTION or part.tensors["out"].shape[0] != 1 or part.tensors["sinks"] is not None:
        return part
    two = {name: _behind(part.tensors[name], 0) for name in _OF_ROWS if name != "lse"}
    if part.tensors["lse"] is not None:
        two["lse"] = _behind(part.tensors["lse"], np.inf if part.scalars["empty_lse"] == 1 else -np.inf)
    if part.tensors["q_scale"] is not None and len(part.tensors["q_scale"].shape) == 2:
        two["q_scale"] = _behind(part.tensors["q_scale"], 1)
    lengths, table = part.tensors["seq_lens"].numpy(), part.tensors["page_table"].numpy()
    return changed(part, {"max_rows": 0}, seq_lens=np.concatenate([lengths * 0, lengths]), page_table=np.concatenate([table * 0, table]), **two)


def _behind(tensor, value):
    array = tensor.numpy()
    return np.concatenate([np.full_like(array, value), array])


def one_head(call, head):
    """The part of one query head."""
    kv, cut = head // group_of(call), {}
    for name, tensor in call.given().items():
        array = tensor.numpy()
        if name in _OF_ROWS or name in _OF_HEADS and array.ndim == 2:
            cut[name] = array[:, head : head + 1]
        elif name in _OF_KEYS and array.ndim > 2:
            cut[name] = array[:, :, kv : kv + 1]
        elif name in _OF_KEYS and len(array) > 1:
            cut[name] = array[kv : kv + 1]
        elif name in _OF_HEADS and len(array) > 1:
            cut[name] = array[head : head + 1]
        elif name in _OF_STATES:
            cut[name] = array[:, :, head : head + 1]
    return changed(call, {"threads": 1}, **cut)


def output_alone(call):
    return changed(call, lse=None)


def has_dims(call):
    """Whether single elements of V can be taken: not where a scale belongs to a block of them."""
    scale = call.tensors.get("v_scale")
    return scale is None or len(scale.shape) < 4


def some_dims(call, dims):
    """The part of some elements of O: a slice of them."""
    values = "v" if call.kind == ATTENTION else "o_in"
    cut = {name: call.tensors[name].numpy()[..., dims] for name in ("out", values)}
    if dims.step not in (None, 1):
        cut = {name: np.ascontiguousarray(array) for name, array in cut.items()}
    return changed(call, lse=None, **cut)


def lse_alone(call):
    """The LSE of a call whose values and outputs are 0: it does not depend on them."""
    values = "v" if call.kind == ATTENTION else "o_in"
    width = 1 if has_dims(call) else dims_of(call)
    arrays = {name: call.tensors[name].numpy()[..., :width] for name in ("out", values)}
    return changed(call, **{name: np.zeros(array.shape, array.dtype) for name, array in arrays.items()})
