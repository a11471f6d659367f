# SPDX-License-Identifier: Apache-2.0
"""exchange_states over the C ABI."""
import ctypes

import torch

from ._abi import EXCHANGE_HEADS as HEADS
from ._abi import ExchangeParams
from .errors import require
from .library import library, target_of
from .paged_shape import no_address, set_numbers
from .prepared import Pool, Prepared, word
from .tensors import check, dtype_number, facts, no_tensor, refuse_gradient, same_device, strides, unit_rows

_NAME = "exchange_states"
_pool = Pool()
_NAMES = ("o_in", "lse_in", "out", "lse", "status")
_WORDS = tuple(word(ExchangeParams, name) for name in ("o_in", "lse_in", "out", "lse", "status"))


def heads_of(num_heads, num_ranks, rank, heads):
    """(first, end) of the heads that a rank gets."""
    if heads == HEADS["all"]:
        return 0, num_heads
    return rank * num_heads // num_ranks, (rank + 1) * num_heads // num_ranks


def window_bytes(device, dtype, num_ranks, num_heads, head_dim, max_rows, heads):
    """Bytes of a window for calls of up to max_rows rows."""
    where, p = library(target_of(device.type)), ExchangeParams()
    _numbers(p, where, dtype, heads=heads, num_ranks=num_ranks, num_heads=num_heads, head_dim=head_dim, max_rows=max_rows)
    return where.size(_NAME + "_window_size", p, device)


def exchange(o_in, lse_in, window, windows, status, out, lse, heads, rank, max_rows, lse_base, enable_pdl, timeout_ns):
    tensors = (o_in, lse_in, out, lse, status)
    try:
        refuse_gradient(_NAME, o_in, lse_in)
        key = (heads, rank, max_rows, lse_base, enable_pdl, timeout_ns, window.numel(), *windows, *map(facts, tensors))
    except AttributeError:
        raise no_tensor(**dict(zip(_NAMES, tensors))) from None
    call = _pool.take(key) or _prepare(*tensors, window, windows, heads, rank, max_rows, lse_base, enable_pdl, timeout_ns)
    for at, name, tensor in zip(_WORDS, _NAMES, tensors):
        if tensor is not None:
            call.words[at] = tensor.data_ptr() or no_address(("lse_in", lse_in), **{"o_in": o_in, name: tensor})
    call.keep[rank] = window.data_ptr()
    call.run()
    _pool.give(key, call)


def _numbers(p, where, dtype, **numbers):
    p.target, p.dtype = where.target, dtype_number("o_in", dtype)
    set_numbers(p, **numbers)


def _rows(p, name, tensor, single):
    row, head = strides(tensor, single)[:2]
    setattr(p, f"{name}_stride_row", row)
    setattr(p, f"{name}_stride_head", head)


def _prepare(o_in, lse_in, out, lse, status, window, windows, heads, rank, max_rows, lse_base, enable_pdl, timeout_ns):
    check("o_in", o_in, o_in.dtype, (None, None, None))
    unit_rows("o_in", o_in)
    rows, num_heads, head_dim = o_in.shape
    check("lse_in", lse_in, torch.float32, (rows, num_heads))
    require(0 <= rank < len(windows), lambda: f"rank is {rank}, expected 0 .. {len(windows) - 1}")
    first, end = heads_of(num_heads, len(windows), rank, heads)
    same_device(("o_in", o_in), lse_in=lse_in, window=window, out=out, lse=lse)
    check("out", out, o_in.dtype, (rows, end - first, head_dim))
    unit_rows("out", out)
    check("status", status, torch.int32, (1,))
    p = ExchangeParams()
    if lse is not None:
        check("lse", lse, torch.float32, (rows, end - first))
        _rows(p, "lse", lse, 1)
    _rows(p, "o_in", o_in, head_dim)
    _rows(p, "lse_in", lse_in, 1)
    _rows(p, "out", out, head_dim)
    where = library(target_of(o_in.device.type))
    _numbers(
        p, where, o_in.dtype, lse_base=lse_base, heads=heads, num_ranks=len(windows), rank=rank, num_rows=rows,
        num_heads=num_heads, head_dim=head_dim, enable_pdl=enable_pdl, max_rows=max_rows,
    )  # fmt: skip
    addresses = (ctypes.c_void_p * len(windows))(*windows)
    p.windows, p.window_bytes, p.timeout_ns = ctypes.addressof(addresses), window.numel(), timeout_ns
    return Prepared(_NAME, where, p, o_in.device, keep=addresses)
