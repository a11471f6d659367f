# SPDX-License-Identifier: Apache-2.0
"""Attention for the continuous batching of transformers (5.17 to 5.19): use_in_batches(model), then model.generate_batch(...).

Batches are of two kinds. Where every request has one new token and the cache has block tables (on CUDA, max_blocks_per_request not 0),
new keys are written to the cache and attended where they lie, by paged_attention or tree_attention, planned once a step; CUDA graphs
hold such steps. Every other batch is one row of tokens, request after request, and the keys that each sees, gathered: requests with up
to 8 new tokens attend by one call of paged_attention over pages of one token, longer prefills are PyTorch's.

transformers takes implementations of its own names alone: what has "flash" in its name gets ragged tensors and no mask, what has
"flash" and a 2 gets block tables if a flash attention with a cache is loaded, and in 5.17 "paged|" keeps the name as it is."""
import inspect

import torch

from .functions import paged_attention
from .plain import prefill
from .plans import plan
from .transformers_attention import MOST_TOKENS, supported

NAME, TREES = "assay_flash_2", "assay_trees_flash_2"


def use_in_batches(model, trees=False):
    """generate_batch of this model decodes by paged_attention, or by tree_attention, which computes keys of a shared prompt once for all
    requests (allow_block_sharing). ValueError with what is not supported. Returns the model."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import flash_attention_mask

    name = ("" if has_page_size() else "paged|") + (TREES if trees else NAME)
    AttentionInterface.register(name, forward)
    AttentionMaskInterface.register(name, flash_attention_mask)
    _serve_block_tables(name)
    model.config._attn_implementation = name
    return model


def _serve_block_tables(name):
    """transformers asks the flash attention that is loaded whether it knows block tables. Ours do, and `forward` is what is called."""
    from transformers import modeling_flash_attention_utils as loaded

    loaded._loaded_implementation, loaded._flash_with_kvcache_fn = name, forward


def has_page_size():
    """Whether this is 5.19 by the name of an option, or 5.17, which says block_size."""
    from transformers import ContinuousBatchingConfig

    return "page_size" in inspect.signature(ContinuousBatchingConfig).parameters


def configuration(page_size=256, **given):
    """A ContinuousBatchingConfig with CUDA graphs for decode steps alone: prefills read lengths on the host."""
    from transformers import ContinuousBatchingConfig

    size = "page_size" if has_page_size() else "block_size"
    return ContinuousBatchingConfig(**{"use_cuda_graph": (False, True), size: page_size, **given})


def forward(module, query, key, value, attention_mask, dropout=0.0, scaling=None, cache=None, sliding_window=None, **kwargs):
    """query [1, num_qo_heads, tokens, head_dim], key and value [1, num_kv_heads, tokens, head_dim] of the new tokens; as the
    continuous batching of transformers calls its interface. Returns ([1, tokens, num_qo_heads, head_dim], None)."""
    if cache is None:
        name = module.config._attn_implementation
        raise ValueError(f"attn_implementation is {name!r}, which generate_batch alone can call; for generate it is 'assay'")
    q = query[0].transpose(0, 1)
    sinks = kwargs.get("s_aux")
    options = dict(
        sm_scale=q.shape[2] ** -0.5 if scaling is None else scaling, window_left=(sliding_window or 0) - 1, logits_soft_cap=kwargs.get("softcap") or 0.0,
        sinks=None if sinks is None else sinks.float(), alibi_slopes=None,
    )  # fmt: skip
    is_ours = supported(q.device.type, q.dtype, q.shape[1], key.shape[1], q.shape[2])
    if kwargs.get("block_table") is not None:
        if not is_ours:
            raise ValueError(f"max_blocks_per_request is not 0, and {q.dtype} with head_dim {q.shape[2]} is not supported there: set it to 0")
        k, v = (x[0].transpose(0, 1) for x in (key, value))
        return decode_in_blocks(module, cache, q, k, v, kwargs["block_table"], kwargs["cu_seq_lens_k"], options)[None], None
    if q.is_cuda and torch.cuda.is_current_stream_capturing():
        raise ValueError("prefills are not captured: use_cuda_graph=(False, True), as in transformers_batching.configuration()")
    k, v, ends = new_and_old(module, cache, key, value, sliding_window, kwargs)
    return attend_gathered(q, k, v, kwargs["cu_seq_lens_q"].tolist(), ends.tolist(), is_ours, options)[None], None


def new_and_old(module, cache, key, value, sliding_window, kwargs):
    """(k, v [keys, num_kv_heads, head_dim], ends of requests among them) that the tokens of a batch see; the new ones are written."""
    if hasattr(cache, "layer_to_allocator"):  # 5.19
        key, value = cache.update(key_states=key, value_states=value, layer_idx=module.layer_idx, kwargs=kwargs)
        return key[0].transpose(0, 1), value[0].transpose(0, 1), kwargs["cu_seq_lens_k"]
    indices = {name: kwargs[name] for name in ("read_index", "write_index")}
    return *cache.update(key_states=key, value_states=value, layer_idx=module.layer_idx, **indices), _ends(kwargs["cu_seq_lens_k"], sliding_window)


def _ends(cu_seq_lens_k, sliding_window):
    """Of a model with two kinds of layers there are two."""
    if isinstance(cu_seq_lens_k, dict):
        return cu_seq_lens_k["sliding_attention" if sliding_window else "full_attention"]
    return cu_seq_lens_k


def attend_gathered(q, k, v, starts, ends, is_ours, options):
    """Each request's tokens over its keys, both one behind the other."""
    out = torch.zeros_like(q, memory_format=torch.contiguous_format)
    tokens, keys = ([b - a for a, b in zip(x, x[1:])] for x in (starts, ends))
    short = [r for r, n in enumerate(tokens) if 0 < n <= MOST_TOKENS and is_ours]
    if short:
        decode(q, k, v, out, [(starts[r], tokens[r], ends[r], keys[r]) for r in short], options)
    for r in sorted(set(range(len(tokens))) - set(short)):
        if tokens[r]:
            rows, seen = slice(starts[r], starts[r + 1]), slice(ends[r], ends[r + 1])
            out[rows] = attend_long(q[rows], k[seen], v[seen], options)
    return out


