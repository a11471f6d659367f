# SPDX-License-Identifier: Apache-2.0
"""The part of paged attention's parameters that planners, sizes and the chooser look at: no tensor's address, no stride."""
import ctypes

import torch

from ._abi import PagedChoice, PagedParams
from .errors import InvalidArgument, require
from .library import library, target_of
from .tensors import check, dtype_number, same_device, unit_rows

V1, V2, TREE = "paged_attention_v1", "paged_attention_v2", "tree_attention"
VERSIONS = {1: V1, 2: V2}
#: Numbers of a call, in the order in which operators hand them on.
NUMBERS = ("lse_base", "sm_scale", "logits_soft_cap", "window_left", "num_splits", "enable_pdl", "even_lengths", "q_len",
           "dcp_world_size", "dcp_rank", "dcp_interleave")  # fmt: skip
#: In the place of a pointer where it only counts that there is one: for a planner, and for a pool of no pages, whose tensor has
#: no address though page tables may have columns.
GIVEN = 16
#: Of a plan: the scratch of its calls lies behind it, aligned like an allocation.
_SCRATCH_ALIGNMENT = 256


def no_address(first, **tensor):
    """What stands for the address of a tensor that has none: it has no elements, or no memory. A shape that was seen does not tell:
    the index of a device is the same for CPU and meta. `first` is (name, tensor), where all others are."""
    same_device(first, **tensor)
    return GIVEN


def set_numbers(params, **numbers):
    """Writes numbers into a struct. ctypes would wrap what does not fit."""
    for name, value in numbers.items():
        try:
            setattr(params, name, value)
        except TypeError:
            raise InvalidArgument(f"{name} is {value!r}, expected a number") from None
        fits = isinstance(value, float) or getattr(params, name) == value
        require(fits, lambda: f"{name} is {value}, expected a number of 32 bits")


def fill_shape(p, where, dtype, kv_dtype, batch, max_pages, *, page_size, **numbers):
    """numbers: NUMBERS, and the numbers of heads and head_dim."""
    p.struct_size = ctypes.sizeof(p)
    p.target = where.target
    p.dtype, p.kv_dtype = dtype_number("q", dtype), dtype_number("k", kv_dtype)
    set_numbers(p, batch=batch, **numbers)
    set_numbers(p.kv, rows=batch, max_pages=max_pages, page_size=page_size)


def batch_of(page_table, seq_lens, of=""):
    """Requests of a call whose tables and lengths agree; `of` goes in front of their names in an error."""
    check(of + "seq_lens", seq_lens, torch.int32, (None,))
    check(of + "page_table", page_table, torch.int32, (seq_lens.shape[0], None))
    unit_rows(of + "page_table", page_table)
    unit_rows(of + "seq_lens", seq_lens)
    return seq_lens.shape[0]


def shape_params(device, dtype, kv_dtype, batch, max_pages, shape, given=()):
    """(library, params) of calls of a shape. shape: sizes and numbers; given: names of the options that the calls have."""
    where, p = library(target_of(device.type)), PagedParams()
    fill_shape(p, where, dtype, kv_dtype, batch, max_pages, sm_scale=1.0, **shape)
    for name in given:
        setattr(p, name, GIVEN)
    return where, p


def scratch_at(plan_bytes):
    """Where the scratch of a plan's calls begins."""
    return -(-plan_bytes // _SCRATCH_ALIGNMENT) * _SCRATCH_ALIGNMENT


def plan_bytes(kernel, where, p, device):
    """Bytes of a plan and of the scratch of its calls."""
    return scratch_at(where.size(kernel + "_plan_size", p, device)) + where.size(kernel + "_workspace_size", p, device)


def choose(where, p, device, total_tokens, max_seq_len):
    """(version, even_lengths) that the library's model expects to be faster."""
    choice = PagedChoice()
    where.ask("paged_attention_choose", p, device, ctypes.c_int64(total_tokens), ctypes.c_int32(max_seq_len), ctypes.byref(choice))
    return choice.version, bool(choice.even_lengths)
