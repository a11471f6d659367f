# SPDX-License-Identifier: Apache-2.0
"""Cascades and shared prefixes: assay through the C ABI, and the peers. Needs PyTorch."""
import functools

import torch

from assay_abi import DTYPES, TARGET_CUDA, CascadeLevel, CascadeParams
from peer_kernels.decode import assay_v2, decode_wrappers, fill_kv, flashinfer_decode, zeroed_workspace
from peer_kernels.inputs import CascadeData, gather, reference, spread_rows
from peer_kernels.timing import Kind, NotOffered
from peer_kernels.versions import taken


def cascade_params(data, s, out):
    """assay_cascade_params over page set s."""
    levels = (CascadeLevel * len(data.levels))()
    for to, level in zip(levels, data.levels):
        fill_kv(to.kv, data, level.tables[s], level.seq_lens)
        to.segment_indptr = level.starts.data_ptr()
    p = CascadeParams(target=TARGET_CUDA, dtype=DTYPES["bf16"], levels=levels, num_levels=len(levels))
    p.batch, p.num_qo_heads, p.num_kv_heads = data.batch, data.heads, data.kv_heads
    p.head_dim, p.sm_scale = data.head_dim, data.head_dim**-0.5
    p.q, p.out = data.q.data_ptr(), out.data_ptr()
    p.q_stride_batch = p.out_stride_batch = data.heads * data.head_dim
    p.q_stride_head = p.out_stride_head = data.head_dim
    p.stream = torch.cuda.current_stream().cuda_stream
    return p


def assay_cascade(library, data):
    out = torch.empty_like(data.q)
    size = library.cascade_attention_workspace_size(cascade_params(data, 0, out))
    workspace = torch.empty(max(size, 16), dtype=torch.uint8, device=data.device)

    def run(s):
        p = cascade_params(data, s, out)
        p.workspace, p.workspace_bytes = workspace.data_ptr(), size
        library.cascade_attention(p)
        return out

    return run


def host_pages(data, level):
    """indptr of a level's pages and the tokens of each last page, as FlashInfer's plans take them."""
    indptr = torch.arange(level.segments + 1, dtype=torch.int32) * level.pages
    return indptr, torch.full((level.segments,), data.page_size, dtype=torch.int32)


def cascade_wrapper(data, backend=None):
    """FlashInfer's wrapper for levels: a prefill a level, merged one after the other. It chooses the prefill kernels
    itself (FA3 on Hopper) and has no argument for them; `backend` overrides that in its prefill wrappers."""
    from flashinfer.cascade import MultiLevelCascadeAttentionWrapper

    levels, device = data.levels, data.device
    pages = [host_pages(data, level) for level in levels]
    wrappers = []
    for s in range(data.sets):
        wrapper = MultiLevelCascadeAttentionWrapper(
            len(levels),
            zeroed_workspace("FlashInfer", device),
            "NHD",
            use_cuda_graph=True,
            qo_indptr_buf_arr=[level.starts.clone() for level in levels],
            paged_kv_indptr_buf_arr=[indptr.to(device) for indptr, _ in pages],
            paged_kv_indices_buf_arr=[torch.empty_like(level.tables[s].flatten()) for level in levels],
            paged_kv_last_page_len_buf_arr=[last.to(device) for _, last in pages],
        )
        if backend:
            for prefill in wrapper._batch_prefill_wrappers:
                prefill._backend = backend
        wrapper.plan(
            [level.indptr for level in levels],
            [indptr for indptr, _ in pages],
            [level.tables[s].flatten() for level in levels],
            [last for _, last in pages],
            data.heads,
            data.kv_heads,
            data.head_dim,
            data.page_size,
            q_data_type=torch.bfloat16,
            kv_data_type=torch.bfloat16,
        )
        wrappers.append(wrapper)
    return lambda s: wrappers[s].run(data.q, (data.k, data.v))


def prefill_wrappers(data, level, backend, rows=1):
    """FlashInfer's paged prefill over one level, planned for every set. With `rows` = group size every kv head has
    one query head, and the heads of a group follow each other as tokens."""
    from flashinfer.prefill import BatchPrefillWithPagedKVCacheWrapper

    pages, last = host_pages(data, level)
    wrappers = []
    for s in range(data.sets):
        indices = level.tables[s].flatten()
        wrapper = BatchPrefillWithPagedKVCacheWrapper(
            zeroed_workspace("FlashInfer", data.device),
            "NHD",
            use_cuda_graph=True,
            qo_indptr_buf=level.starts * rows,
            paged_kv_indptr_buf=pages.to(data.device),
            paged_kv_indices_buf=torch.empty_like(indices),
            paged_kv_last_page_len_buf=last.to(data.device),
            backend=backend,
        )
        wrapper.plan(
            level.indptr * rows,
            pages,
            indices,
            last,
            data.heads // rows,
            data.kv_heads,
            data.head_dim,
            data.page_size,
            causal=False,
            q_data_type=torch.bfloat16,
            kv_data_type=torch.bfloat16,
            **taken(wrapper.plan, uniform_q_len=level.requests * rows),
        )
        wrappers.append(wrapper)
    return wrappers


