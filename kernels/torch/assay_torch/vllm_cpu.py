# SPDX-License-Identifier: Apache-2.0
"""vLLM's CPU build: our backend in the place of CPU_ATTN.

The cache has CPU_ATTN's shape [blocks, num_kv_heads, block_size, 2 * head_dim]. Layers of ours hold K and V of a token side by
side in it, as our kernels read them (CPU_ATTN keeps K transposed). Prefills are plain PyTorch in fp32 over the same cache."""
import dataclasses
import logging

import torch
from vllm.v1.attention.backends.cpu_attn import (
    CPUAttentionBackend,
    CPUAttentionBackendImpl,
    CPUAttentionMetadata,
    CPUAttentionMetadataBuilder,
)
from vllm.v1.attention.backends.utils import split_decodes_and_prefills

from .functions import paged_attention, tree_attention
from .library import SIMT, library
from .plain import prefill
from .vllm_backend import FP8, MOST_TOKENS, options_of, refusal, say_once, wanted


class AssayCPUBackend(CPUAttentionBackend):
    @staticmethod
    def get_impl_cls():
        return AssayCPUImpl

    @staticmethod
    def get_builder_cls():
        return AssayCPUMetadataBuilder


@dataclasses.dataclass
class AssayCPUMetadata(CPUAttentionMetadata):
    """Requests in the order decode, prefill: the first num_decodes have num_decode_tokens tokens, MOST_TOKENS each at most."""

    num_decodes: int = 0


class AssayCPUMetadataBuilder(CPUAttentionMetadataBuilder):
    reorder_batch_threshold = MOST_TOKENS

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        made = super().build(common_prefix_len, common_attn_metadata, fast_build)
        decodes, _, tokens, _ = split_decodes_and_prefills(common_attn_metadata, decode_threshold=MOST_TOKENS)
        fields = {field.name: getattr(made, field.name) for field in dataclasses.fields(made)}
        fields.update(num_decodes=decodes, num_decode_tokens=tokens)
        return AssayCPUMetadata(**fields)


class AssayCPUImpl(CPUAttentionBackendImpl):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        from vllm.config import get_current_vllm_config

        dtype = get_current_vllm_config().model_config.dtype
        self.refused = refusal(
            "cpu", dtype, self.num_heads, self.num_kv_heads, self.head_size, self.kv_cache_dtype, self.attn_type,
            alibi_slopes=self.alibi_slopes is not None, sinks=self.sinks is not None,
        )  # fmt: skip
        if self.refused:
            say_once(logging.WARNING, f"layers stay with CPU_ATTN: {self.refused}")
        else:
            #: For who looks at calls from beside (ASSAY_VLLM_EVERY): the cache is not CPU_ATTN's.
            self.assay_cache = "side_by_side"
            self.fp8 = FP8.get(self.kv_cache_dtype)
            self.attention = tree_attention if wanted() == "tree" else paged_attention
            say_once(logging.INFO, f"decode by {self.attention.__name__} of {library(SIMT).path}")

    def do_kv_cache_update(self, layer, key, value, kv_cache, slot_mapping):
        """key, value [tokens, num_kv_heads, head_dim] go to slots (block * block_size + slot); -1 is padding."""
        if self.refused:
            return super().do_kv_cache_update(layer, key, value, kv_cache, slot_mapping)
        size, given = kv_cache.shape[2], slot_mapping >= 0
        slots = slot_mapping[given]
        key, value = key[: len(given)][given], value[: len(given)][given]
        if self.fp8 is not None:
            most = torch.finfo(self.fp8).max
            scaled = (key.float() / layer._k_scale, value.float() / layer._v_scale)
            key, value = (x.clamp(-most, most).to(self.fp8).view(kv_cache.dtype) for x in scaled)
        kv_cache[slots // size, :, slots % size] = torch.cat([key, value], 2)

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output, output_scale=None, output_block_scale=None):
        if self.refused or attn_metadata is None or output_scale is not None or output_block_scale is not None:
            return super().forward(layer, query, key, value, kv_cache, attn_metadata, output, output_scale, output_block_scale)
        m, out = attn_metadata, output.view(-1, self.num_heads, self.head_size)
        requests, tokens = (m.num_decodes, m.num_decode_tokens) if m.causal is True else (0, 0)
        scales, cache = {}, kv_cache
        if self.fp8 is not None:
            scales, cache = dict(k_scale=layer._k_scale, v_scale=layer._v_scale), kv_cache.view(self.fp8)
        if tokens:
            # Each has a token at least: where there are as many tokens as requests, one.
            self.attention(
                query[:tokens], cache, m.block_table[:requests], m.seq_lens[:requests], kv_layout="HND", out=out[:tokens],
                qo_indptr=None if tokens == requests else m.query_start_loc[: requests + 1], max_q_len=MOST_TOKENS,
                **scales, **options_of(self),
            )  # fmt: skip
        starts, lengths = m.query_start_loc.tolist(), m.seq_lens.tolist()
        for r in range(requests, len(lengths)):
            rows = slice(starts[r], starts[r + 1])
            pages = m.block_table[r, : -(-lengths[r] // kv_cache.shape[2])].long()
            held = kv_cache[pages].view(cache.dtype)
            keys, values = held.transpose(1, 2).flatten(0, 1)[: lengths[r]].float().chunk(2, 2)
            if scales:
                keys, values = keys * scales["k_scale"], values * scales["v_scale"]
            out[rows] = prefill(query[rows].float(), keys, values, causal=m.causal is True, **options_of(self))
        return output
