# SPDX-License-Identifier: Apache-2.0
"""Device side of peers.py: the inputs of a cell, timing by graph replay, errors. Needs PyTorch."""
import ctypes
import zlib

import torch

KV_TORCH = {"bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
MAX_POOL_BYTES = 60 << 30
REPLAYS, WARM_UPS = 9, 2


def page_sets(set_bytes, l2_bytes):
    """How many page sets a cell has: three times the L2 between two uses of a set, as in bench.cu."""
    sets = 3 * l2_bytes // max(set_bytes, 1) + 2
    return 2 if sets * set_bytes > MAX_POOL_BYTES else sets


def gather(pool, pages):
    """pool[pages]; as bytes, because not every fp8 type can be indexed."""
    return pool.view(torch.uint8)[pages.long()].view(pool.dtype)


class CellData:
    """`sets` disjoint page sets in one K and one V pool [pages, page_size, num_kv_heads, head_dim],
    filled with N(0,1); pages of a set in random order, as after some serving."""

    def __init__(self, cell, device, l2_bytes):
        torch.manual_seed(zlib.crc32(cell["name"].encode()))
        self.cell, self.device, self.lens = cell, device, cell["lengths"]
        self.batch, self.page_size, self.head_dim = cell["batch"], cell["page_size"], cell["head_dim"]
        self.heads, self.kv_heads = cell["num_qo_heads"], cell["num_kv_heads"]
        self.dtype = KV_TORCH[cell["kv_dtype"]]
        token_bytes = 2 * self.kv_heads * self.head_dim * self.dtype.itemsize
        self.bytes = sum(self.lens) * token_bytes
        self.sets = page_sets(self.bytes, l2_bytes)
        self.pages = [-(-n // self.page_size) for n in self.lens]
        self.max_pages = max(self.pages)
        self.seq_lens = torch.tensor(self.lens, dtype=torch.int32, device=device)
        self._fill_pools(self.sets * sum(self.pages))
        self._shuffle_pages()
        self.q = torch.randn(
            self.batch, self.heads, self.head_dim, dtype=torch.bfloat16, device=device
        )

    def _fill_pools(self, pages):
        shape = (pages, self.page_size, self.kv_heads, self.head_dim)
        n = pages * self.page_size * self.kv_heads * self.head_dim
        self.pool = torch.empty(2 * n, dtype=self.dtype, device=self.device)  # K, then V
        for chunk in self.pool.split(1 << 28):
            chunk.copy_(torch.randn(chunk.numel(), dtype=torch.bfloat16, device=self.device))
        self.k, self.v = self.pool[:n].view(shape), self.pool[n:].view(shape)

    def _shuffle_pages(self):
        """`tables` [sets, batch, max_pages] for kernels that take a table, 0 past a row's pages;
        `indices` [sets, pages of a set] for those that take the rows one after the other."""
        count = sum(self.pages)
        columns = torch.arange(self.max_pages, device=self.device)
        live = columns < torch.tensor(self.pages, device=self.device)[:, None]
        self.tables = torch.zeros(
            self.sets, self.batch, self.max_pages, dtype=torch.int32, device=self.device
        )
        self.indices = torch.empty(self.sets, count, dtype=torch.int32, device=self.device)
        for s in range(self.sets):
            self.indices[s] = s * count + torch.randperm(count, device=self.device)
            self.tables[s][live] = self.indices[s]

    def uniform(self):
        return len(set(self.lens)) == 1

    def row(self, pool, r, begin, end):
        """Tokens begin .. end - 1 of request r in page set 0, in float64."""
        first, last = begin // self.page_size, -(-end // self.page_size)
        pages = gather(pool, self.tables[0, r, first:last])
        tokens = pages.flatten(0, 1)[begin - first * self.page_size : end - first * self.page_size]
        return tokens.double()


def sampled_rows(lens):
    """Up to four requests that have keys: the first, the last, the shortest and the longest."""
    rows = [r for r, n in enumerate(lens) if n > 0]
    picked = {rows[0], rows[-1], min(rows, key=lambda r: lens[r]), max(rows, key=lambda r: lens[r])}
    return sorted(picked)


def reference(data, chunk=8192):
    """Attention of the sampled requests over page set 0 in float64: {request: [heads, head_dim]}."""
    result = {}
    for r in sampled_rows(data.lens):
        q = data.q[r].double().view(data.kv_heads, -1, data.head_dim) / data.head_dim**0.5
        spans = [(t, min(t + chunk, data.lens[r])) for t in range(0, data.lens[r], chunk)]
        logits = [torch.einsum("hgd,thd->hgt", q, data.row(data.k, r, *span)) for span in spans]
        weights = torch.softmax(torch.cat(logits, dim=-1), dim=-1)
        o = torch.zeros_like(q)
        for begin, end in spans:
            o += torch.einsum("hgt,thd->hgd", weights[..., begin:end], data.row(data.v, r, begin, end))
        result[r] = o.flatten(0, 1)
    return result


def errors(output, exact):
    """Mean and largest |output - exact| over all elements of the sampled requests."""
    diff = torch.cat([(output[r].double() - o).abs().flatten() for r, o in exact.items()])
    mean, largest = diff.mean().item(), diff.max().item()
    if not mean < float("inf"):
        raise ValueError("the output is not finite")
    return mean, largest


def graph_median_us(run, sets):
    """Median microseconds of run(i): a graph of max(sets, 4) calls over all page sets, replayed."""
    launches = max(sets, 4)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(launches):
            run(i % sets)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(WARM_UPS + REPLAYS):
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times[WARM_UPS:])[REPLAYS // 2] * 1000 / launches


def floor_us(library, data):
    """The fastest plain read of the same bytes of the same sets, over the floor's shapes."""
    sink = torch.zeros(1, dtype=torch.int32, device=data.device)
    multiprocessors = torch.cuda.get_device_properties(data.device).multi_processor_count
    set_bytes = data.bytes // 16 * 16

    def enqueue(shape, s):
        if not library.assay_bench_floor(
            shape,
            ctypes.c_void_p(data.pool.data_ptr() + s * set_bytes),
            ctypes.c_uint64(set_bytes),
            ctypes.c_void_p(sink.data_ptr()),
            multiprocessors,
            False,  # each read after the one before
            ctypes.c_void_p(torch.cuda.current_stream().cuda_stream),
        ):
            raise RuntimeError("the floor kernel cannot be launched")

    return min(
        graph_median_us(lambda s, shape=shape: enqueue(shape, s), data.sets)
        for shape in range(library.assay_bench_floor_shapes())
    )


def measure(prepare, data, exact):
    """us, mean and max error of the kernel that prepare(data) returns: run(set) -> output."""
    run = prepare(data)
    output = run(0)
    torch.cuda.synchronize()
    mean, largest = errors(output, exact)
    return {"us": graph_median_us(run, data.sets), "mean_error": mean, "max_error": largest}