def attend_long(q, k, v, options):
    """A long prefill: by sdpa, which ends a causal mask at the last key, or, with what sdpa does not know, plainly."""
    if options["window_left"] >= 0 or options["logits_soft_cap"] or options["sinks"] is not None:
        return prefill(q.float(), k.float(), v.float(), causal=True, **options).to(q.dtype)
    from torch.nn.attention.bias import causal_lower_right

    group = q.shape[1] // k.shape[1]
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)))
    mask = causal_lower_right(q.shape[2], k.shape[2])
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=options["sm_scale"])[0].transpose(0, 1)


def decode(q, k, v, out, requests, options):
    """requests: (first token, tokens, first key, keys) of each. Writes their rows of out."""
    on = dict(dtype=torch.int32, device=q.device)
    lengths = torch.tensor([keys for *_, keys in requests], **on)
    table = torch.tensor([[first] for _, _, first, _ in requests], **on) + torch.arange(int(lengths.max()), **on)
    counts = [tokens for _, tokens, _, _ in requests]
    rows = torch.cat([torch.arange(first, first + tokens, device=q.device) for first, tokens, _, _ in requests])
    qo_indptr = torch.tensor([0, *counts], **on).cumsum(0, dtype=torch.int32)
    out[rows] = paged_attention(
        q[rows], (k[:, None], v[:, None]), table, lengths, qo_indptr=qo_indptr, max_q_len=max(counts), **options
    )  # fmt: skip


class Step:
    """What all layers of a decode step share: lengths, plans, and where new keys go."""

    def __init__(self, table, cu_seq_lens_k, page_size, trees):
        self.table, self.trees, self.page_size = table, trees, page_size
        self.lengths, self.plans = cu_seq_lens_k.diff(), {}
        # Padding of a graph has no keys, and a table of -1: such a row writes once more what request 0 writes.
        rows = torch.arange(len(table), device=table.device)
        self.rows = torch.where(self.lengths > 0, rows, 0)
        last = self.lengths[self.rows].long() - 1
        blocks = table[self.rows].gather(1, (last // page_size)[:, None])[:, 0].long()
        self.slots = blocks * page_size + last % page_size

    def plan(self, **options):
        """The plan of layers with these options: most models have one."""
        kind = tuple(options.items())
        if kind not in self.plans:
            self.plans[kind] = plan(self.table, self.lengths, tree=self.trees, page_size=self.page_size, **options)
        return self.plans[kind]


def decode_in_blocks(module, cache, q, k, v, block_table, cu_seq_lens_k, options):
    """One token a request, q [requests, num_qo_heads, head_dim], over the cache as it lies; k and v are written there first."""
    k_pages, v_pages, group = pages_of(cache, module.layer_idx)
    step = getattr(cache, "_assay_step", None)
    if module.layer_idx == 0 or step is None:
        trees = module.config._attn_implementation.endswith(TREES)
        step = cache._assay_step = Step(block_table[group], _ends(cu_seq_lens_k, 0), k_pages.shape[1], trees)
    for pages, new in ((k_pages, k), (v_pages, v)):
        pages.flatten(0, 1).index_copy_(0, step.slots, new[step.rows])
    sinks, shape = options["sinks"], dict(num_qo_heads=q.shape[1], num_kv_heads=k.shape[1], head_dim=q.shape[2], dtype=q.dtype)
    shared = step.plan(**shape, **{**options, "sinks": sinks is not None})
    return shared.run(q.contiguous(), (k_pages, v_pages), sinks=sinks)


def pages_of(cache, layer):
    """(k, v [pages, page_size, num_kv_heads, head_dim], row of block tables) of a layer."""
    if hasattr(cache, "layer_to_allocator"):  # 5.19
        allocator = cache.layer_to_allocator[layer]
        return *allocator.get_cache_for_block_table(layer), allocator.index
    group, in_group = cache.layer_index_to_group_indices[layer]
    shape = (-1, cache.block_size, cache.num_key_value_heads, cache.head_dim)
    return cache.key_cache[in_group].view(shape), cache.value_cache[in_group].view(shape), group
