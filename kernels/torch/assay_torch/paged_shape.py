# SPDX-License-Identifier: Apache-2.0
"""The part of paged attention's parameters that planners, sizes and the chooser look at: no tensor's address, no stride."""
import ctypes

import torch

from ._abi import PagedChoice, PagedKv, PagedParams
from .errors import InvalidArgument, require
from .library import library, target_of
from .tensors import check, dtype_number, same_device, unit_rows

V1, V2, TREE = "paged_attention_v1", "paged_attention_v2", "tree_attention"
VERSIONS = {1: V1, 2: V2}
#: Numbers of a call, in the order in which operators hand them on.
NUMBERS = ("lse_base", "sm_scale", "logits_soft_cap", "window_left", "num_splits", "enable_pdl", "even_lengths", "q_len",
           "dcp_world_size", "dcp_rank", "dcp_interleave", "max_pages")  # fmt: skip
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
    """numbers: NUMBERS but max_pages, and the numbers of heads and head_dim."""
    p.struct_size = ctypes.sizeof(p)
    p.target = where.target
    p.dtype, p.kv_dtype = dtype_number("q", dtype), dtype_number("k", kv_dtype)
    set_numbers(p, batch=batch, **numbers)
    set_numbers(p.kv, rows=batch, max_pages=max_pages, page_size=page_size)


def list_per_head(lists):
    """Whether every kv head has page lists of its own."""
    return lists.dim() == 2 and lists.shape[0] > 1 and lists.stride(0) > 0


def bounds_of(page_table, seq_lens, page_indptr, max_pages, of=""):
    """(rows, max_pages) of a page table, or with page_indptr of page lists. `of` goes in front of names in an error."""
    if page_indptr is None:
        if max_pages is not None:
            raise InvalidArgument(f"{of}max_pages is {max_pages}, expected none without page_indptr: a page table has its columns")
        if page_table.dim() != 2:
            raise InvalidArgument(f"{of}page_table is {list(page_table.shape)}, expected [batch, max_pages]; lists need page_indptr")
        return page_table.shape
    if max_pages is None:
        raise InvalidArgument(f"{of}max_pages is missing, expected the most entries of a row in page_indptr, which the host never reads")
    check(of + "seq_lens", seq_lens, torch.int32, (None,))
    return seq_lens.shape[0], max_pages


def tables_of(page_table, seq_lens, page_indptr, max_pages, num_kv_heads, of=""):
    """(rows, max_pages, page_table_stride, page_table_stride_head) of a call whose tables or lists and lengths agree."""
    check(of + "seq_lens", seq_lens, torch.int32, (None,))
    rows, (_, most), shape = seq_lens.shape[0], bounds_of(page_table, seq_lens, page_indptr, max_pages, of), page_table.shape
    if page_indptr is not None:
        check(of + "page_indptr", page_indptr, torch.int32, (rows + 1,))
        unit_rows(of + "page_indptr", page_indptr)
        fits = len(shape) == 1 or len(shape) == 2 and num_kv_heads in (None, shape[0])
        require(fits, lambda: f"{of}page_table is {list(shape)}, expected [entries] or [{num_kv_heads}, entries] with page_indptr")
    check(of + "page_table", page_table, torch.int32, (rows, None) if page_indptr is None else shape)
    unit_rows(of + "page_table", page_table)
    unit_rows(of + "seq_lens", seq_lens)
    if page_indptr is None:
        return rows, most, page_table.stride(0) if rows > 1 else most, 0
    return rows, most, 0, page_table.stride(0) if list_per_head(page_table) else 0


def option_path(name):
    """Where PagedParams has an option."""
    return ("kv", name) if hasattr(PagedKv, name) else (name,)


def set_option(p, name, value):
    """Writes an option there."""
    setattr(p.kv if hasattr(PagedKv, name) else p, name, value)


def shape_params(device, dtype, kv_dtype, batch, max_pages, shape, given=()):
    """(library, params) of calls of a shape. shape: sizes and numbers; given: names of the options that the calls have."""
    where, p = library(target_of(device.type)), PagedParams()
    fill_shape(p, where, dtype, kv_dtype, batch, max_pages, sm_scale=1.0, **shape)
    for name in given:
        set_option(p, name, GIVEN)
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
