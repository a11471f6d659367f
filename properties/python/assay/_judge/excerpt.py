# SPDX-License-Identifier: Apache-2.0
"""One row of a call as a call of its own, small enough for a file: what the row reads, through a pool of its own."""
import dataclasses

import numpy as np

from .call import MERGE
from .inputs import host
from .tensors import Tensor

SLOTS = 16  #: of a page of the new pool
_HEADS = ("o_scale", "q_scale", "k_scale", "v_scale", "alibi_slopes", "sinks")


def excerpt(call, row):
    """A Call of NumPy arrays that is judged like that row: all heads, at the same position, with the same keys."""
    tensors = {name: _array(tensor) for name, tensor in call.given().items() if name in _HEADS and len(tensor.shape) < 3}
    scalars = {**call.scalars, "max_rows": 1}
    if call.kind == MERGE:
        tensors.update({name: call.tensors[name].at(slice(None), slice(row, row + 1)) for name in ("o_in", "lse_in")}, queries=1)
    else:
        length, queries, keys = cut(call, row)
        if call.tensors["mask"] is not None:
            # Positions matter for windows alone, which are joined with the mask.
            tensors["mask"], queries = _mask(call, row, keys), 1
            scalars.update(causal=0, window_left=-1, window_right=-1)
            length = len(tensors["mask"])
        tensors.update(_pool(call, call.request_of(row)[0], length, keys), queries=queries)
        tensors["seq_lens"] = np.array([length], np.int64)
    queries = tensors.pop("queries")
    for name in ("out", "q", "lse"):
        if call.tensors.get(name) is not None:
            tensors[name] = repeated(call.tensors[name].at(slice(row, row + 1)), queries)
    if "q_scale" in tensors and tensors["q_scale"].ndim == 2:
        tensors["q_scale"] = repeated(tensors["q_scale"][row : row + 1], queries)
    dtypes = {name: call.tensors[name].dtype for name in ("out", "q", "k", "v") if call.tensors.get(name) is not None}
    dtypes["mask"] = "uint8"
    wrapped = {name: Tensor(name, tensors[name], dtypes.get(name)) if name in tensors else None for name in call.tensors}
    return dataclasses.replace(call, tensors=wrapped, scalars=scalars)


def repeated(array, count):
    """The same row so many times, in the memory of one."""
    return np.broadcast_to(np.ascontiguousarray(array), (count, *array.shape[1:]))


def _array(tensor):
    return np.ascontiguousarray(tensor.numpy())


def cut(call, row):
    """Keys of the new request, query rows from this one on, and which keys the row may see: (length, queries, slice)."""
    request, query, queries = call.request_of(row)
    length = int(host(call.tensors["seq_lens"])[request])
    position = length - queries + query
    left, right = call.scalars["window_left"], call.scalars["window_right"]
    if call.scalars["causal"]:
        right = 0
        # Nothing behind the row counts: it becomes the last of its request, or the first of those before any key.
        length, queries, query = max(position + 1, 0), max(-position, 1), 0
    end = length if right < 0 else min(max(position + right + 1, 0), length)
    begin = 0 if left < 0 else min(max(position - left, 0), end)
    return length, queries - query, range(begin, end)


def _mask(call, row, keys):
    """What the row sees of all keys of its request."""
    request, query, queries = call.request_of(row)
    lengths = host(call.tensors["seq_lens"])
    if call.tensors["mask_indptr"] is not None:
        begin = int(host(call.tensors["mask_indptr"])[request])
    else:
        counts = [call.queries_of(r) for r in range(request)]
        begin = int(sum(count * n for count, n in zip(counts, lengths)))
    begin += query * int(lengths[request])
    seen = np.zeros(int(lengths[request]), np.uint8)
    part = slice(keys.start, keys.stop)
    seen[part] = call.tensors["mask"].numpy()[begin : begin + len(seen)][part]
    return seen


def _pool(call, request, length, keys):
    """k, v and page_table of the keys alone. Pages that the row does not see are page 0."""
    first, last = keys.start // SLOTS, -(-keys.stop // SLOTS) if len(keys) else keys.start // SLOTS
    table = np.zeros((1, -(-length // SLOTS)), np.int64)
    table[0, first:last] = np.arange(last - first)
    out = {"page_table": table}
    tokens = np.arange(keys.start, keys.stop)
    for name in ("k", "v", "k_scale", "v_scale"):
        if call.tensors[name] is None or len(call.tensors[name].shape) < 3:
            continue  # a scale of the call or of heads is no part of the pages
        cache = call.tensors[name]
        slots = cache.shape[1]
        seen = cache.at(_page_ids(call, name[0], request, tokens // slots), tokens % slots)
        pages = np.zeros((max(last - first, 1) * SLOTS, *cache.shape[2:]), seen.dtype)
        pages[tokens - first * SLOTS] = seen
        out[name] = pages.reshape(-1, SLOTS, *cache.shape[2:])
    return out


def _page_ids(call, name, request, columns):
    table = call.tensors["page_table"]
    if name == "v" and call.tensors["v_page_table"] is not None:
        table = call.tensors["v_page_table"]
    if table is None:
        return np.full(columns.shape, request)
    if call.tensors["page_indptr"] is not None:
        return host(table)[host(call.tensors["page_indptr"])[request] + columns]
    return host(table)[request][columns]
