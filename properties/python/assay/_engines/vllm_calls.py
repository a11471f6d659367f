# SPDX-License-Identifier: Apache-2.0
"""What a call of one of vLLM's attention backends reads and writes, as arguments of assay.judge.

Arrays are torch's or NumPy's. Of a cache only the pages of the requests that are judged are copied."""
import numpy as np

from .._judge.tensors import Tensor


class NotJudged(ValueError):
    """A call that cannot be judged; the message says why."""


def _values(tensor):
    return np.asarray(Tensor("metadata", tensor).numpy()).astype(np.int64)


def _require_plain(impl, metadata, absent):
    kind = getattr(impl, "attn_type", "decoder")
    if kind != "decoder":
        raise NotJudged(f"attention of an {kind}")
    for name in absent:
        if getattr(metadata, name, None) is not None:
            raise NotJudged(f"{name} is given")
    if not isinstance(metadata.causal, bool):
        raise NotJudged("causal is a tensor")


def _batch(query, output, kv_cache, metadata, requests):
    """Rows, lengths and pages of the requests that are looked at: at most so many, spread over the batch."""
    begins, lengths, table = (_values(t) for t in (metadata.query_start_loc, metadata.seq_lens, metadata.block_table))
    count = len(begins) - 1
    chosen = range(count) if requests == 0 or requests >= count else sorted({i * (count - 1) // max(requests - 1, 1) for i in range(requests)})
    rows = np.concatenate([np.arange(begins[r], begins[r + 1]) for r in chosen])
    slots = kv_cache.shape[2]
    pages = [table[r, : -(-lengths[r] // slots)] for r in chosen]
    used, at = np.unique(np.concatenate(pages), return_inverse=True)
    new = np.full((len(pages), max(map(len, pages))), -1, np.int64)
    for i, ids in enumerate(pages):
        new[i, : len(ids)], at = at[: len(ids)], at[len(ids) :]
    heads, dim = query.shape[-2:]
    if len(used) and (used[0] < 0 or used[-1] >= kv_cache.shape[0]):
        raise NotJudged(f"block_table names page {used[-1] if used[0] >= 0 else used[0]} of {kv_cache.shape[0]}")
    return dict(
        q=query[rows.tolist()], out=output[rows.tolist()].reshape(-1, heads, dim), page_table=new, seq_lens=lengths[list(chosen)],
        qo_indptr=np.concatenate([[0], np.cumsum([begins[r + 1] - begins[r] for r in chosen])]),
    ), kv_cache[used.tolist()]  # fmt: skip


def _numbers(impl, metadata, left):
    sinks = getattr(impl, "sinks", None)
    return dict(
        sm_scale=float(impl.scale), causal=metadata.causal, window_left=left, window_right=-1 if metadata.causal else left,
        alibi_slopes=getattr(impl, "alibi_slopes", None), sinks=sinks, logits_soft_cap=float(getattr(impl, "logits_soft_cap", 0) or 0),
    )  # fmt: skip


def _fp8(impl):
    return {"fp8": "e4m3", "fp8_e4m3": "e4m3", "fp8_e5m2": "e5m2", "auto": None}.get(impl.kv_cache_dtype, impl.kv_cache_dtype)


def cpu(impl, layer, query, kv_cache, output, metadata, requests):
    """CPU_ATTN: [block, kv head, slot, 2 dim] holds K of [dim, slot], then V of [slot, dim], each in one piece."""
    _require_plain(impl, metadata, ["dynamic_causal", "encoder_cache"])
    if layer.isa not in ("vec", "vec16"):
        raise NotJudged(f"K is packed for isa {layer.isa}")
    batch, pages = _batch(query, output, kv_cache, metadata, requests)
    dtype = _fp8(impl)
    pages = Tensor("kv_cache", pages, dtype).numpy()
    blocks, heads, slots, twice = pages.shape
    halves = pages.reshape(blocks, heads, 2, slots * twice // 2)
    k = halves[:, :, 0].reshape(blocks, heads, twice // 2, slots).transpose(0, 3, 1, 2)
    v = halves[:, :, 1].reshape(blocks, heads, slots, twice // 2).transpose(0, 2, 1, 3)
    if dtype is not None:
        batch.update(kv_dtype=dtype, k_scale=[float(layer._k_scale_float)], v_scale=[float(layer._v_scale_float)])
    left = -1 if impl.sliding_window == -1 else impl.sliding_window - 1
    return dict(batch, kv_cache=(k, v), like="vllm_cpu", **_numbers(impl, metadata, left))


def side_by_side(impl, layer, query, kv_cache, output, metadata, requests):
    """assay_torch in the place of CPU_ATTN: [block, kv head, slot, 2 dim], K and V side by side in the last axis."""
    _require_plain(impl, metadata, ["dynamic_causal", "encoder_cache"])
    batch, pages = _batch(query, output, kv_cache, metadata, requests)
    dtype = _fp8(impl)
    pages = Tensor("kv_cache", pages, dtype).numpy().transpose(0, 2, 1, 3)
    dim = pages.shape[3] // 2
    if dtype is not None:
        batch.update(kv_dtype=dtype, k_scale=layer._k_scale.reshape(-1), v_scale=layer._v_scale.reshape(-1))
    left = -1 if impl.sliding_window == -1 else impl.sliding_window - 1
    return dict(batch, kv_cache=(pages[..., :dim], pages[..., dim:]), like="flash", **_numbers(impl, metadata, left))


def flash(impl, layer, query, kv_cache, output, metadata, requests):
    """FLASH_ATTN: [block, kv head, slot, 2 dim], K and V side by side in the last axis."""
    _require_plain(impl, metadata, ["mm_prefix_query_range_tensor", "rswa_prefix_lens", "dcp_context_kv_lens"])
    if getattr(metadata, "use_cascade", False):
        raise NotJudged("a cascade over a common prefix")
    dtype = _fp8(impl)
    if dtype is not None and getattr(impl, "supports_quant_query_input", False):
        raise NotJudged("q is quantised")
    batch, pages = _batch(query, output, kv_cache, metadata, requests)
    pages = Tensor("kv_cache", pages, dtype).numpy().transpose(0, 2, 1, 3)
    dim = pages.shape[3] // 2
    if dtype is not None:
        batch.update(kv_dtype=dtype, k_scale=layer._k_scale.reshape(-1), v_scale=layer._v_scale.reshape(-1))
    left, _ = impl.sliding_window or (-1, -1)
    return dict(batch, kv_cache=(pages[..., :dim], pages[..., dim:]), like="flash", **_numbers(impl, metadata, left))


#: By the names of vLLM's AttentionBackend.get_name(), or by what a layer's `assay_cache` says.
BACKENDS = {"CPU_ATTN": cpu, "FLASH_ATTN": flash, "side_by_side": side_by_side}
