#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""assay's kernels and their peers side by side: one run, the same inputs, the same floor.

Prints a row per cell as it finishes, then the errors and who refused what; see README.md.
Exit code: 0, or 3 without a CUDA device or PyTorch, 4 when one of assay's kernels failed.
"""
import argparse
import ctypes
import json
import os
import sys
import time

SHORT = {
    "paged_attention_v1": "v1",
    "paged_attention_v2": "v2",
    "paged_attention_v1 early": "v1 e",
    "paged_attention_v2 early": "v2 e",
    "FlashInfer CUDA cores": "FI-cc",
    "FlashInfer tensor cores": "FI-tc",
    "XQA": "XQA",
    "SDPA contiguous": "SDPA",
}


def load_bench_library(path):
    """libassay_bench.so, which stands beside libassay.so."""
    library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(path)), "libassay_bench.so"))
    library.assay_bench_cells.restype = ctypes.c_char_p
    library.assay_bench_floor.restype = ctypes.c_bool
    return library


def reason(error):
    """An exception as one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"[:200]


def text_us(result, floor):
    """'us fraction' of a kernel in the table; a dash when it has no result."""
    if "us" not in result:
        return f"{'-':>15}"
    return f"{result['us']:9.2f} {floor / result['us']:5.3f}"


def cell_row(name, floor, results):
    return f"{name:<28} {floor:8.2f}" + "".join(" " + text_us(r, floor) for r in results.values())


def header(kernels):
    return f"{'cell':<28} {'floor us':>8}" + "".join(f" {SHORT[k] + ' us':>9} {'frac':>5}" for k in kernels)


def error_row(name, results):
    errors = [f"{r['mean_error'] * 1e6:11.2f}" if "us" in r else f"{'-':>11}" for r in results.values()]
    return f"{name:<28}" + "".join(errors)


def verdict(ours, peers):
    """Compares the faster of ours with the fastest peer, and its mean error with that of the fastest
    and of the most accurate peer: three booleans, or None when no peer ran."""
    ran = [r for r in peers.values() if "us" in r]
    mine = min((r for r in ours.values() if "us" in r), key=lambda r: r["us"], default=None)
    if not ran or mine is None:
        return None
    fastest = min(ran, key=lambda r: r["us"])
    least = min(r["mean_error"] for r in ran)
    return (
        mine["us"] <= fastest["us"],
        mine["mean_error"] <= fastest["mean_error"],
        mine["mean_error"] <= least,
    )


def summary(cells):
    """The closing lines: errors, refusals, and the cells in which a peer is ahead."""
    kernels = [*cells[0]["ours"], *cells[0]["peers"]]
    lines = ["", "mean |O - float64 reference| x 1e6"]
    lines.append(f"{'cell':<28}" + "".join(f"{SHORT[k]:>11}" for k in kernels))
    lines += [error_row(c["cell"], {**c["ours"], **c["peers"]}) for c in cells]
    refused = {}
    for c in cells:
        for peer, r in {**c["ours"], **c["peers"]}.items():
            if "refused" in r:
                refused.setdefault((peer, r["refused"]), []).append(c["cell"])
    lines += ["", "no result:"] if refused else []
    lines += [f"  {peer}: {why}\n    {', '.join(names)}" for (peer, why), names in refused.items()]
    verdicts = {c["cell"]: verdict(c["ours"], c["peers"]) for c in cells}
    judged = {name: v for name, v in verdicts.items() if v is not None}
    lines.append("")
    for i, what in enumerate(
        (
            "at least as fast as the fastest peer",
            "mean error no larger than the fastest peer's",
            "mean error no larger than that of the most accurate peer",
        )
    ):
        behind = [name for name, v in judged.items() if not v[i]]
        lines.append(f"{what}: {len(judged) - len(behind)} of {len(judged)} cells")
        lines += [f"  not in: {', '.join(behind)}"] if behind else []
    return "\n".join(lines)


