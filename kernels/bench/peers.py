#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""assay's kernels and their peers side by side: one run, the same inputs, the same floor.

Prints a table for each kind of cells, a row per cell as it finishes, then the errors and who refused what; see
REFERENCE.md. Exit code: 0, or 3 without a CUDA device or PyTorch, 4 when one of assay's kernels failed.
"""
import argparse
import ctypes
import json
import os
import sys
import time

from peer_kernels.report import cell_row, header, reason, summary, to_json

KINDS = ["decode", "cascade", "prefix", "merge_state", "merge_state in place", "merge_states"]


def load_bench_library(path):
    """libassay_bench.so, which stands beside libassay.so."""
    library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(path)), "libassay_bench.so"))
    library.assay_bench_cells.restype = ctypes.c_char_p
    library.assay_bench_floor.restype = ctypes.c_bool
    return library


def choose(cells, kinds, text):
    """The cells of these kinds with `text` in their names, kind by kind, of cascades those of bf16. Every merge of two
    states stands twice: into another array, and in place."""
    cells = [c for c in cells if c["kind"] != "cascade" or c["kv_dtype"] == "bf16"]
    pairs = [c for c in cells if c["kind"] == "merge_state"]
    again = [{**c, "kind": "merge_state in place", "name": c["name"] + " in place"} for c in pairs]
    chosen = [c for c in cells + again if c["kind"] in kinds and text in c["name"]]
    return sorted(chosen, key=lambda c: KINDS.index(c["kind"]))


def load_kinds():
    """Inputs, reference and kernels of every kind. Needs PyTorch."""
    from peer_kernels import cascade, decode, merge

    return {**decode.KINDS, **cascade.KINDS, **merge.KINDS}


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


def run_cell(cell, kind, library, bench_library):
    """Floor, our kernels and the peers of one cell, on inputs made for it."""
    import torch
    from peer_kernels import timing

    device = torch.device("cuda")
    data = kind.inputs(cell, device, torch.cuda.get_device_properties(device).L2_cache_size)
    exact = kind.reference(data)
    result = {key: cell[key] for key in ("kind", "kv_dtype")}
    result |= {"cell": cell["name"], "bytes": data.bytes, "floor_us": timing.floor_us(bench_library, data)}

    def measured(name, prepare, *first):
        try:
            return timing.measure(lambda data: prepare(*first, data), data, exact)
        except Exception as error:
            try:
                torch.cuda.synchronize()
            except RuntimeError:  # nothing can run on this device any more
                sys.exit(fail(4, f"{cell['name']}: {name} broke the device: {reason(error)}"))
            return {"refused": reason(error)}

    result["ours"] = {name: measured(name, prepare, library) for name, prepare in kind.ours.items()}
    result["peers"] = {name: measured(name, prepare) for name, prepare in kind.peers.items()}
    result["peers"] |= {name: measured(name, prepare, library) for name, prepare in kind.flat.items()}
    del data
    torch.cuda.empty_cache()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default="build/cuda/libassay.so", help="libassay.so of a cuda build")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cells whose name contains TEXT")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS, metavar="KIND", help=", ".join(KINDS))
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
    chosen = choose(listed["cells"], options.kinds, options.only)
    if not chosen:
        sys.exit(fail(2, f"--only is '{options.only}': no cell of these kinds has that in its name"))
    sys.exit(run(chosen, about_device(torch, listed["commit"]), library, bench_library, options.json))


def fail(code, message):
    print(f"peers: {message}", file=sys.stderr)
    return code


def run(chosen, about, library, bench_library, json_path):
    """All cells; returns the exit code."""
    kinds, cells = load_kinds(), []
    print(f"{about['device']}, torch {about['torch']}, flashinfer {about['flashinfer']}")
    for name in dict.fromkeys(cell["kind"] for cell in chosen):
        kind, begin = kinds[name], len(cells)
        print(f"\n{name}\n{header([*kind.ours, *kind.peers, *kind.flat])}", flush=True)
        for cell in (c for c in chosen if c["kind"] == name):
            cells.append(run_cell(cell, kind, library, bench_library))
            print(cell_row(cells[-1]), flush=True)
            if json_path:
                with open(json_path, "w") as f:
                    json.dump(to_json(about, cells), f, indent=1)
                    f.write("\n")
        print(summary(cells[begin:]), flush=True)
    return 4 if any("us" not in r for c in cells for r in c["ours"].values()) else 0


if __name__ == "__main__":
    main()
