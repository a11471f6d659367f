# SPDX-License-Identifier: Apache-2.0
"""Attention in plain PyTorch, for texts that are longer than a call of ours takes."""
import torch


def prefill(q, k, v, *, causal, sm_scale, window_left, logits_soft_cap, alibi_slopes, sinks):
    """Attention of a request's newest tokens q [n, heads, dim] over k, v [keys, kv heads, dim], in fp32."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    scores = torch.einsum("nhd,khd->hnk", q, k) * sm_scale
    if logits_soft_cap:
        scores = logits_soft_cap * torch.tanh(scores / logits_soft_cap)
    behind = torch.arange(len(k) - len(q), len(k))[:, None] - torch.arange(len(k))[None, :]
    if alibi_slopes is not None:
        scores = scores - alibi_slopes[:, None, None] * behind
    if causal:
        scores = scores.masked_fill(behind < 0, -torch.inf)
    if window_left >= 0:
        scores = scores.masked_fill(behind > window_left, -torch.inf)
    if sinks is not None:
        scores = torch.cat([scores, sinks[:, None, None].expand(-1, len(q), 1)], 2)
    return torch.einsum("hnk,khd->nhd", scores.softmax(2)[..., : len(k)], v)