def to_json(about, cells):
    """Results as data: one entry per cell and kernel of ours, the peers of the cell in each."""
    entries = []
    for c in cells:
        for kernel, r in c["ours"].items():
            if "us" in r:
                entries.append(
                    {
                        "cell": c["cell"],
                        "kernel": kernel,
                        "kv_dtype": c["kv_dtype"],
                        "bytes": c["bytes"],
                        "floor_us": c["floor_us"],
                        "floor_fraction": c["floor_us"] / r["us"],
                        **r,
                        "peers": c["peers"],
                    }
                )
    return {**about, "cells": entries}


def about_device(torch, commit):
    driver = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(driver))
    about = {
        "device": torch.cuda.get_device_name(),
        "driver": f"{driver.value // 1000}.{driver.value % 1000 // 10}",
        "commit": commit,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "torch": torch.__version__,
    }
    try:
        import flashinfer

        about["flashinfer"] = flashinfer.__version__
    except ImportError as error:
        about["flashinfer"] = reason(error)
    return about


def run_cell(cell, library, bench_library):
    """Floor, our kernels and the peers of one cell, on inputs made for it."""
    import torch
    import peers_cuda
    import peers_kernels

    device = torch.device("cuda")
    data = peers_cuda.CellData(cell, device, torch.cuda.get_device_properties(device).L2_cache_size)
    exact = peers_cuda.reference(data)
    result = {"cell": cell["name"], "kv_dtype": cell["kv_dtype"], "bytes": data.bytes}
    result["floor_us"] = peers_cuda.floor_us(bench_library, data)

    def measured(name, prepare, *first):
        try:
            return peers_cuda.measure(lambda data: prepare(*first, data), data, exact)
        except Exception as error:
            try:
                torch.cuda.synchronize()
            except RuntimeError:  # nothing can run on this device any more
                sys.exit(fail(4, f"{cell['name']}: {name} broke the device: {reason(error)}"))
            return {"refused": reason(error)}

    ours, others = peers_kernels.OURS, peers_kernels.PEERS
    result["ours"] = {name: measured(name, prepare, library) for name, prepare in ours.items()}
    result["peers"] = {name: measured(name, prepare) for name, prepare in others.items()}
    del data
    torch.cuda.empty_cache()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default="build/cuda/libassay.so", help="libassay.so of a cuda build")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cells whose name contains TEXT")
    parser.add_argument("--json", metavar="FILE", help="write the results there, after every cell")
    options = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        sys.exit(fail(3, f"no PyTorch: {error}"))
    if not torch.cuda.is_available():
        sys.exit(fail(3, "no CUDA device"))
    from assay_abi import Assay

    library, bench_library = Assay(options.library), load_bench_library(options.library)
    listed = json.loads(bench_library.assay_bench_cells())
    chosen = [c for c in listed["cells"] if options.only in c["name"]]
    if not chosen:
        sys.exit(fail(2, f"--only is '{options.only}': no cell has that in its name"))
    sys.exit(run(chosen, about_device(torch, listed["commit"]), library, bench_library, options.json))


def fail(code, message):
    print(f"peers: {message}", file=sys.stderr)
    return code


def run(chosen, about, library, bench_library, json_path):
    """All cells; returns the exit code."""
    from peers_kernels import OURS, PEERS

    print(f"{about['device']}, torch {about['torch']}, flashinfer {about['flashinfer']}")
    print(header([*OURS, *PEERS]), flush=True)
    cells = []
    for cell in chosen:
        cells.append(run_cell(cell, library, bench_library))
        c = cells[-1]
        print(cell_row(c["cell"], c["floor_us"], {**c["ours"], **c["peers"]}), flush=True)
        if json_path:
            with open(json_path, "w") as f:
                json.dump(to_json(about, cells), f, indent=1)
                f.write("\n")
    print(summary(cells))
    return 4 if any("us" not in r for c in cells for r in c["ours"].values()) else 0


if __name__ == "__main__":
    main()
