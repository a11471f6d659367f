#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a planted target needs for each mistake, from an empty corpus: one process at a time.

  cmake --preset fuzz && cmake --build --preset fuzz --target all_planted
  fuzz/time_to_find.py tile                          the mistakes of fuzz/planted/tile_*.mutant, once each
  fuzz/time_to_find.py tile --seeds 10 --compare     with and without numeric feedback, medians
  fuzz/time_to_find.py tile --mistake o_not_rescaled any of corpus/mutants

A run that finds nothing within --seconds or --executions is censored: it counts as the limit, with a '>'. Exit status 1
when a median is censored (--compare: with feedback), 2 when a target cannot run.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(binary, mistake, seed, seconds, executions, feedback):
    """(seconds, executions, what was said or None) of one run from an empty corpus."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        process = subprocess.run(
            [binary, f"-seed={seed}", f"-max_total_time={seconds}", "-max_len=300", "-len_control=0",
             f"-runs={executions}", "-print_final_stats=1",
             f"-artifact_prefix={folder}/", folder],
            env={**os.environ, "ASSAY_PLANT": mistake, "ASSAY_FUZZ_FEEDBACK": str(int(feedback))},
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, errors="replace", check=False)
        took = time.monotonic() - begin
    said = re.search(r"^VIOLATION: (.*)$", process.stderr, re.M)
    count = re.search(r"number_of_executed_units:\s*(\d+)", process.stderr)
    if count is None or (process.returncode != 0) != (said is not None):
        sys.exit(f"{binary} with {mistake}: status {process.returncode}\n{process.stderr[-2000:]}")
    return took, int(count[1]), said[1] if said else None


def figure(runs):
    """Medians of a cell, and what the first run that found it said."""
    found = [r for r in runs if r[2]]
    censored = 2 * len(found) <= len(runs)
    seconds, executions = (statistics.median_low(r[i] for r in runs) for i in (0, 1))
    text = f"{'>' if censored else ' '}{seconds:7.1f} s {executions:9d} {len(found):3d}/{len(runs)}"
    return text, executions, censored, found[0][2] if found else "nothing"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", help="tile, merge")
    parser.add_argument("--mistake", action="append", help="by name; default: those of fuzz/planted for the target")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--executions", type=int, default=-1, help="a limit, too: on a machine with other work")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--compare", action="store_true", help="without numeric feedback, too")
    parser.add_argument("--build", default="build/fuzz")
    arguments = parser.parse_args()
    binary = ROOT / arguments.build / "fuzz" / f"planted_{arguments.target}"
    if not binary.exists():
        print(f"{binary} is not built: cmake --build --preset fuzz --target all_planted", file=sys.stderr)
        return 2
    mistakes = arguments.mistake or sorted(p.stem for p in (ROOT / "fuzz/planted").glob(f"{arguments.target}_*.mutant"))
    missed, factors = 0, []
    for mistake in mistakes:
        cells = []
        for feedback in (True, False) if arguments.compare else (True,):
            runs = [run(binary, mistake, 1 + seed, arguments.seconds, arguments.executions, feedback) for seed in range(arguments.seeds)]
            cells.append(figure(runs))
        missed += cells[0][2]
        line = f"{mistake:44s}" + "   edges only: ".join(cell[0] for cell in cells)
        if arguments.compare:
            factors.append(cells[1][1] / max(1, cells[0][1]))
            line += f"  x {factors[-1]:.2f}"
        print(f"{line}  {cells[0][3]}", flush=True)
    if factors:
        print(f"executions without feedback over those with it: median {statistics.median(factors):.2f}")
    return 1 if missed else 0


sys.exit(main())
