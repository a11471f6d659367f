# SPDX-License-Identifier: Apache-2.0
"""Batches for tests: tensors of a call, and what a plain loop in fp64 makes of them."""
import dataclasses

import assay_torch
import torch
from assay_torch.caches import fp8_of, pool_of

#: What Plan.run is given; all else is given to the plan.
LAYER = ("out", "lse", "return_lse", "k_scale", "v_scale", "sinks")


@dataclasses.dataclass
class Batch:
    """A call of paged attention by its arguments. Page tables hold garbage behind each request's pages."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    page_table: torch.Tensor
    seq_lens: torch.Tensor
    options: dict

    @property
    def sizes(self):
        """For plan_bytes() and choose()."""
        o = self.options
        q_len = o.get("max_q_len", self.q.shape[1] if self.q.dim() == 4 else 1)
        return dict(
            num_qo_heads=self.q.shape[-2], num_kv_heads=self.k.shape[2], head_dim=self.q.shape[-1], page_size=self.k.shape[1],
            dtype=self.q.dtype, kv_dtype=self.k.dtype, max_q_len=q_len, ragged="qo_indptr" in o, window_left=o.get("window_left", -1),
            logits_soft_cap=o.get("logits_soft_cap", 0.0), alibi_slopes="alibi_slopes" in o, sinks="sinks" in o,
            page_indptr="page_indptr" in o, list_per_head="page_indptr" in o and self.page_table.dim() == 2,
        )  # fmt: skip

    @property
    def bounds(self):
        """(batch, max_pages)"""
        return len(self.seq_lens), self.options.get("max_pages", self.page_table.shape[-1])

    def plan(self, page_table=None, seq_lens=None, **more):
        """A plan of such calls, for tables and lengths of others if given."""
        given = {**self.sizes, **{name: x for name, x in self.options.items() if name not in LAYER}, **more}
        tables = (x if y is None else y for x, y in ((self.page_table, page_table), (self.seq_lens, seq_lens)))
        return assay_torch.plan(*tables, **{name: x for name, x in given.items() if x is not False and name not in ("ragged", "list_per_head")})

    def call(self, function, **more):
        return function(self.q, (self.k, self.v), self.page_table, self.seq_lens, **{**self.options, **more})


def batch(
    device, lens=(5, 128, 0, 77), q_len=None, heads=(8, 2), head_dim=64, page_size=16, dtype=torch.bfloat16, kv_dtype=None, seed=0,
    **options,
):  # fmt: skip
    g = torch.Generator().manual_seed(seed)
    pages_of = [-(-n // page_size) for n in lens]
    pages = sum(pages_of) + 3
    shape = (len(lens), heads[0], head_dim) if q_len is None else (len(lens), q_len, heads[0], head_dim)
    q = torch.randn(shape, generator=g).to(dtype)
    k, v = (torch.randn(pages, page_size, heads[1], head_dim, generator=g).to(kv_dtype or dtype) for _ in "kv")
    order = torch.randperm(pages, generator=g).tolist()
    table = torch.full((len(lens), max(pages_of) + 2), 2**31 - 1, dtype=torch.int32)
    for r, n in enumerate(pages_of):
        table[r, :n] = torch.tensor([order.pop() for _ in range(n)], dtype=torch.int32)
    for page in order:  # which no request has
        k.view(torch.uint8)[page], v.view(torch.uint8)[page] = 0x7F, 0x7F
    moved = {name: x.to(device) if isinstance(x, torch.Tensor) else x for name, x in options.items()}
    on = [x.to(device) for x in (q, k, v, table, torch.tensor(lens, dtype=torch.int32))]
    return Batch(*on, moved)


def moved(pool):
    """The same keys or values where kv head h has page p at (p + h) % pages."""
    return torch.stack([x.roll(h, 0) for h, x in enumerate(pool.view(torch.uint8).unbind(2))], 2).view(pool.dtype)


def lists_of(page_table, seq_lens, k, first=2, gap=1, per_head=False):
    """(lists, page_indptr) of a page table. The first list begins at entry `first`; in front of it and between lists are pages that
    there are not. per_head: lists [num_kv_heads, entries] for moved() pools."""
    nowhere = page_table.new_full((max(first, gap),), 2**31 - 1)
    rows = [torch.cat([row[: -(-n // k.shape[1])], nowhere[:gap]]) for row, n in zip(page_table, seq_lens.tolist())]
    indptr = torch.tensor([first, *map(len, rows)], dtype=torch.int32, device=page_table.device).cumsum(0, dtype=torch.int32)
    lists = torch.cat([nowhere[:first], *rows])
    if per_head:
        lists = torch.stack([torch.where(lists < len(k), (lists + h) % len(k), lists) for h in range(k.shape[2])])
    return lists, indptr


def listed(b, first=2, gap=1, per_head=False):
    """The same call with page lists in the place of its table, and the same bound."""
    lists, indptr = lists_of(b.page_table, b.seq_lens, b.k, first, gap, per_head)
    k, v = (moved(b.k), moved(b.v)) if per_head else (b.k, b.v)
    return Batch(b.q, k, v, lists, b.seq_lens, {**b.options, "page_indptr": indptr, "max_pages": b.page_table.shape[1]})


def by_plan(q, kv_cache, page_table, seq_lens, *, tree=False, kv_layout="NHD", kv_dtype=None, **options):
    """paged_attention, or tree_attention, by a plan of its own."""
    given = {name: x for name, x in options.items() if x is not None}
    b = Batch(q, *pool_of(kv_cache, kv_layout, fp8_of(kv_dtype), q.shape[-1]), page_table, seq_lens, given)
    return b.plan(tree=tree, kv_layout=kv_layout).run(q, kv_cache, **{name: x for name, x in given.items() if name in LAYER})


def expected(b, sm_scale=None):
    """(o, lse) of q's tokens in fp64, for plain attention of [batch, heads, head_dim]."""
    q, k, v = (x.cpu().double() for x in (b.q, b.k, b.v))
    o, lse = torch.zeros(q.shape, dtype=torch.float64), torch.full(q.shape[:-1], -torch.inf, dtype=torch.float64)
    group = q.shape[1] // k.shape[2]
    for r, n in enumerate(b.seq_lens.tolist()):
        if n == 0:
            continue
        pages = b.page_table[r, : -(-n // k.shape[1])].long().cpu()
        keys, values = (x[pages].flatten(0, 1)[:n].repeat_interleave(group, 1) for x in (k, v))
        scores = torch.einsum("hd,nhd->hn", q[r], keys) * (sm_scale or q.shape[-1] ** -0.5)
        lse[r] = scores.logsumexp(1)
        o[r] = torch.einsum("hn,nhd->hd", scores.softmax(1), values)
    return o, lse


def same_bits(a, b):
    """NaN and the sign of zero count."""
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.flatten().clone().view(torch.uint8), b.flatten().clone().view(torch.uint8))


def zeroed(nbytes, device):
    """uint8 zeros, 256-byte aligned on the host too."""
    memory = torch.zeros(nbytes + 256, dtype=torch.uint8, device=device)
    first = -memory.data_ptr() % 256
    return memory[first : first + nbytes]
