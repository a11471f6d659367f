#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a planted target needs for each mistake, from an empty corpus.

  cmake --preset fuzz && cmake --build --preset fuzz --target all_planted
  fuzz/time_to_find.py tile                          the mistakes of corpus/ that its seeds must see, once each
  fuzz/time_to_find.py tile --seeds 10 --compare     with and without numeric feedback, medians
  fuzz/time_to_find.py tile --jobs 16                so many processes at a time
  fuzz/time_to_find.py paged --compare field         whole kernels, with and without mutations by field
  fuzz/time_to_find.py tile --mistake o_not_rescaled any of corpus/mutants and corpus/planted
  fuzz/time_to_find.py tile --folder build/narrow    the mistakes tile_* of a folder

A run that finds nothing within --seconds or --executions is censored: it counts as the limit, with a '>'. Exit status 1
when a median is censored (--compare: of the first), 2 when a target cannot run.
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
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "ci"))
import wrong  # noqa: E402

SWITCHES = {"feedback": "ASSAY_FUZZ_FEEDBACK", "field": "ASSAY_FUZZ_BY_FIELD"}


def run(binary, mistake, seed, seconds, executions, off):
    """(seconds, executions, what was said or None) of one run from an empty corpus."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        process = subprocess.run(
            [binary, f"-seed={seed}", f"-max_total_time={seconds}", "-max_len=300", "-len_control=0",
             f"-runs={executions}", "-print_final_stats=1",
             f"-artifact_prefix={folder}/", folder],
            env={**os.environ, "ASSAY_MUTANT": mistake, **({SWITCHES[off]: "0"} if off else {})},
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
    parser.add_argument("target", help="tile, merge, paged, cascade, schedule")
    parser.add_argument("--mistake", action="append", help="by name")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--executions", type=int, default=-1, help="a limit, too: on a machine with other work")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--compare", nargs="?", const="feedback", choices=SWITCHES, help="without it, too")
    parser.add_argument("--folder", type=pathlib.Path, help="of the mistakes")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--build", default="build/fuzz")
    arguments = parser.parse_args()
    binary = ROOT / arguments.build / "fuzz" / f"planted_{arguments.target}"
    if not binary.exists():
        print(f"{binary} is not built: cmake --build --preset fuzz --target all_planted", file=sys.stderr)
        return 2
    target = f"fuzz_{arguments.target}"
    texts = wrong.texts(arguments.folder) if arguments.folder else wrong.texts(ROOT / "corpus/mutants", ROOT / "corpus/planted")
    mistakes = arguments.mistake or [text["name"] for text in texts if (
        text["name"].startswith(f"{arguments.target}_") if arguments.folder else target in text.get("seen_by", "").split(", "))]
    switches = (None, arguments.compare) if arguments.compare else (None,)
    missed, factors = 0, []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        pending = {(mistake, off): [pool.submit(run, binary, mistake, 1 + seed, arguments.seconds, arguments.executions, off)
                                    for seed in range(arguments.seeds)] for mistake in mistakes for off in switches}
        for mistake in mistakes:
            runs = {off: [future.result() for future in pending[mistake, off]] for off in switches}
            cells = [figure(runs[off]) for off in switches]
            missed += cells[0][2]
            line = f"{mistake:44s}" + f"   without {arguments.compare}: ".join(cell[0] for cell in cells)
            if arguments.compare:
                factors.append(cells[1][1] / max(1, cells[0][1]))
                line += f"  x {factors[-1]:.2f}"
            print(f"{line}  {cells[0][3]}", flush=True)
    if factors:
        print(f"executions without {arguments.compare} over those with it: median {statistics.median(factors):.2f}")
    return 1 if missed else 0


sys.exit(main())
