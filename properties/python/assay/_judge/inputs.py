# SPDX-License-Identifier: Apache-2.0
"""Arguments of judge and judge_merge as the tensors that the library takes: layouts that mean the same become one."""
import math
import sys
from collections.abc import Hashable

import numpy as np

from .tensors import Tensor


#: What uint8 may hold.
_BYTES = {"e4m3": 0, "e5m2": 0, None: 0}


def floats(name, value):
    if value is None:
        return None
    tensor = Tensor(name, value).as_floats()
    return tensor if len(tensor.shape) == 1 else tensor.reshape(-1)


def kv_scale(name, value, layout, ragged):
    """[1] or [kv_heads]; or of tokens, [pages, slots, kv_heads] and [pages, slots, kv_heads, blocks], laid as the cache is."""
    if value is None:
        return None
    tensor = Tensor(name, value).as_floats()
    if ragged and len(tensor.shape) in (2, 3):
        return tensor.view(tensor.value[:, None])
    if len(tensor.shape) not in (3, 4):
        return tensor.reshape(-1)
    return tensor.transpose(0, 2, 1, *range(3, len(tensor.shape))) if layout == "HND" else tensor


def number(name, value, kind=float):
    """A number of a caller, of Python, NumPy or torch, as float or int."""
    try:
        found = kind(value)
        if isinstance(value, str) or found != value and found == found:
            raise ValueError
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise TypeError(f"assay: {name} is {value!r}, expected {'a number' if kind is float else 'an integer'}") from None
    return found


def word(name, value, words):
    if not isinstance(value, Hashable) or value not in words:
        known = " or ".join(map(repr, words)) if len(words) == 2 else "one of " + ", ".join(map(repr, words))
        raise ValueError(f"assay: {name} is {value!r}, expected {known}")
    return words[value]


def one_of_two(name, value, other, other_value):
    """(name, value) of an argument that has two names, as the caller calls it."""
    if value is not None and other_value is not None:
        raise ValueError(f"assay: {name} and {other} are given, which are two names of one argument")
    return (name, value) if other_value is None else (other, other_value)


def rows(name, value, dtype=None):
    """[rows, heads, dim]; [batch, queries, heads, dim] is that too."""
    word(f"{name}_dtype", dtype, _BYTES)
    tensor = Tensor(name, value, dtype)
    if len(tensor.shape) == 4:
        tensor = tensor.reshape(tensor.shape[0] * tensor.shape[1], *tensor.shape[2:])
    if len(tensor.shape) != 3:
        raise ValueError(f"assay: {name} has shape {list(tensor.shape)}, expected [rows, heads, dim] or [batch, queries, heads, dim]")
    return tensor.unit_rows()


def lse_of(value, rows, heads, layout):
    """[rows, heads] out of what kernels return: TH [rows, heads], HT [heads, rows], BHQ [batch, heads, queries], BQH
    [batch, queries, heads]. A shape that two of them have is refused where they would be read differently."""
    if value is None:
        return None
    tensor = Tensor("lse", value).as_floats()
    word("lse_layout", layout, {None: 0, **_LSE_AXES})
    fits = [name for name in _LSE_AXES if layout in (None, name) and _fits(name, tensor.shape, rows, heads)]
    if not fits:
        shapes = f"[{rows}, {heads}], [{heads}, {rows}] or [batch, {heads}, queries]" if layout is None else f"the axes of {layout} for {rows} rows, {heads} heads"
        raise ValueError(f"assay: lse has shape {list(tensor.shape)}, expected {shapes}")
    if len(fits) > 1 and heads > 1:
        raise ValueError(f"assay: lse has shape {list(tensor.shape)}, which fits two layouts: say lse_layout={fits[0]!r} or {fits[1]!r}")
    return tensor.transpose(*_LSE_AXES[fits[0]]).reshape(rows, heads)


#: Layouts of an LSE, and the axes that put its heads last.
_LSE_AXES = {"TH": (0, 1), "HT": (1, 0), "BHQ": (0, 2, 1), "BQH": (0, 1, 2)}


def _fits(layout, shape, rows, heads):
    at = layout.index("H")
    return len(shape) == len(layout) and shape[at] == heads and math.prod(shape[:at] + shape[at + 1 :]) == rows


def unpacked(k, v):
    """k and v as [pages, slots, heads, dim] of K [pages, heads, dim / x, slots, x] and V [pages, heads, dim, slots]."""
    pages, heads, chunks, slots, x = k.shape
    if len(v.shape) != 4 or v.shape != (pages, heads, chunks * x, slots):
        raise ValueError(
            f"assay: v has shape {list(v.shape)}, beside packed K of {list(k.shape)} expected [{pages}, {heads}, {chunks * x}, {slots}]"
        )
    return k.transpose(0, 3, 1, 2, 4).reshape(pages, slots, heads, chunks * x), v.transpose(0, 3, 1, 2)