def composed(data, backend):
    """FlashInfer's kernels put together by hand: prefill over every shared level, decode by tensor cores over the
    private one, each with its LSE, then merges in place."""
    from flashinfer.cascade import merge_state_in_place

    *shared, private = data.levels
    if private.segments != data.batch:
        raise NotOffered("the last level is not private to each request")
    prefills = [prefill_wrappers(data, level, backend) for level in shared]
    last = [data.page_size] * data.batch
    decodes = decode_wrappers(data, [private.pages] * data.batch, last, private.tables.flatten(1), True)
    states = [
        (torch.empty_like(data.q), torch.empty(data.q.shape[:2], dtype=torch.float32, device=data.device))
        for _ in data.levels
    ]

    def run(s):
        (o, lse), *others = states
        decodes[s].run(data.q, (data.k, data.v), out=o, lse=lse, return_lse=True)
        for wrappers, (o_level, lse_level) in zip(prefills, others):
            wrappers[s].run(data.q, (data.k, data.v), out=o_level, lse=lse_level, return_lse=True)
            merge_state_in_place(o, lse, o_level, lse_level)
        return o

    return run


def as_rows(data):
    """q as [batch * group, num_kv_heads, head_dim]: the query rows of each kv head, as tokens; and the way back."""
    group = data.heads // data.kv_heads

    def arrange(output):
        rows = output.view(data.batch, group, data.kv_heads, data.head_dim)
        return rows.transpose(1, 2).flatten(1, 2)

    q = data.q.view(data.batch, data.kv_heads, group, data.head_dim).transpose(1, 2)
    return q.reshape(-1, data.kv_heads, data.head_dim).contiguous(), arrange


def flashinfer_prefill(data, backend, rows=False):
    """Paged prefill over the prefix; with `rows` of the query rows of each kv head."""
    wrappers = prefill_wrappers(data, data.levels[0], backend, data.heads // data.kv_heads if rows else 1)
    q, arrange = as_rows(data) if rows else (data.q, lambda output: output)
    out = torch.empty_like(q)
    return lambda s: wrappers[s].run(q, (data.k, data.v), out=out), arrange


def contiguous(data):
    """Keys and values of the prefix out of their pages: [tokens, num_kv_heads, head_dim] of every set."""
    tables = data.levels[0].tables
    return [[gather(pool, tables[s, 0]).flatten(0, 1) for s in range(data.sets)] for pool in (data.k, data.v)]


def flashinfer_single(data, backend, rows=False):
    """Prefill of one request without pages, over a copy of the prefix."""
    from flashinfer.prefill import single_prefill_with_kv_cache

    q, arrange = as_rows(data) if rows else (data.q, lambda output: output)
    keys, values = contiguous(data)
    return lambda s: single_prefill_with_kv_cache(q, keys[s], values[s], backend=backend), arrange


def sdpa(data, backend):
    """PyTorch's attention of the rows of each kv head over a copy of the prefix [1, num_kv_heads, tokens, head_dim]."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, arrange = as_rows(data)
    q = q.transpose(0, 1).contiguous()[None]
    keys, values = ([x.transpose(0, 1).contiguous()[None] for x in each] for each in contiguous(data))
    attention = torch.nn.functional.scaled_dot_product_attention

    def run(s):
        with sdpa_kernel(getattr(SDPBackend, backend)):
            return attention(q, keys[s], values[s])

    return run, lambda output: arrange(output[0].transpose(0, 1).contiguous())


def cascade_reference(data):
    return reference(data, spread_rows(data.batch))


KINDS = {
    "cascade": Kind(
        CascadeData,
        cascade_reference,
        {"cascade_attention": assay_cascade},
        {
            "FlashInfer cascade": cascade_wrapper,
            "FlashInfer cascade FA2": functools.partial(cascade_wrapper, backend="fa2"),
            "FlashInfer composed FA2": functools.partial(composed, backend="fa2"),
            "FlashInfer composed FA3": functools.partial(composed, backend="fa3"),
            "FlashInfer flat": functools.partial(flashinfer_decode, use_tensor_cores=True),
        },
        {"paged_attention_v2 flat": assay_v2},
    ),
    "prefix": Kind(
        CascadeData,
        cascade_reference,
        {"cascade_attention": assay_cascade},
        {
            "FlashInfer prefill FA2": functools.partial(flashinfer_prefill, backend="fa2"),
            "FlashInfer prefill FA3": functools.partial(flashinfer_prefill, backend="fa3"),
            "FlashInfer prefill FA3 rows": functools.partial(flashinfer_prefill, backend="fa3", rows=True),
            "FlashInfer single FA2": functools.partial(flashinfer_single, backend="fa2"),
            "FlashInfer single FA3 rows": functools.partial(flashinfer_single, backend="fa3", rows=True),
            "SDPA cuDNN": functools.partial(sdpa, backend="CUDNN_ATTENTION"),
            "SDPA FlashAttention": functools.partial(sdpa, backend="FLASH_ATTENTION"),
        },
    ),
}
