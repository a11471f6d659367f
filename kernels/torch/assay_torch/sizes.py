# SPDX-License-Identifier: Apache-2.0
"""What the host may ask before there are tensors: bytes of a plan, and which version of paged attention is faster.

Both raise what a call of that shape would raise, so that an engine learns here whether a model is supported. Neither runs
anything on a device; torch.compile cannot trace them."""
import torch

from . import paged_shape
from .functions import dcp
from .operators import _described

_NAMES = ("dtype", "kv_dtype", "num_qo_heads", "num_kv_heads", "head_dim", "page_size", "max_q_len", "ragged", "alibi_slopes", "sinks",
          "logits_soft_cap", "window_left", "num_splits", "dcp_world_size", "dcp_interleave", "page_indptr", "list_per_head")  # fmt: skip


def _shape(batch, max_pages, device, tree=False, **options):
    given = dict(max_q_len=1, ragged=False, alibi_slopes=False, sinks=False, logits_soft_cap=0.0, window_left=-1, num_splits=0,
                 dcp_world_size=0, dcp_interleave=1, page_indptr=False, list_per_head=False, kv_dtype=None)  # fmt: skip
    given.update(options)
    missing = [name for name in _NAMES if name not in given]
    if missing:
        raise TypeError(f"option {missing[0]} is missing")
    given["kv_dtype"] = given["kv_dtype"] or given["dtype"]
    given["dcp_world_size"], _, given["dcp_interleave"] = dcp(given["dcp_world_size"], 0, given["dcp_interleave"])
    kernel, described = _described(tree, *(given.pop(name) for name in _NAMES))
    if given:
        raise TypeError(f"unknown option {next(iter(given))}, expected one of {', '.join(_NAMES)}")
    dtype, kv_dtype, shape, names = described
    device = torch.device(device)
    return kernel, *paged_shape.shape_params(device, dtype, kv_dtype, batch, max_pages, dict(shape), names), device


def plan_bytes(batch, max_pages, device, **options):
    """Bytes of a plan of plan(), whose options these are, for page tables [batch, max_pages] on a device. Of tensors it counts that they
    are there: alibi_slopes, sinks, page_indptr, list_per_head (page lists [num_kv_heads, entries]) and ragged (qo_indptr) are True or False."""
    return paged_shape.plan_bytes(*_shape(batch, max_pages, device, **options))


def choose(batch, max_pages, device, *, total_tokens, max_seq_len, **options):
    """(version, even_lengths) for paged_attention, expected to be the fastest for lengths that sum to total_tokens, the longest
    of max_seq_len. options as in plan(). A model of bytes, launches and merges measured on an H200."""
    _, *asked = _shape(batch, max_pages, device, **options)
    return paged_shape.choose(*asked, total_tokens, max_seq_len)