def caches(kv_cache, layout, dtype):
    """k and v as [pages, slots, heads, dim]."""
    if isinstance(dtype, str) and dtype in ("nvfp4", "mxfp4", "e2m1", "fp4"):
        raise ValueError(f"assay: kv_dtype is {dtype!r}: caches of 4 bits are not judged, no field of a declaration says how a kernel widens them")
    word("kv_dtype", dtype, _BYTES)
    if isinstance(kv_cache, (tuple, list)):
        if len(kv_cache) != 2:
            raise ValueError(f"assay: kv_cache has {len(kv_cache)} tensors, expected (k, v) or one pool")
        k, v = Tensor("k", kv_cache[0], dtype), Tensor("v", kv_cache[1], dtype)
    else:
        pool = Tensor("kv_cache", kv_cache)
        if len(pool.shape) != 5 or pool.shape[1] != 2:
            raise ValueError(f"assay: kv_cache has shape {list(pool.shape)}, expected (k, v) or a pool [pages, 2, ...]")
        k, v = Tensor("k", pool.value[:, 0], dtype), Tensor("v", pool.value[:, 1], dtype)
    word("kv_layout", layout, {"NHD": 0, "HND": 0})
    if len(k.shape) == 5:
        return [cache.unit_rows() for cache in unpacked(k, v)]
    out = []
    for cache in (k, v):
        if len(cache.shape) == 3:  # [tokens, heads, dim]: pages of one token
            cache = cache.view(cache.value[:, None])
        if len(cache.shape) != 4:
            raise ValueError(f"assay: {cache.name} has shape {list(cache.shape)}, expected [pages, slots, heads, dim]")
        if layout == "HND":
            cache = cache.transpose(0, 2, 1, 3)
        out.append(cache.unit_rows())
    return out


def require_groups(q, k, v, layout):
    """Heads of q share those of k; where they would in the other layout, that is said."""
    heads, kv_heads, slots = q.shape[1], k.shape[2], k.shape[1]
    if kv_heads > 0 and heads % kv_heads and slots > 0 and heads % slots == 0 and k.shape == v.shape:
        other = "HND" if layout == "NHD" else "NHD"
        raise ValueError(f"assay: q has {heads} heads, expected a multiple of k's {kv_heads}; kv_layout={other!r} would make it {slots}")


def stacked(name, values):
    """A tensor, or one out of a list of them."""
    if not isinstance(values, (list, tuple)):
        return Tensor(name, values)
    arrays = [Tensor(name, value).value for value in values]
    if len({tuple(array.shape) for array in arrays}) != 1:
        raise ValueError(f"assay: {name} has {len(values)} tensors, expected one or more, all of one shape")
    torch = sys.modules.get("torch")
    of_torch = torch is not None and all(isinstance(array, torch.Tensor) for array in arrays)
    return Tensor(name, (torch if of_torch else np).stack(arrays))


def integers(name, value, axes=(1,)):
    tensor = Tensor(name, value)
    if tensor.dtype_name not in ("int32", "int64"):
        raise TypeError(f"assay: {name} is {tensor.dtype_name}, expected int32 or int64")
    if len(tensor.shape) not in axes:
        raise ValueError(f"assay: {name} has {len(tensor.shape)} axes, expected {' or '.join(map(str, axes))}")
    return tensor


def optional_integers(name, value, axes=(1,)):
    return None if value is None else integers(name, value, axes)


def host(tensor):
    """Its values, for sums over a batch."""
    return np.asarray(tensor.value).astype(np.int64)


def query_scale(value, rows, heads):
    """[1], [heads] or [rows, heads]."""
    if value is None:
        return None
    tensor = Tensor("q_scale", value).as_floats()
    if len(tensor.shape) == 3:  # [batch, queries, heads]
        tensor = tensor.reshape(tensor.shape[0] * tensor.shape[1], tensor.shape[2])
    if tensor.shape == (rows, 1) and heads > 1:
        tensor = tensor.view(np.broadcast_to(tensor.numpy(), (rows, heads)))
    return tensor.reshape(1) if tensor.shape == () else tensor


def mask_bytes(mask, packed, queries, keys):
    """One byte for every query and key of a request, request after request. `packed` has them as bits, the lowest first, each
    request from a byte of its own."""
    if packed is not None:
        bits = Tensor("packed_mask", packed).numpy()
        sizes = queries * keys
        ends = np.cumsum(-(-sizes // 8))
        if bits.dtype != np.uint8 or bits.shape != ((ends[-1] if len(ends) else 0),):
            raise ValueError(f"assay: packed_mask is {bits.dtype} of shape {list(bits.shape)}, expected uint8 of [{ends[-1] if len(ends) else 0}]")
        parts = [np.unpackbits(bits[end - -(-size // 8) : end], count=size, bitorder="little") for end, size in zip(ends, sizes)]
        return Tensor("mask", np.concatenate(parts or [bits]), "uint8")
    array = Tensor("mask", mask).numpy()
    if array.dtype not in (np.bool_, np.uint8):
        raise TypeError(f"assay: mask is {array.dtype}, expected bool or uint8")
    if array.ndim > 1:
        array = _joined_mask(array, queries, keys)
    return Tensor("mask", np.ascontiguousarray(array).view(np.uint8), "uint8")


def _joined_mask(array, queries, keys):
    """[batch, queries, keys], or of one request [queries, keys], without what is padding."""
    array = array[None] if array.ndim == 2 else array
    most = (len(queries), int(queries.max(initial=0)), int(keys.max(initial=0)))
    if array.ndim != 3 or array.shape[0] != most[0] or array.shape[1] < most[1] or array.shape[2] < most[2]:
        raise ValueError(f"assay: mask has shape {list(array.shape)}, expected {list(most)} or one axis")
    parts = [array[r, :q, :k].reshape(-1) for r, (q, k) in enumerate(zip(queries, keys))]
    return np.concatenate(parts)
