#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decode cells through the operators, beside the same cells in the bench and through the C ABI, in one run on one GPU.

    PYTHONPATH=kernels/torch python3 kernels/torch/beside_bench.py --build build/cuda --only "llama8b b32 4k" --json FILE

A cell is timed by `bench_decode`, then in this process by the C call and by the operator, each in a CUDA graph over the cell's page
sets as the bench makes them (kernels/bench/REFERENCE.md), then by `bench_decode` again. `operator` is the operator over the C call: what
the binding adds on the device (both without an LSE, which the bench writes). `bench` is the operator over the mean of both benches,
whose graphs C++ starts some microseconds sooner: cells whose graph takes less than some 300 us show that. `control` is the second
bench over the first. Exit code 0, 1 where an operator is beyond --within of the C call, 3 without a GPU."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "bench")]
KERNELS = ("paged_attention_v1", "paged_attention_v2")


def bench_times(build, text):
    """{(cell, kernel): us} that bench_decode measures of the decode cells with `text` in their names."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "bench.json"
        subprocess.run([str(build / "kernels/bench/bench_decode"), str(result), text], check=True, stdout=subprocess.DEVNULL)
        return decode_times(json.loads(result.read_text()))


def decode_times(document):
    return {(cell["cell"], cell["kernel"]): cell["us"] for cell in document["cells"] if cell["kernel"] in KERNELS and "early_us" in cell}


def rows_of(cells, before, c, operator, after, within):
    """A row for each cell and kernel, of times in us by (cell, kernel). What one of the four has not is refused by name."""
    rows = []
    for key in [(cell, kernel) for cell in cells for kernel in KERNELS]:
        absent = [name for name, times in (("bench", before), ("C", c), ("operator", operator), ("bench", after)) if key not in times]
        if absent:
            raise SystemExit(f"beside_bench: {key[0]}, {key[1]}: no time by {' and '.join(absent)}")
        bench = (before[key] + after[key]) / 2
        ratio = operator[key] / c[key]
        rows.append({
            "cell": key[0], "kernel": key[1], "bench_us": bench, "c_us": c[key], "us": operator[key], "operator": ratio,
            "bench": operator[key] / bench, "control": after[key] / before[key], "within": abs(ratio - 1) <= within,
        })  # fmt: skip
    return rows


def line(row):
    times = " ".join(f"{row[name]:9.2f}" for name in ("bench_us", "c_us", "us"))
    ratios = " ".join(f"{row[name]:8.4f}" for name in ("operator", "bench", "control"))
    return f"{row['cell']:28} {row['kernel'][-2:]} | {times} | {ratios}" + ("" if row["within"] else "  beyond")


HEADER = f"{'cell':28} {'':2} | {'bench us':>9} {'C us':>9} {'us':>9} | {'operator':>8} {'bench':>8} {'control':>8}"


def here_times(cell, library):
    """({(cell, kernel): us} by the C call, the same by the operator) on the same tensors."""
    import torch
    from peer_kernels import decode, inputs, timing

    device = torch.device("cuda")
    data = inputs.CellData(cell, device, torch.cuda.get_device_properties(device).L2_cache_size)
    c, operator = {}, {}
    for version, kernel, prepare in ((1, KERNELS[0], decode.assay_v1), (2, KERNELS[1], decode.assay_v2)):
        for times, run in ((c, prepare(library, data)), (operator, decode.by_torch(library, data, version))):
            run(0)
            torch.cuda.synchronize()
            times[cell["name"], kernel] = timing.graph_median_us(run, data.sets)
    return c, operator


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/cuda"), help="the build, with bench_decode and libassay.so")
    parser.add_argument("--only", nargs="+", default=["llama8b b32 4k"], metavar="TEXT", help="cells with one of these in their names")
    parser.add_argument("--within", type=float, default=0.01, help="how far an operator may be from the C call (0.01)")
    parser.add_argument("--json", help="where the result goes")
    options = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        print("beside_bench: no CUDA device", file=sys.stderr)
        return 3
    import peers
    from assay_abi import Assay

    path = options.build / "libassay.so"
    library, bench = Assay(str(path)), peers.load_bench_library(str(path))
    listed = json.loads(bench.assay_bench_cells())
    result = {
        "device": torch.cuda.get_device_name(), "date": time.strftime("%Y-%m-%d", time.gmtime()), "commit": listed["commit"],
        "torch": torch.__version__, "cells": [],
    }  # fmt: skip
    print(f"{result['device']}, torch {result['torch']}\n{HEADER}", flush=True)
    for text in options.only:
        before, c, operator = bench_times(options.build, text), {}, {}
        cells = [cell for cell in listed["cells"] if cell["kind"] == "decode" and text in cell["name"]]
        for cell in cells:
            for times, more in zip((c, operator), here_times(cell, library)):
                times |= more
            torch.cuda.empty_cache()  # the bench wants memory, too
        rows = rows_of([cell["name"] for cell in cells], before, c, operator, bench_times(options.build, text), options.within)
        print("\n".join(map(line, rows)), flush=True)
        result["cells"] += rows
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
    beyond = sum(not row["within"] for row in result["cells"])
    print(f"{len(result['cells']) - beyond} of {len(result['cells'])} within {options.within:.0%} of the C call")
    return 1 if beyond or not result["cells"] else 0


if __name__ == "__main__":
    sys.exit(main())
