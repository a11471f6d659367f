# SPDX-License-Identifier: Apache-2.0
"""Decode: assay through the C ABI, and the peers. Needs PyTorch."""
import functools
import importlib.util

import torch

from assay_abi import DTYPES, TARGET_CUDA, PagedParams
from peer_kernels.inputs import CellData, gather, reference
from peer_kernels.timing import Kind, NotOffered

WORKSPACE_BYTES = 512 << 20


def fill_kv(kv, data, tables, seq_lens):
    """assay_paged_kv over `tables` [rows, pages] of the cell's pools."""
    kv.k, kv.v = data.k.data_ptr(), data.v.data_ptr()
    kv.k_stride_page, kv.k_stride_token, kv.k_stride_head, _ = data.k.stride()
    kv.v_stride_page, kv.v_stride_token, kv.v_stride_head, _ = data.v.stride()
    kv.page_table, kv.seq_lens = tables.data_ptr(), seq_lens.data_ptr()
    kv.rows, kv.max_pages = tables.shape
    kv.page_table_stride, kv.page_size = kv.max_pages, data.page_size


def paged_params(data, s, out, enable_pdl=0):
    """assay_paged_params over page set s."""
    p = PagedParams(window_left=-1, target=TARGET_CUDA, dtype=DTYPES["bf16"], kv_dtype=DTYPES[data.cell["kv_dtype"]])
    p.batch, p.q_len, p.head_dim = data.batch, 1, data.head_dim
    p.num_qo_heads, p.num_kv_heads = data.heads, data.kv_heads
    p.sm_scale = data.head_dim**-0.5
    p.q, p.out = data.q.data_ptr(), out.data_ptr()
    p.q_stride_batch = p.out_stride_batch = data.heads * data.head_dim
    p.q_stride_head = p.out_stride_head = data.head_dim
    fill_kv(p.kv, data, data.tables[s], data.seq_lens)
    p.enable_pdl = enable_pdl
    p.stream = torch.cuda.current_stream().cuda_stream
    return p


def assay_v1(library, data, enable_pdl=0):
    out = torch.empty_like(data.q)
    even_lengths = library.paged_attention_choose(paged_params(data, 0, out), data.lens).even_lengths

    def run(s):
        p = paged_params(data, s, out, enable_pdl)
        p.even_lengths = even_lengths
        library.paged_attention_v1(p)
        return out

    return run


def assay_v2(library, data, enable_pdl=0):
    out = torch.empty_like(data.q)
    first = paged_params(data, 0, out)
    size = library.paged_attention_v2_workspace_size(first)
    workspace = torch.zeros(max(size, 16), dtype=torch.uint8, device=data.device)
    plan = torch.empty(library.paged_attention_v2_plan_size(first), dtype=torch.uint8, device=data.device)
    first.plan, first.plan_bytes = plan.data_ptr(), plan.numel()
    library.paged_attention_v2_plan(first)

    def run(s):
        p = paged_params(data, s, out, enable_pdl)
        p.workspace, p.workspace_bytes = workspace.data_ptr(), size
        p.plan, p.plan_bytes = plan.data_ptr(), plan.numel()
        library.paged_attention_v2(p)
        return out

    return run


def by_torch(library, data, version):
    """The same kernel as an operator of PyTorch, of the library that ASSAY_LIBRARY_CUDA names."""
    import assay_torch

    out, caches = torch.empty_like(data.q), (data.k, data.v)
    if version == 1:
        even_lengths = bool(library.paged_attention_choose(paged_params(data, 0, out), data.lens).even_lengths)
        options = dict(version=1, even_lengths=even_lengths)
        return lambda s: assay_torch.paged_attention(data.q, caches, data.tables[s], data.seq_lens, out=out, **options)
    sizes = dict(num_qo_heads=data.heads, num_kv_heads=data.kv_heads, head_dim=data.head_dim, page_size=data.page_size)
    plan = functools.partial(assay_torch.plan, seq_lens=data.seq_lens, dtype=data.q.dtype, kv_dtype=data.dtype, **sizes)
    memory = plan(data.tables[0]).memory  # Lengths are the same of all tables: so is the plan.
    plans = [plan(table, memory=memory) for table in data.tables]
    return lambda s: plans[s].run(data.q, caches, out=out)


def operators():
    """Columns of our operators, where kernels/torch is on PYTHONPATH."""
    if importlib.util.find_spec("assay_torch") is None:
        return {}
    return {f"paged_attention_v{version} by torch": functools.partial(by_torch, version=version) for version in (1, 2)}


@functools.cache
def zeroed_workspace(user, device):
    """FlashInfer and XQA each want a buffer that was zero when they first used it."""
    return torch.zeros(WORKSPACE_BYTES, dtype=torch.uint8, device=device)


def decode_wrappers(data, pages, last, indices, use_tensor_cores):
    """FlashInfer's decode planned for every set: pages of each request, tokens in its last, page ids [sets, pages]."""
    from flashinfer.decode import BatchDecodeWithPagedKVCacheWrapper

    last = torch.tensor(last, dtype=torch.int32)
    counts = torch.tensor(pages, dtype=torch.int32)
    indptr = torch.cat([torch.zeros(1, dtype=torch.int32), counts.cumsum(0, dtype=torch.int32)])
    wrappers = []
    for s in range(data.sets):
        wrapper = BatchDecodeWithPagedKVCacheWrapper(
            zeroed_workspace("FlashInfer", data.device),
            "NHD",
            use_cuda_graph=True,
            use_tensor_cores=use_tensor_cores,
            paged_kv_indptr_buffer=indptr.to(data.device),
            paged_kv_indices_buffer=torch.empty_like(indices[s]),
            paged_kv_last_page_len_buffer=last.to(data.device),
        )
        wrapper.plan(
            indptr,
            indices[s],
            last,
            data.heads,
            data.kv_heads,
            data.head_dim,
            data.page_size,
            q_data_type=torch.bfloat16,
            kv_data_type=data.dtype,
        )
        wrappers.append(wrapper)
    return wrappers


def flashinfer_decode(data, use_tensor_cores):
    out = torch.empty_like(data.q)
    last = [(n - 1) % data.page_size + 1 if n else 0 for n in data.lens]
    wrappers = decode_wrappers(data, data.pages, last, data.indices, use_tensor_cores)
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


KINDS = {
    "decode": Kind(
        CellData,
        reference,
        {
            "paged_attention_v1": assay_v1,
            "paged_attention_v2": assay_v2,
            "paged_attention_v1 early": functools.partial(assay_v1, enable_pdl=1),
            "paged_attention_v2 early": functools.partial(assay_v2, enable_pdl=1),
            **operators(),
        },
        {
            "FlashInfer CUDA cores": functools.partial(flashinfer_decode, use_tensor_cores=False),
            "FlashInfer tensor cores": functools.partial(flashinfer_decode, use_tensor_cores=True),
            "XQA": xqa,
            "SDPA contiguous": sdpa_contiguous,
        },
    )
}
