#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes mutants of the kernels from their syntax tree, by the operators of ci/mutation.

machine_mutants.py OUTPUT_DIR [--sample N --seed S] [--operators NAME ...] [--under FOLDER ...]
machine_mutants.py OUTPUT_DIR --viable BUILD

Writes OUTPUT_DIR/<name>.mutant in the format of ci/wrong.py, and prints how many there are by group of files and
by operator, and how many places no schema can hold. With --sample every mutant is as likely as any other, and groups and
operators are represented in proportion: one of every k of the list in their order, shuffled within. --operators and --under keep those alone that are made by these, and of files in these folders.
--viable moves what does not compile to OUTPUT_DIR/unviable, by the commands of a build tree that is configured
with -DASSAY_MUTANT_FOLDER=OUTPUT_DIR (nothing need be built). Needs Debian's python3-clang-14."""
import argparse
import collections
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "ci"))
import wrong  # noqa: E402
from mutation import syntax  # noqa: E402
from mutation.catalog import catalog  # noqa: E402
from mutation.compile import Viability  # noqa: E402


def sample(mutants, count, seed):
    """Systematic: of the list ordered by stratum, shuffled within, every (all / count)-th from a random one on."""
    rng = random.Random(seed)
    order = list(mutants)
    rng.shuffle(order)
    order.sort(key=lambda m: (m.group, m.operator))
    step = len(order) / count
    start = rng.random() * step
    return [order[int(start + i * step)] for i in range(count)]


def table(mutants, out):
    groups = sorted({m.group for m in mutants})
    cells = collections.Counter((m.operator, m.group) for m in mutants)
    print(f"{'operator':<20}" + "".join(f"{g:>9}" for g in groups) + f"{'all':>9}", file=out)
    for operator in dict.fromkeys(sorted(m.operator for m in mutants)):
        row = [cells[operator, g] for g in groups]
        print(f"{operator:<20}" + "".join(f"{n:>9}" for n in row) + f"{sum(row):>9}", file=out)
    row = [sum(m.group == g for m in mutants) for g in groups]
    print(f"{'all':<20}" + "".join(f"{n:>9}" for n in row) + f"{sum(row):>9}", file=out)


def write(folder, mutants):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.mutant"):
        old.unlink()
    for m in mutants:
        wrong.write(folder, m.name, why=m.why, file=m.file, line=m.line, at=m.at, kind=m.kind, find=m.find, replace=m.replace,
                    kernels=m.kernels, group=m.group, operator=m.operator)


def is_wanted(mutant, options):
    under = options.under is None or any(mutant.file.startswith(folder.rstrip("/") + "/") for folder in options.under)
    return under and (options.operators is None or mutant.operator in options.operators)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--sample", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--operators", nargs="+", metavar="NAME")
    parser.add_argument("--under", nargs="+", metavar="FOLDER")
    parser.add_argument("--viable", type=pathlib.Path, metavar="BUILD")
    options = parser.parse_args()
    if options.viable:
        dropped = Viability(options.output.resolve(), options.viable.resolve()).drop()
        print("\n".join(f"does not compile: {name}" for name in dropped))
        return
    if syntax.cindex is None:
        sys.exit(f"machine_mutants.py {syntax.MISSING}")
    mutants, not_made = catalog(ROOT)
    mutants = [m for m in mutants if is_wanted(m, options)]
    table(mutants, sys.stdout)
    for reason, count in sorted(not_made.items()):
        print(f"not made, {reason}: {count}")
    if options.sample:
        mutants = sample(mutants, min(options.sample, len(mutants)), options.seed)
        print(f"\nsample of {len(mutants)}, seed {options.seed}")
        table(mutants, sys.stdout)
    write(options.output, mutants)


if __name__ == "__main__":
    main()
