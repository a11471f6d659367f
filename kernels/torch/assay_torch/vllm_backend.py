# SPDX-License-Identifier: Apache-2.0
"""Serves with assay's kernels inside vLLM: the entry point `assay_torch` of vllm.general_plugins.

ASSAY_VLLM_BACKEND=1     takes the place of CPU_ATTN where vLLM runs on the CPU; the kernels run on the executor there, to see
                         that they are right, not to be fast
ASSAY_VLLM_BACKEND=tree  the same with tree_attention: keys that requests share (prefix caching gives them the same blocks) are
                         read once for all of them, where the library's model says that this pays
not set                  nothing changes

Requests with up to 8 new tokens are ours, in one call and mixed (decode, speculative tokens, ends of prompts); longer prefills
are plain PyTorch (vllm_cpu.py). What our kernels do not take (a head_dim, an encoder) stays with the backend whose place this
takes, and the log says so in one line."""
import logging
import os

import torch

from .errors import AssayError
from .sizes import plan_bytes

logger = logging.getLogger("vllm.assay_torch")
MOST_TOKENS = 8  #: of a request in one call of ours
#: Element types of vLLM's names.
FP8 = {"fp8": torch.float8_e4m3fn, "fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2}
_said = set()


def say_once(level, text):
    """A line for all layers. (Not from register(): vLLM configures its logging later.)"""
    if text not in _said:
        _said.add(text)
        logger.log(level, "assay: %s", text)


def wanted():
    """"1", "tree", or None."""
    value = os.environ.get("ASSAY_VLLM_BACKEND", "0")
    if value not in ("", "0", "1", "tree"):
        raise ValueError(f"ASSAY_VLLM_BACKEND is {value!r}, expected 1 or tree")
    return None if value in ("", "0") else value


def register():
    """The entry point: vLLM calls it in every process of an engine."""
    if wanted() is None:
        return
    from vllm.platforms import current_platform
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    if current_platform.is_cpu():
        register_backend(AttentionBackendEnum.CPU_ATTN, "assay_torch.vllm_cpu.AssayCPUBackend")
    else:
        say_once(logging.WARNING, "ASSAY_VLLM_BACKEND is for vLLM's CPU build so far: nothing changes")


def refusal(device, dtype, num_heads, num_kv_heads, head_size, kv_cache_dtype, attn_type, **options):
    """Why a layer is not ours: the library's words, or None where it is."""
    if attn_type != "decoder":
        return f"attention of an {attn_type}"
    if kv_cache_dtype not in (*FP8, "auto", str(dtype).removeprefix("torch.")):
        return f"kv_cache_dtype is {kv_cache_dtype}, supported are auto and {', '.join(FP8)}"
    shape = dict(num_qo_heads=num_heads, num_kv_heads=num_kv_heads, head_dim=head_size, page_size=16, dtype=dtype)
    shape["kv_dtype"] = FP8.get(kv_cache_dtype)
    try:
        plan_bytes(1, 1, device, max_q_len=MOST_TOKENS, ragged=True, **shape, **options)
    except AssayError as error:
        return str(error)
    return None


def options_of(impl):
    """Keyword arguments of paged_attention that a layer fixes. CPU_ATTN's sliding_window counts the token itself; -1: none."""
    return dict(
        sm_scale=impl.scale, window_left=max(impl.sliding_window, 0) - 1, logits_soft_cap=float(impl.logits_soft_cap),
        alibi_slopes=impl.alibi_slopes, sinks=None if impl.sinks is None else impl.sinks.to(torch.float32),
    )  # fmt: skip
