# SPDX-License-Identifier: Apache-2.0
"""Functions of torch on a GPU: right in every call, and some wrong where a graph of them is replayed."""
import torch

_small, _large, _lengths = [None], {}, {}


def right(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    k, v = (cache[page_table.long()].flatten(1, 2).float().transpose(1, 2) for cache in (k_cache, v_cache))  # [batch, kv_heads, keys, dim]
    visible = (torch.arange(k.shape[2], device=q.device)[None] < seq_lens[:, None])[:, None, None]
    scores = (q.float().unflatten(1, (k.shape[1], -1)) @ k.transpose(-1, -2) * sm_scale).masked_fill(~visible, float("-inf"))
    out = torch.nan_to_num(torch.softmax(scores, -1)) @ v.masked_fill(~visible.transpose(-1, -2), 0)
    return out.flatten(1, 2).to(q)


def reads_lengths_on_the_host(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    """No capture can hold it."""
    columns = max(1, -(-seq_lens.max().item() // k_cache.shape[1]))
    return right(q, k_cache, v_cache, page_table[:, :columns], seq_lens, sm_scale)


def frees_its_workspace_when_it_grows(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    """A graph of the smaller call still multiplies by the freed ones."""
    if _small[0] is None or _small[0].numel() < q.numel():
        _small[0] = None
        _small[0] = torch.ones(q.numel(), device=q.device)
    return (right(q, k_cache, v_cache, page_table, seq_lens, sm_scale).float() * _small[0][: q.numel()].view(q.shape)).to(q)


def frees_a_large_workspace(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    """The same with 48 MB, for each shape anew."""
    if q.shape not in _large:
        _large.clear()
        _large[q.shape] = torch.ones(12 << 20, device=q.device)
    return (right(q, k_cache, v_cache, page_table, seq_lens, sm_scale).float() * _large[q.shape][: q.numel()].view(q.shape)).to(q)


def keeps_the_lengths_of_a_call(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    """A call copies its lengths; a capture takes the last copy."""
    if not torch.cuda.is_current_stream_capturing():
        _lengths[q.shape] = seq_lens.clone()
    return right(q, k_cache, v_cache, page_table, _lengths[q.shape], sm_scale)
