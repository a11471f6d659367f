# SPDX-License-Identifier: Apache-2.0
"""How peers.py times: a CUDA graph over all page sets of a cell, replayed; errors; the floor. Needs PyTorch."""
import ctypes
from typing import Callable, NamedTuple

import torch

MAX_POOL_BYTES = 60 << 30
REPLAYS, WARM_UPS = 9, 2
FLOPS_PER_US = 790e6  # dense bf16 products on an H200, as in `assay bench`


class Kind(NamedTuple):
    """Cells of one kind: their inputs, what is right, and who is timed, in the order of the columns.

    `ours` take (library, data), `peers` (data). Both return run(set) -> output [rows, heads, head_dim], which can be
    captured, or (run, arrange) where arrange(output) has that order; what they raise is the reason in the results.
    `flat` are kernels of ours that ignore what requests share: called as `ours`, counted with the peers.
    """

    inputs: Callable
    reference: Callable
    ours: dict
    peers: dict
    flat: dict = {}


class NotOffered(Exception):
    """The peer has no such call; the message says why."""


def page_sets(set_bytes, l2_bytes):
    """How many page sets a cell has: three times the L2 between two uses of a set, as in bench.cu."""
    sets = 3 * l2_bytes // max(set_bytes, 1) + 2
    return 2 if sets * set_bytes > MAX_POOL_BYTES else sets


def errors(output, exact):
    """Mean and largest |output - exact| over all elements of the sampled rows."""
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
    """The fastest plain read of the bytes a call reads, over the same sets and the floor's shapes, or the time of
    its products where that is longer."""
    sink = torch.zeros(1, dtype=torch.int32, device=data.device)
    multiprocessors = torch.cuda.get_device_properties(data.device).multi_processor_count
    set_bytes = data.read_bytes // 16 * 16

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

    read = min(
        graph_median_us(lambda s, shape=shape: enqueue(shape, s), data.sets)
        for shape in range(library.assay_bench_floor_shapes())
    )
    return max(read, data.flops / FLOPS_PER_US)


def measure(prepare, data, exact):
    """us, mean and max error of the kernel that prepare(data) returns."""
    prepared = prepare(data)
    run, arrange = prepared if isinstance(prepared, tuple) else (prepared, lambda output: output)
    output = run(0)
    torch.cuda.synchronize()
    mean, largest = errors(arrange(output), exact)
    del output
    return {"us": graph_median_us(run, data.sets), "mean_error": mean, "max_error": largest}
