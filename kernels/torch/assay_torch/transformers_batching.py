# SPDX-License-Identifier: Apache-2.0
"""Attention for the continuous batching of transformers (5.x): use_in_batches(model), then model.generate_batch(...).

A batch is one row of tokens, request after request, and the keys that each request sees. Requests with up to 8 new tokens attend by
one call of paged_attention, the gathered keys being pages of one token; longer prefills are plain PyTorch.

transformers takes implementations of its own names alone: what has "flash" in its name gets ragged tensors and no mask, and
set_attn_implementation looks for a package of that name. So the name is assay_flash, and it is set in the configuration."""
import torch

from .functions import paged_attention
from .plain import prefill
from .transformers_attention import MOST_TOKENS, supported

NAME = "assay_flash"


def use_in_batches(model):
    """generate_batch of this model decodes by paged_attention, or ValueError with what is not supported. Returns the model."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import flash_attention_mask

    AttentionInterface.register(NAME, forward)
    AttentionMaskInterface.register(NAME, flash_attention_mask)
    model.config._attn_implementation = NAME
    return model


def forward(module, query, key, value, attention_mask, dropout=0.0, scaling=None, cache=None, sliding_window=None, **kwargs):
    """query [1, num_qo_heads, tokens, head_dim], key and value [1, num_kv_heads, tokens, head_dim] of the new tokens; as the
    continuous batching of transformers calls its interface. Returns ([1, tokens, num_qo_heads, head_dim], None)."""
    if cache is None:
        raise ValueError(f"attn_implementation is {NAME!r}, which generate_batch alone can call; for generate it is 'assay'")
    key, value = cache.update(key_states=key, value_states=value, layer_idx=module.layer_idx, kwargs=kwargs)
    q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))
    out = torch.zeros_like(q, memory_format=torch.contiguous_format)
    sinks = kwargs.get("s_aux")
    options = dict(
        sm_scale=q.shape[2] ** -0.5 if scaling is None else scaling, window=sliding_window or 0, logits_softcap=kwargs.get("softcap") or 0.0,
        sinks=None if sinks is None else sinks.float(), alibi_slopes=None,
    )  # fmt: skip
    starts, ends = kwargs["cu_seq_lens_q"].tolist(), kwargs["cu_seq_lens_k"].tolist()
    tokens, keys = ([b - a for a, b in zip(x, x[1:])] for x in (starts, ends))
    is_ours = supported(q.device.type, q.dtype, q.shape[1], k.shape[1], q.shape[2])
    short = [r for r, n in enumerate(tokens) if 0 < n <= MOST_TOKENS and is_ours]
    if short:
        decode(q, k, v, out, [(starts[r], tokens[r], ends[r], keys[r]) for r in short], options)
    for r in sorted(set(range(len(tokens))) - set(short)):
        if tokens[r]:
            rows, seen = slice(starts[r], starts[r + 1]), slice(ends[r], ends[r + 1])
            out[rows] = prefill(q[rows].float(), k[seen].float(), v[seen].float(), causal=True, **options)
    return out[None], None


def decode(q, k, v, out, requests, options):
    """requests: (first token, tokens, first key, keys) of each. Writes their rows of out."""
    on = dict(dtype=torch.int32, device=q.device)
    lengths = torch.tensor([keys for *_, keys in requests], **on)
    table = torch.tensor([[first] for _, _, first, _ in requests], **on) + torch.arange(int(lengths.max()), **on)
    counts = [tokens for _, tokens, _, _ in requests]
    rows = torch.cat([torch.arange(first, first + tokens, device=q.device) for first, tokens, _, _ in requests])
    query_start = torch.tensor([0, *counts], **on).cumsum(0, dtype=torch.int32)
    out[rows] = paged_attention(
        q[rows], (k[:, None], v[:, None]), table, lengths, query_start=query_start, max_q_len=max(counts), **options
    )  # fmt: skip
