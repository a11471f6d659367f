# SPDX-License-Identifier: Apache-2.0
"""What assay_torch asks of vLLM's CPU build, for vLLM has no package for a CPU: modules, a backend, metadata, a batch in its order."""
import dataclasses
import types

import torch


class Backend:
    """CPUAttentionBackend."""


class Impl:
    """CPUAttentionBackendImpl: options as attributes; its own work is named."""

    def __init__(self, num_heads, head_size, scale, num_kv_heads, alibi_slopes=None, sliding_window=-1, kv_cache_dtype="auto", logits_soft_cap=0, attn_type="decoder", sinks=None):
        self.num_heads, self.head_size, self.scale, self.num_kv_heads, self.alibi_slopes = num_heads, head_size, scale, num_kv_heads, alibi_slopes
        self.sliding_window, self.kv_cache_dtype, self.logits_soft_cap, self.attn_type, self.sinks = sliding_window, kv_cache_dtype, logits_soft_cap, attn_type, sinks

    def do_kv_cache_update(self, *given):
        return "its own", given

    forward = do_kv_cache_update


@dataclasses.dataclass
class Metadata:
    """CPUAttentionMetadata."""

    query_start_loc: torch.Tensor
    seq_lens: torch.Tensor
    block_table: torch.Tensor
    causal: object
    num_decode_tokens: int = 0


class Builder:
    """CPUAttentionMetadataBuilder."""

    def build(self, common_prefix_len, common, fast_build=False):
        self.asked = common_prefix_len, fast_build
        return Metadata(common.query_start_loc, common.seq_lens, common.block_table, common.causal, num_decode_tokens=-1)


def split_decodes_and_prefills(common, decode_threshold=1):
    """(decodes, prefills, their tokens) of a batch whose decodes come first."""
    counts = common.query_start_loc.diff().tolist()
    decodes = next((i for i, n in enumerate(counts) if n > decode_threshold), len(counts))
    return decodes, len(counts) - decodes, sum(counts[:decodes]), sum(counts[decodes:])


def modules(dtype, is_cpu=True):
    """({name: module}, {backend: class that was registered}) of a vLLM whose model is of this type."""
    registered = {}
    platform = types.SimpleNamespace(is_cpu=lambda: is_cpu)
    config = types.SimpleNamespace(model_config=types.SimpleNamespace(dtype=dtype))
    held = {
        "vllm": {}, "vllm.platforms": dict(current_platform=platform), "vllm.config": dict(get_current_vllm_config=lambda: config), "vllm.v1": {},
        "vllm.v1.attention": {}, "vllm.v1.attention.backends": {},
        "vllm.v1.attention.backends.registry": dict(
            AttentionBackendEnum=types.SimpleNamespace(CPU_ATTN="CPU_ATTN"), register_backend=lambda name, path: registered.update({name: path})
        ),
        "vllm.v1.attention.backends.cpu_attn": dict(
            CPUAttentionBackend=Backend, CPUAttentionBackendImpl=Impl, CPUAttentionMetadata=Metadata, CPUAttentionMetadataBuilder=Builder
        ),
        "vllm.v1.attention.backends.utils": dict(split_decodes_and_prefills=split_decodes_and_prefills),
    }  # fmt: skip
    made = {}
    for name, values in held.items():
        made[name] = types.ModuleType(name)
        vars(made[name]).update(values)
    return made, registered
