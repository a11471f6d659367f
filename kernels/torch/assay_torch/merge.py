# SPDX-License-Identifier: Apache-2.0
"""merge_state and merge_states over the C ABI."""
import torch

from ._abi import MergeStateParams, MergeStatesParams
from .library import library, target_of
from .paged_shape import no_address, set_numbers
from .prepared import Pool, Prepared, word
from .tensors import check, dtype_number, facts, no_tensor, refuse_gradient, same_device, strides, unit_rows

_PAIR, _MANY = "merge_state", "merge_states"
_pool = Pool()
_PAIR_WORDS = {name: word(MergeStateParams, name) for name in ("o_a", "lse_a", "o_b", "lse_b", "out", "lse")}
_MANY_WORDS = {name: word(MergeStatesParams, name) for name in ("o_in", "lse_in", "indptr", "out", "lse")}


def _run(key, prepare, addresses, tensors):
    call = _pool.take(key) or prepare()
    for at, tensor in zip(addresses.values(), tensors):
        if tensor is not None:
            call.words[at] = tensor.data_ptr() or no_address((next(iter(addresses)), tensors[0]), **dict(zip(addresses, tensors)))
    call.run()
    _pool.give(key, call)


def merge_pair(o_a, lse_a, o_b, lse_b, out, lse, lse_base):
    tensors = (o_a, lse_a, o_b, lse_b, out, lse)
    try:
        refuse_gradient(_PAIR, o_a, lse_a, o_b, lse_b)
        key = (_PAIR, lse_base, *map(facts, tensors))
    except AttributeError:
        raise no_tensor(**dict(zip(_PAIR_WORDS, tensors))) from None
    _run(key, lambda: _prepare_pair(*tensors, lse_base), _PAIR_WORDS, tensors)


def _prepare_pair(o_a, lse_a, o_b, lse_b, out, lse, lse_base):
    p = MergeStateParams()
    _states(p, "o_a", "lse_a", o_a, lse_a, "row")
    check("o_b", o_b, o_a.dtype, o_a.shape)
    _states(p, "o_b", "lse_b", o_b, lse_b, "row")
    where = _outputs(p, ("o_a", o_a), o_a.shape[0], out, lse, lse_base, lse_a=lse_a, o_b=o_b, lse_b=lse_b)
    return Prepared(_PAIR, where, p, o_a.device)


def merge_many(o_in, lse_in, indptr, out, lse, num_states, lse_base):
    tensors = (o_in, lse_in, indptr, out, lse)
    try:
        refuse_gradient(_MANY, o_in, lse_in)
        key = (_MANY, num_states, lse_base, *map(facts, tensors))
    except AttributeError:
        raise no_tensor(**dict(zip(_MANY_WORDS, tensors))) from None
    _run(key, lambda: _prepare_many(*tensors, num_states, lse_base), _MANY_WORDS, tensors)


def _prepare_many(o_in, lse_in, indptr, out, lse, num_states, lse_base):
    p = MergeStatesParams()
    _states(p, "o_in", "lse_in", o_in, lse_in, "state")
    rows = out.shape[0]
    if indptr is None:
        check("o_in", o_in, o_in.dtype, (rows * num_states, *o_in.shape[1:]))
    else:
        check("indptr", indptr, torch.int32, (rows + 1,))
        unit_rows("indptr", indptr)
    where = _outputs(p, ("o_in", o_in), rows, out, lse, lse_base, lse_in=lse_in, indptr=indptr)
    set_numbers(p, num_states=num_states)
    return Prepared(_MANY, where, p, o_in.device)


def _states(p, name, lse_name, o, lse, along):
    """States [n, num_heads, head_dim] with their LSE [n, num_heads]."""
    check(name, o, o.dtype, (None, None, None))
    unit_rows(name, o)
    check(lse_name, lse, torch.float32, o.shape[:-1])
    for field, tensor, single in ((name, o, o.shape[-1]), (lse_name, lse, 1)):
        outer, head = strides(tensor, single)[:2]
        setattr(p, f"{field}_stride_{along}", outer)
        setattr(p, f"{field}_stride_head", head)


def _outputs(p, first, rows, out, lse, lse_base, **others):
    """Sizes and outputs of either merge. Returns the library."""
    same_device(first, out=out, lse=lse, **others)
    _, num_heads, head_dim = first[1].shape
    check("out", out, first[1].dtype, (rows, num_heads, head_dim))
    unit_rows("out", out)
    p.out_stride_row, p.out_stride_head, _ = strides(out, head_dim)
    if lse is not None:
        check("lse", lse, torch.float32, (rows, num_heads))
        p.lse_stride_row, p.lse_stride_head = strides(lse, 1)
    where = library(target_of(out.device.type))
    p.target, p.dtype = where.target, dtype_number(first[0], out.dtype)
    set_numbers(p, lse_base=lse_base, num_rows=rows, num_heads=num_heads, head_dim=head_dim)
    return where
