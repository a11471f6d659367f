# SPDX-License-Identifier: Apache-2.0
"""What the host may ask before there are tensors: bytes of a plan, and which version of paged attention is faster.

Both raise what a call of that shape would raise, so that an engine learns here whether a model is supported. Neither runs
anything on a device; torch.compile cannot trace them."""
import torch

from . import paged_shape
from .functions import _shard
from .operators import _described

_NAMES = ("dtype", "kv_dtype", "num_qo_heads", "num_kv_heads", "head_dim", "page_size", "max_q_len", "ragged", "alibi_slopes", "sinks",
          "logits_softcap", "window", "num_splits")  # fmt: skip


def _shape(batch, max_pages, device, tree=False, **options):
    given = dict(max_q_len=1, ragged=False, alibi_slopes=False, sinks=False, logits_softcap=0.0, window=0, num_splits=0, kv_dtype=None)
    num_ranks, _, interleave = _shard(options.pop("shard", None))
    given.update(options)
    missing = [name for name in _NAMES if name not in given]
    if missing:
        raise TypeError(f"option {missing[0]} is missing")
    given["kv_dtype"] = given["kv_dtype"] or given["dtype"]
    kernel, described = _described(tree, *(given.pop(name) for name in _NAMES), num_ranks, interleave)
    if given:
        raise TypeError(f"unknown option {next(iter(given))}, expected one of {', '.join(_NAMES)}, shard")
    dtype, kv_dtype, shape, names = described
    device = torch.device(device)
    return kernel, *paged_shape.shape_params(device, dtype, kv_dtype, batch, max_pages, dict(shape), names), device


def plan_bytes(batch, max_pages, device, **options):
    """Bytes of a plan of plan(), whose options these are, for page tables [batch, max_pages] on a device."""
    return paged_shape.plan_bytes(*_shape(batch, max_pages, device, **options))


def choose(batch, max_pages, device, *, total_tokens, max_seq_len, **options):
    """(version, even_lengths) for paged_attention, expected to be the fastest for lengths that sum to total_tokens, the longest
    of max_seq_len. options as in plan(). A model of bytes, launches and merges measured on an H200."""
    _, *asked = _shape(batch, max_pages, device, **options)
    return paged_shape.choose(*asked, total_tokens, max_seq_len)
