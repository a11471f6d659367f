# SPDX-License-Identifier: Apache-2.0
"""Our decode under a program written for FlashInfer, through FlashInfer's own door, trace_apply (0.7.2): enable(...), before wrappers
are planned.

trace_apply calls a function in the place of BatchDecodeWithPagedKVCacheWrapper.run, with the keyword arguments of its template: q,
k_cache, v_cache, kv_indptr, kv_indices, sm_scale, return_lse. Of plan's last_page_len, window and softcap it hands over nothing, nor
the scales of run. So plan and run are watched from outside: lengths are of plan, and a call with more than the template says stays
with FlashInfer."""
import contextvars
import functools

import torch

from .functions import paged_attention

_wrapper = contextvars.ContextVar("wrapper that runs")
#: What plan and run may be given that changes nothing.
_PLAIN = dict(pos_encoding_mode="NONE", window_left=-1, logits_soft_cap=0.0, q_len_per_req=1, q_scale=1.0, k_scale=1.0, v_scale=1.0)
_IGNORED = {"q_data_type", "kv_data_type", "o_data_type", "data_type", "sm_scale", "non_blocking", "block_tables", "seq_lens", "out", "lse", "return_lse", "enable_pdl"}


def definition(num_qo_heads, num_kv_heads, head_dim, page_size):
    """FlashInfer's name of a shape."""
    return f"gqa_paged_decode_h{num_qo_heads}_kv{num_kv_heads}_d{head_dim}_ps{page_size}"


def enable(**shape):
    """Decode of this shape (num_qo_heads, num_kv_heads, head_dim, page_size) is ours. Returns a function that takes it back."""
    from flashinfer import trace_apply
    from flashinfer.decode import BatchDecodeWithPagedKVCacheWrapper as Wrapper

    before = Wrapper.plan, Wrapper.run
    trace_apply.enable_apply({definition(**shape): attend})
    Wrapper.plan, Wrapper.run = _watched_plan(Wrapper.plan), _watched_run(Wrapper.run, before[1])

    def disable():
        trace_apply.disable_apply()
        Wrapper.plan, Wrapper.run = before

    return disable


def _plain(given):
    """Whether no more than the template says is given. Tensors are more: they may lie on a GPU."""
    same = lambda name, value: not isinstance(value, torch.Tensor) and name in _PLAIN and value == _PLAIN[name]  # noqa: E731
    return all(name in _IGNORED or value is None or value is False or same(name, value) for name, value in given.items())


def _watched_plan(plan):
    @functools.wraps(plan)
    def watched(self, indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, *more, **named):
        result = plan(self, indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, *more, **named)
        self.assay_table = None if more or not _plain(named) else table_of(indptr, indices, last_page_len, page_size)
        return result

    return watched


def table_of(indptr, indices, last_page_len, page_size):
    """(page table [batch, columns], lengths) on the host; plan reads indptr there too."""
    indptr, indices, last = (x.cpu().to(torch.int32) for x in (indptr, indices, last_page_len))
    pages = indptr.diff()
    columns = torch.arange(max(int(pages.max()) if len(pages) else 0, 1), dtype=torch.int32)
    entries = (indptr[:-1, None] + columns).clamp(max=max(len(indices) - 1, 0))
    table = indices[entries] if len(indices) else torch.zeros_like(entries)
    return table, torch.where(pages > 0, (pages - 1) * page_size + last, 0).to(torch.int32)


def _watched_run(run, own):
    @functools.wraps(run)
    def watched(self, q, paged_kv_cache, *more, **named):
        ours = getattr(self, "assay_table", None) is not None and not more and _plain(named) and isinstance(paged_kv_cache, tuple)
        if not ours or getattr(self, "_kv_layout", "NHD") != "NHD" or getattr(self, "is_cuda_graph_enabled", False):
            return own(self, q, paged_kv_cache, *more, **named)
        token = _wrapper.set(self)
        try:
            return run(self, q, paged_kv_cache, **named)
        finally:
            _wrapper.reset(token)

    return watched


def attend(q, k_cache, v_cache, sm_scale=None, return_lse=False, **_):
    """What trace_apply calls; it copies to out and lse where run was given them. The table goes to the device of q once a plan."""
    wrapper = _wrapper.get()
    if wrapper.assay_table[0].device != q.device:
        wrapper.assay_table = tuple(x.to(q.device) for x in wrapper.assay_table)
    scale = None if sm_scale is None else float(sm_scale)
    return paged_attention(q, (k_cache, v_cache), *wrapper.assay_table, sm_scale=scale, return_lse=bool(return_lse), lse_base=2)
