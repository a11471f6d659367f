#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gates a library against itself, every kernel forced, seed after seed: how often is nothing called something?

Usage: gate_unchanged.py PROGRAM LIBRARY [--first 1] [--runs 200] [--budget 1m] [--jobs 1] [--csv FILE]
LIBRARY is a plugin, for instance build/simt/libassay.so. A line per run, and in the end exit code 1 if any was red: its
report and cases are kept, in the folder that the line names. With --csv, rows are appended, and seeds that FILE has at this
budget are not run again.
"""
import argparse
import csv
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

COLUMNS = ("seed", "budget", "red", "cases", "seconds")


def shares(jobs):
    """The processors of this machine, dealt out: a job's `assay` has as many threads as processors."""
    own = sorted(os.sched_getaffinity(0))
    return [own[i * len(own) // jobs:(i + 1) * len(own) // jobs] or own for i in range(jobs)]


def gate(options, seed, processors):
    """The row of one run, and the folder with its report and cases."""
    folder = tempfile.mkdtemp(prefix=f"assay-gate-seed-{seed}-")
    report = pathlib.Path(folder, "gate.json")
    begin = time.monotonic()
    ended = subprocess.run([options.program, "gate", "--base-plugin", options.library, "--head-plugin", options.library, "--all",
                            "--budget", options.budget, "--seed", str(seed), "--json", report, "--quiet"],
                           cwd=folder, stdout=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, processors))
    if ended.returncode not in (0, 1):
        sys.exit(f"seed {seed}: assay gate ended with {ended.returncode}; see {folder}")
    document = json.loads(report.read_text())
    return {"seed": seed, "budget": options.budget, "red": " ".join(sorted({line["id"] for line in document["red"]})),
            "cases": sum(kernel["cases"] for kernel in document["kernels"]), "seconds": round(time.monotonic() - begin)}, folder


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("library", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--first", type=int, default=1, help="seed")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--budget", default="1m")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side, each on its share of the processors")
    parser.add_argument("--csv", type=pathlib.Path)
    options = parser.parse_args()
    rows = list(csv.DictReader(options.csv.open())) if options.csv and options.csv.exists() else []
    done = {int(row["seed"]) for row in rows if row["budget"] == options.budget}
    lock = threading.Lock()
    idle = queue.Queue()
    for share in shares(options.jobs):
        idle.put(share)

    def one(seed):
        processors = idle.get()
        row, folder = gate(options, seed, processors)
        idle.put(processors)
        if not row["red"]:
            shutil.rmtree(folder)
        with lock:
            rows.append(row)
            kept = f"  {folder}" if row["red"] else ""
            print("seed {seed:5} {cases:8} cases {seconds:5} s  {red}".format(**row) + kept, flush=True)
            if options.csv:
                fresh = not options.csv.exists()
                with options.csv.open("a", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                    if fresh:
                        writer.writeheader()
                    writer.writerow(row)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, [seed for seed in range(options.first, options.first + options.runs) if seed not in done]))
    mine = [row for row in rows if row["budget"] == options.budget]
    red = [row["seed"] for row in mine if row["red"]]
    print(f"{len(mine)} runs of {options.budget}, {len(red)} red" + (f": seeds {red}" if red else ""))
    sys.exit(1 if red else 0)


if __name__ == "__main__":
    main()
