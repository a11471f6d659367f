# SPDX-License-Identifier: Apache-2.0
"""An operator gives the bits of the C call on the same memory. The C call is made here by the bench's binding."""
import os

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
import assay_abi
import assay_torch
from batches import batch, by_plan, expected, same_bits

DTYPES = {torch.float16: 0, torch.bfloat16: 1, torch.float32: 2, torch.float8_e4m3fn: 3, torch.float8_e5m2: 4}


class Calls:
    """The C ABI of a device's library."""

    def __init__(self, device):
        self.device, self.target = device, device.type == "cuda"
        path = os.environ["ASSAY_LIBRARY_CUDA" if self.target else "ASSAY_LIBRARY_SIMT"]
        self.library, self.kept = assay_abi.Assay(path), []

    def bytes(self, n):
        self.kept.append(torch.empty(max(n, 16), dtype=torch.uint8, device=self.device))
        return self.kept[-1].data_ptr()

    def stream(self):
        return torch.cuda.current_stream().cuda_stream if self.target else None

    def paged(self, name, b, out, lse, base=0, planned=False):
        p, o = assay_abi.PagedParams(), b.options
        q = b.q if b.q.dim() == 4 or "qo_indptr" in o else b.q[:, None]
        p.target, p.dtype, p.kv_dtype, p.lse_base = self.target, DTYPES[q.dtype], DTYPES[b.k.dtype], base
        p.batch, p.num_qo_heads, p.num_kv_heads, p.head_dim = len(b.seq_lens), q.shape[-2], b.k.shape[2], q.shape[-1]
        p.q_len = o.get("max_q_len", q.shape[1])
        p.sm_scale, p.logits_soft_cap, p.window_left = o.get("sm_scale", q.shape[-1] ** -0.5), o.get("logits_soft_cap", 0.0), o.get("window_left", -1)
        p.num_splits = o.get("num_splits", 0)
        axes = ("token", "head") if q.dim() == 3 else ("batch", "token", "head")
        for field, tensor in (("q", q), ("out", out.view(q.shape)), ("lse", lse.view(q.shape[:-1]))):
            setattr(p, field, tensor.data_ptr())
            for axis, stride in zip(axes, tensor.stride()):
                setattr(p, f"{field}_stride_{axis}", stride)
        p.kv.k, p.kv.v = b.k.data_ptr(), b.v.data_ptr()
        for half, tensor in (("k", b.k), ("v", b.v)):
            for axis, stride in zip(("page", "token", "head"), tensor.stride()):
                setattr(p.kv, f"{half}_stride_{axis}", stride)
        p.kv.page_table, p.kv.seq_lens, p.kv.page_table_stride = b.page_table.data_ptr(), b.seq_lens.data_ptr(), b.page_table.stride(0)
        p.kv.rows, p.kv.max_pages, p.kv.page_size = len(b.seq_lens), b.page_table.shape[1], b.k.shape[1]
        for field in ("k_scale", "v_scale", "alibi_slopes", "sinks", "qo_indptr"):
            if field in o:
                setattr(p, field, o[field].data_ptr())
        p.k_scale_stride, p.v_scale_stride = (int(o[s].numel() > 1) if s in o else 0 for s in ("k_scale", "v_scale"))
        p.stream = self.stream()
        self.with_scratch(name, p, planned)

    def with_scratch(self, name, p, planned):
        if name != "paged_attention_v1":
            p.workspace_bytes = self.library._size(name + "_workspace_size", p)
            p.workspace = self.bytes(p.workspace_bytes)
        if planned:
            p.plan_bytes = self.library._size(name + "_plan_size", p)
            p.plan = self.bytes(p.plan_bytes)
            self.library._call(name + "_plan", p)
        self.library._call(name, p)


