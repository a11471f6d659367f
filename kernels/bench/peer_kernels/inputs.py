# SPDX-License-Identifier: Apache-2.0
"""The inputs of decode and cascade cells for peers.py, and what is right in float64. Needs PyTorch."""
import zlib
from types import SimpleNamespace

import torch

from peer_kernels.timing import page_sets

KV_TORCH = {"bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


def gather(pool, pages):
    """pool[pages]; as bytes, because not every fp8 type can be indexed."""
    return pool.view(torch.uint8)[pages.long()].view(pool.dtype)


class PagedData:
    """`sets` disjoint page sets in one K and one V pool [pages, page_size, num_kv_heads, head_dim],
    filled with N(0,1); pages of a set in random order, as after some serving. `lens` are the keys of each request."""

    def __init__(self, cell, device, l2_bytes, lens, tokens):
        """`tokens`: keys of a set that lie in memory, each once."""
        torch.manual_seed(zlib.crc32(cell["name"].encode()))
        self.cell, self.device, self.lens = cell, device, lens
        self.batch, self.page_size, self.head_dim = cell["batch"], cell["page_size"], cell["head_dim"]
        self.heads, self.kv_heads = cell["num_qo_heads"], cell["num_kv_heads"]
        self.dtype, self.flops = KV_TORCH[cell["kv_dtype"]], cell.get("flops", 0)
        self.bytes = self.read_bytes = tokens * 2 * self.kv_heads * self.head_dim * self.dtype.itemsize
        self.sets = page_sets(self.bytes, l2_bytes)
        self.pages = [-(-n // self.page_size) for n in lens]
        self.max_pages = max(self.pages)
        self.seq_lens = torch.tensor(lens, dtype=torch.int32, device=device)

    def fill(self, pages):
        """Pools of `sets` times `pages` pages, and q."""
        shape = (self.sets * pages, self.page_size, self.kv_heads, self.head_dim)
        n = self.sets * pages * self.page_size * self.kv_heads * self.head_dim
        self.pool = torch.empty(2 * n, dtype=self.dtype, device=self.device)  # K, then V
        for chunk in self.pool.split(1 << 28):
            chunk.copy_(torch.randn(chunk.numel(), dtype=torch.bfloat16, device=self.device))
        self.k, self.v = self.pool[:n].view(shape), self.pool[n:].view(shape)
        q_shape = (self.batch, self.heads, self.head_dim)
        self.q = torch.randn(q_shape, dtype=torch.bfloat16, device=self.device)

    def shuffled(self, pages):
        """[sets, pages]: the ids of each set's pages in random order."""
        ids = torch.empty(self.sets, pages, dtype=torch.int32, device=self.device)
        for s in range(self.sets):
            ids[s] = s * pages + torch.randperm(pages, device=self.device)
        return ids

    def uniform(self):
        return len(set(self.lens)) == 1

    def row(self, pool, r, begin, end):
        """Tokens begin .. end - 1 of request r in page set 0, in float64."""
        first, last = begin // self.page_size, -(-end // self.page_size)
        pages = gather(pool, self.tables[0, r, first:last])
        tokens = pages.flatten(0, 1)[begin - first * self.page_size : end - first * self.page_size]
        return tokens.double()


class CellData(PagedData):
    """A decode cell: `tables` [sets, batch, max_pages] for kernels that take a table, 0 past a row's pages;
    `indices` [sets, pages of a set] for those that take the rows one after the other."""

    def __init__(self, cell, device, l2_bytes):
        super().__init__(cell, device, l2_bytes, cell["lengths"], sum(cell["lengths"]))
        count = sum(self.pages)
        self.fill(count)
        self.indices = self.shuffled(count)
        columns = torch.arange(self.max_pages, device=device)
        live = columns < torch.tensor(self.pages, device=device)[:, None]
        self.tables = torch.zeros(self.sets, self.batch, self.max_pages, dtype=torch.int32, device=device)
        for s in range(self.sets):
            self.tables[s][live] = self.indices[s]


class CascadeData(PagedData):
    """A cascade cell: `levels` of segments, each with `tables` [sets, segments, pages], `indptr` on the host (first
    request of each segment) and its copy `starts`. `tables` and `indices` are those of flat decode: every request has
    the pages of all its segments."""

    def __init__(self, cell, device, l2_bytes):
        levels = [SimpleNamespace(**level) for level in cell["levels"]]
        total = sum(level.tokens for level in levels)
        stored = sum(level.segments * level.tokens for level in levels)
        super().__init__(cell, device, l2_bytes, [total] * cell["batch"], stored)
        if any(level.tokens % self.page_size for level in levels):
            raise ValueError(f"{cell['name']}: a level ends inside a page")
        count = stored // self.page_size
        self.fill(count)
        ids, first = self.shuffled(count), 0
        for level in levels:
            level.pages, level.requests = level.tokens // self.page_size, self.batch // level.segments
            end = first + level.segments * level.pages
            level.tables = ids[:, first:end].reshape(self.sets, level.segments, level.pages).contiguous()
            level.seq_lens = torch.full((level.segments,), level.tokens, dtype=torch.int32, device=device)
            level.indptr = torch.arange(level.segments + 1, dtype=torch.int32) * level.requests
            level.starts = level.indptr.to(device)
            first = end
        self.levels = levels
        self.tables = torch.cat([v.tables.repeat_interleave(v.requests, dim=1) for v in levels], dim=2).contiguous()
        self.indices = self.tables.flatten(1)


def sampled_rows(lens):
    """Up to four requests that have keys: the first, the last, the shortest and the longest."""
    rows = [r for r, n in enumerate(lens) if n > 0]
    picked = {rows[0], rows[-1], min(rows, key=lambda r: lens[r]), max(rows, key=lambda r: lens[r])}
    return sorted(picked)


def spread_rows(rows):
    """Up to four of so many rows: the first, the last, and two between."""
    return sorted({0, rows // 3, 2 * rows // 3, rows - 1})


def reference(data, rows=None, chunk=8192):
    """Attention of the sampled requests over page set 0 in float64: {request: [heads, head_dim]}."""
    result = {}
    for r in sampled_rows(data.lens) if rows is None else rows:
        q = data.q[r].double().view(data.kv_heads, -1, data.head_dim) / data.head_dim**0.5
        spans = [(t, min(t + chunk, data.lens[r])) for t in range(0, data.lens[r], chunk)]
        logits = [torch.einsum("hgd,thd->hgt", q, data.row(data.k, r, *span)) for span in spans]
        weights = torch.softmax(torch.cat(logits, dim=-1), dim=-1)
        o = torch.zeros_like(q)
        for begin, end in spans:
            o += torch.einsum("hgt,thd->hgd", weights[..., begin:end], data.row(data.v, r, begin, end))
        result[r] = o.flatten(0, 1)
    return result
