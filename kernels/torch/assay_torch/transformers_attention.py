# SPDX-License-Identifier: Apache-2.0
"""Attention for transformers (5.x): register(), then attn_implementation="assay".

A token, or a short text of up to 8, attends by paged_attention over the cache as it lies: [batch, num_kv_heads, tokens, head_dim] is a
pool of one page a request. What has a mask (padding), a gradient or dropout, long texts, and what the kernels do not take goes to
transformers' own sdpa."""
import functools

import torch

from .errors import AssayError
from .functions import paged_attention
from .sizes import plan_bytes

MOST_TOKENS = 8


def register(name="assay"):
    """Makes the name known to transformers, with the masks of sdpa."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(name, forward)
    AttentionMaskInterface.register(name, sdpa_mask)


@functools.cache
def supported(device_type, dtype, num_qo_heads, num_kv_heads, head_dim):
    """Whether the kernels take the shape."""
    shape = dict(num_qo_heads=num_qo_heads, num_kv_heads=num_kv_heads, head_dim=head_dim, page_size=1, dtype=dtype)
    try:
        plan_bytes(1, 1, device_type, max_q_len=MOST_TOKENS, **shape)
    except AssayError:
        return False
    return True


def is_ours(module, query, key, value, attention_mask, dropout, kwargs):
    """Whether every key is seen by its tokens' causal order alone, and the kernels take the shape."""
    tokens, keys = query.shape[2], key.shape[2]
    whole = tokens == 1 or (tokens == keys and tokens <= MOST_TOKENS and getattr(module, "is_causal", True))
    plain = attention_mask is None and not dropout and kwargs.get("position_bias") is None and kwargs.get("cache") is None
    shapes = query.shape[0] == key.shape[0] and key.shape == value.shape and key.shape[3] == query.shape[3]
    grad = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)
    if not (whole and plain and shapes and not grad) or kwargs.get("is_causal") is False:
        return False
    return supported(query.device.type, query.dtype, query.shape[1], key.shape[1], query.shape[3])


def forward(module, query, key, value, attention_mask, dropout=0.0, scaling=None, **kwargs):
    """query [batch, num_qo_heads, tokens, head_dim], key and value [batch, num_kv_heads, keys, head_dim]; as transformers' interface
    says. Returns ([batch, tokens, num_qo_heads, head_dim], None)."""
    if not is_ours(module, query, key, value, attention_mask, dropout, kwargs):
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs)
    batch, _, keys, _ = key.shape
    each = torch.arange(batch, dtype=torch.int32, device=query.device)[:, None]
    lengths = torch.full((batch,), keys, dtype=torch.int32, device=query.device)
    sinks = kwargs.get("s_aux")
    out = paged_attention(
        query.transpose(1, 2), (key, value), each, lengths, kv_layout="HND", sm_scale=scaling, logits_soft_cap=kwargs.get("softcap") or 0.0,
        sinks=None if sinks is None else sinks.float(), out=query.new_empty(batch, query.shape[2], query.shape[1], query.shape[3]),
    )  # fmt: skip
    return out, None