CASES = {
    "plain": dict(),
    "one_head_128": dict(heads=(1, 1), head_dim=128, lens=(1, 300)),
    "group_5_256": dict(heads=(5, 1), head_dim=256, page_size=7, dtype=torch.float16),
    "tokens": dict(q_len=3, window_left=8, logits_soft_cap=20.0),
    "ragged": dict(qo_indptr=torch.tensor([0, 1, 4, 4, 6], dtype=torch.int32), max_q_len=3),
    "features": dict(alibi_slopes=torch.linspace(0.1, 0.8, 8), sinks=torch.linspace(-1, 1, 8), sm_scale=0.3),
    "e4m3": dict(kv_dtype=torch.float8_e4m3fn, k_scale=torch.tensor([0.5, 2.0]), v_scale=torch.tensor(1.5)),
    "e5m2": dict(kv_dtype=torch.float8_e5m2, dtype=torch.float16, v_scale=torch.tensor([0.25, 4.0])),
    "splits": dict(num_splits=3),
    "no_keys": dict(lens=(0, 0)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kernel", ["paged_attention_v1", "paged_attention_v2", "tree_attention"])
def test_paged(device, kernel, name):
    b = batch(device, **CASES[name])
    if "qo_indptr" in b.options:
        b.q = b.q[:, None].expand(-1, 3, -1, -1).reshape(-1, *b.q.shape[1:])[:6].contiguous()
    function = assay_torch.tree_attention if kernel == "tree_attention" else assay_torch.paged_attention
    version = {} if kernel == "tree_attention" else {"version": int(kernel[-1])}
    out, lse = torch.full_like(b.q, 7), torch.full(b.q.shape[:-1], 7.0, device=device)
    Calls(device).paged(kernel, b, out, lse)
    got, got_lse = b.call(function, return_lse=True, **version)
    assert same_bits(got, out) and same_bits(got_lse, lse)
    if kernel == "paged_attention_v1":
        return
    planned, planned_lse = torch.full_like(b.q, 7), torch.full_like(lse, 7)
    Calls(device).paged(kernel, b, planned, planned_lse, base=1, planned=True)
    got, got_lse = b.call(by_plan, tree=kernel == "tree_attention", lse_base=2, return_lse=True)
    assert same_bits(got, planned) and same_bits(got_lse, planned_lse)


@pytest.mark.parametrize("kernel", ["v1", "v2", "tree"])
def test_it_is_attention(device, kernel):
    b = batch(device)
    function = assay_torch.tree_attention if kernel == "tree" else assay_torch.paged_attention
    out, lse = b.call(function, return_lse=True, **({} if kernel == "tree" else {"version": int(kernel[1])}))
    want, want_lse = expected(b)
    torch.testing.assert_close(out.cpu().double(), want, atol=2**-7, rtol=2**-7)
    torch.testing.assert_close(lse.cpu().double(), want_lse, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("lse_base", [0, 1])
def test_cascade(device, lse_base):
    calls, b, prefix = Calls(device), batch(device, lens=(40, 33, 7, 64)), batch(device, lens=(100, 29), seed=1)
    levels = [(prefix, torch.tensor([0, 3, 4], dtype=torch.int32)), (b, torch.arange(5, dtype=torch.int32))]
    levels = [(x, indptr.to(device)) for x, indptr in levels]
    p, out, lse = assay_abi.CascadeParams(), torch.empty_like(b.q), torch.empty(b.q.shape[:-1], device=device)
    p.target, p.dtype, p.lse_base, p.batch, p.num_qo_heads, p.num_kv_heads, p.head_dim = calls.target, 1, lse_base, 4, 8, 2, 64
    p.sm_scale, p.num_levels, p.q, p.out, p.lse = 0.125, 2, b.q.data_ptr(), out.data_ptr(), lse.data_ptr()
    p.q_stride_batch, p.q_stride_head = p.out_stride_batch, p.out_stride_head = b.q.stride()[:2]
    p.lse_stride_batch, p.lse_stride_head = lse.stride()
    array = (assay_abi.CascadeLevel * 2)()
    for level, (x, indptr) in zip(array, levels):
        level.segment_indptr, kv = indptr.data_ptr(), level.kv
        kv.k, kv.v, kv.page_table, kv.seq_lens = (t.data_ptr() for t in (x.k, x.v, x.page_table, x.seq_lens))
        kv.k_stride_page, kv.k_stride_token, kv.k_stride_head = kv.v_stride_page, kv.v_stride_token, kv.v_stride_head = x.k.stride()[:3]
        kv.page_table_stride, kv.rows, kv.max_pages, kv.page_size = x.page_table.stride(0), *x.page_table.shape, 16
    p.levels, p.stream = array, calls.stream()
    calls.with_scratch("cascade_attention", p, False)
    given = [((x.k, x.v), x.page_table, x.seq_lens, indptr) for x, indptr in levels]
    got, got_lse = assay_torch.cascade_attention(b.q, given, return_lse=True, lse_base=("e", 2)[lse_base])
    assert same_bits(got, out) and same_bits(got_lse, lse)


def states(device, *shape, dtype=torch.bfloat16):
    g = torch.Generator().manual_seed(3)
    lse = torch.randn(shape[:-1], generator=g)
    lse[..., 0][0] = -torch.inf
    return torch.randn(shape, generator=g).to(dtype).to(device), lse.to(device)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_merges(device, dtype):
    calls, (o, s) = Calls(device), states(device, 6, 3, 40, dtype=dtype)
    p, out, lse = assay_abi.MergeStatesParams(), torch.empty_like(o[:2]), torch.empty_like(s[:2])
    p.target, p.dtype, p.lse_base, p.num_rows, p.num_states, p.num_heads, p.head_dim = calls.target, DTYPES[dtype], 1, 2, 3, 3, 40
    p.o_in, p.lse_in, p.out, p.lse, p.stream = o.data_ptr(), s.data_ptr(), out.data_ptr(), lse.data_ptr(), calls.stream()
    p.o_in_stride_state, p.o_in_stride_head = p.out_stride_row, p.out_stride_head = 120, 40
    p.lse_in_stride_state, p.lse_in_stride_head = p.lse_stride_row, p.lse_stride_head = 3, 1
    calls.library.merge_states(p)
    got, got_lse = assay_torch.merge_states(o.view(2, 3, 3, 40), s.view(2, 3, 3), lse_base=2)
    assert same_bits(got, out) and same_bits(got_lse, lse)
    indptr = torch.tensor([0, 3, 6], dtype=torch.int32, device=device)
    got, got_lse = assay_torch.merge_states(o, s, indptr=indptr, lse_base=2, max_states=3)
    assert same_bits(got, out) and same_bits(got_lse, lse)

    p = assay_abi.MergeStateParams()
    p.target, p.dtype, p.lse_base, p.num_rows, p.num_heads, p.head_dim = calls.target, DTYPES[dtype], 0, 2, 3, 40
    p.o_a, p.lse_a, p.o_b, p.lse_b = o.data_ptr(), s.data_ptr(), o[2:].data_ptr(), s[2:].data_ptr()
    p.out, p.lse, p.stream = out.data_ptr(), lse.data_ptr(), calls.stream()
    for part in ("o_a", "o_b", "out"):
        setattr(p, part + "_stride_row", 120), setattr(p, part + "_stride_head", 40)
    for part in ("lse_a", "lse_b", "lse"):
        setattr(p, part + "_stride_row", 3), setattr(p, part + "_stride_head", 1)
    calls.library.merge_state(p)
    got, got_lse = assay_torch.merge_state(o[:2], s[:2], o[2:4], s[2:4])
    assert same_bits(got, out) and same_bits(got_lse, lse)
    assay_torch.merge_state(o[:2], s[:2], o[2:4], s[2:4], out=o[:2], lse=s[:2])
    assert same_bits(o[:2], out) and same_bits(s[:2], lse)
