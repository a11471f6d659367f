# SPDX-License-Identifier: Apache-2.0
"""The kernels that peers.py times: assay through the C ABI, and the peers. Needs PyTorch.

Each prepare(data) returns run(set) -> output [batch, heads, head_dim], which can be captured, or
raises: what a peer says when it refuses a cell is its reason in the results.
"""
import functools

import torch

from assay_abi import DTYPES, TARGET_CUDA, PagedParams, PlanParams
from peers_cuda import gather

WORKSPACE_BYTES = 512 << 20


class NotOffered(Exception):
    """The peer has no such call; the message says why."""


def paged_params(data, s, out, early_start=0):
    """assay_paged_params over page set s."""
    p = PagedParams(target=TARGET_CUDA, dtype=DTYPES["bf16"], kv_dtype=DTYPES[data.cell["kv_dtype"]])
    p.batch, p.q_len, p.head_dim = data.batch, 1, data.head_dim
    p.num_qo_heads, p.num_kv_heads = data.heads, data.kv_heads
    p.sm_scale = data.head_dim**-0.5
    p.q, p.o = data.q.data_ptr(), out.data_ptr()
    p.q_stride_batch = p.o_stride_batch = data.heads * data.head_dim
    p.q_stride_head = p.o_stride_head = data.head_dim
    p.kv.k, p.kv.v = data.k.data_ptr(), data.v.data_ptr()
    p.kv.k_stride_page, p.kv.k_stride_token, p.kv.k_stride_head, _ = data.k.stride()
    p.kv.v_stride_page, p.kv.v_stride_token, p.kv.v_stride_head, _ = data.v.stride()
    p.kv.page_table, p.kv.seq_lens = data.tables[s].data_ptr(), data.seq_lens.data_ptr()
    p.kv.page_table_stride = p.kv.max_pages = data.max_pages
    p.kv.rows, p.kv.page_size = data.batch, data.page_size
    p.early_start = early_start
    p.stream = torch.cuda.current_stream().cuda_stream
    return p


def assay_v1(library, data, early_start=0):
    out = torch.empty_like(data.q)
    even_lengths = library.paged_attention_choose(paged_params(data, 0, out), data.lens).even_lengths

    def run(s):
        p = paged_params(data, s, out, early_start)
        p.even_lengths = even_lengths
        library.paged_attention_v1(p)
        return out

    return run


def assay_v2(library, data, early_start=0):
    out = torch.empty_like(data.q)
    first = paged_params(data, 0, out)
    size = library.paged_attention_v2_workspace_size(first)
    workspace = torch.zeros(max(size, 16), dtype=torch.uint8, device=data.device)
    plan_params = PlanParams(seq_lens=first.kv.seq_lens, max_seq_len=max(data.lens), stream=first.stream)
    for field in ("target", "dtype", "kv_dtype", "batch", "q_len", "num_qo_heads", "num_kv_heads", "head_dim"):
        setattr(plan_params, field, getattr(first, field))
    plan = torch.empty(library.plan_size(plan_params), dtype=torch.uint8, device=data.device)
    plan_params.plan, plan_params.plan_bytes = plan.data_ptr(), plan.numel()
    library.plan(plan_params)

    def run(s):
        p = paged_params(data, s, out, early_start)
        p.workspace, p.workspace_bytes = workspace.data_ptr(), size
        p.plan, p.plan_bytes = plan.data_ptr(), plan.numel()
        library.paged_attention_v2(p)
        return out

    return run


@functools.cache
def zeroed_workspace(user, device):
    """FlashInfer and XQA each want a buffer that was zero when they first used it."""
    return torch.zeros(WORKSPACE_BYTES, dtype=torch.uint8, device=device)


def flashinfer_decode(data, use_tensor_cores):
    from flashinfer.decode import BatchDecodeWithPagedKVCacheWrapper

    pages = torch.tensor(data.pages, dtype=torch.int32)
    indptr = torch.cat([torch.zeros(1, dtype=torch.int32), pages.cumsum(0, dtype=torch.int32)])
    last = torch.tensor([(n - 1) % data.page_size + 1 if n else 0 for n in data.lens], dtype=torch.int32)
    out = torch.empty_like(data.q)
    wrappers = []
    for s in range(data.sets):
        wrapper = BatchDecodeWithPagedKVCacheWrapper(
            zeroed_workspace("FlashInfer", data.device),
            "NHD",
            use_cuda_graph=True,
            use_tensor_cores=use_tensor_cores,
            paged_kv_indptr_buffer=indptr.to(data.device),
            paged_kv_indices_buffer=torch.empty_like(data.indices[s]),
            paged_kv_last_page_len_buffer=last.to(data.device),
        )
        wrapper.plan(
            indptr,
            data.indices[s],
            last,
            data.heads,
            data.kv_heads,
            data.head_dim,
            data.page_size,
            q_data_type=torch.bfloat16,
            kv_data_type=data.dtype,
        )
        wrappers.append(wrapper)
    return lambda s: wrappers[s].run(data.q, (data.k, data.v), out=out)


def xqa(data):
    from flashinfer.decode import xqa_batch_decode_with_kv_cache

    if data.cell["kv_dtype"] == "e5m2":
        raise NotOffered("kv_dtype e5m2: XQA has e4m3 alone")
    if min(data.lens) == 0:
        raise NotOffered("requests without keys: not in XQA's documented range")
    out = torch.empty_like(data.q)
    seq_lens = data.seq_lens.view(torch.uint32)

    def run(s):
        return xqa_batch_decode_with_kv_cache(
            data.q,
            (data.k, data.v),
            zeroed_workspace("XQA", data.device),
            data.tables[s],
            seq_lens,
            max(data.lens),
            bmm1_scale=data.head_dim**-0.5,
            bmm2_scale=1.0,
            out=out,
            kv_layout="NHD",
        )

    return run


def sdpa_contiguous(data):
    """The same keys copied out of the pages: [batch, kv_heads, tokens, head_dim] per set."""
    if not data.uniform():
        raise NotOffered("lengths differ: SDPA takes one length")
    if data.lens[0] % data.page_size != 0:
        raise NotOffered("the length is no multiple of the page size: the copy takes whole pages")

    def contiguous(pool, s):
        tokens = gather(pool, data.tables[s]).flatten(1, 2)
        return tokens.transpose(1, 2).contiguous()

    keys = [contiguous(data.k, s) for s in range(data.sets)]
    values = [contiguous(data.v, s) for s in range(data.sets)]
    q = data.q[:, :, None]
    attention = torch.nn.functional.scaled_dot_product_attention
    return lambda s: attention(q, keys[s], values[s], enable_gqa=True)[:, :, 0]


OURS = {
    "paged_attention_v1": assay_v1,
    "paged_attention_v2": assay_v2,
    "paged_attention_v1 early": functools.partial(assay_v1, early_start=1),
    "paged_attention_v2 early": functools.partial(assay_v2, early_start=1),
}
PEERS = {
    "FlashInfer CUDA cores": functools.partial(flashinfer_decode, use_tensor_cores=False),
    "FlashInfer tensor cores": functools.partial(flashinfer_decode, use_tensor_cores=True),
    "XQA": xqa,
    "SDPA contiguous": sdpa_contiguous,
}
