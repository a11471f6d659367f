# SPDX-License-Identifier: Apache-2.0
"""`python -m assay judge PATH...`: calls that were written to files, judged."""
import argparse
import collections
import os
import sys

from . import arithmetic
from ._engines import dump_judge
from ._judge import record
from ._judge.report import reproduce

PASS, FINDING, USAGE, NOTHING = 0, 1, 2, 4  #: exit codes, those of the program


def main(arguments):
    parser = argparse.ArgumentParser(prog="assay judge", description="Judges calls of attention that were written to files.")
    parser.add_argument(
        "path", nargs="+", help=".npz of a failed call, or the folder that FlashInfer has written at FLASHINFER_LOGLEVEL=10"
    )
    parser.add_argument("--like", choices=arithmetic.names(), help="of dumps: the arithmetic that is claimed, in the place of what the call says")
    parser.add_argument("--max-rows", type=int, default=0, metavar="N", help="of dumps: so many rows of a call (0: all)")
    parser.add_argument("--findings", default="findings", metavar="DIR", help="of dumps: folder for what fails (findings)")
    parser.add_argument("--hint-seconds", type=float, metavar="S", help="of a failed call: processor time for suppositions about its cause (2)")
    options = parser.parse_args(arguments)
    return max(_dump(path, options) if os.path.isdir(path) else _file(path, options.hint_seconds) for path in options.path)


def _file(path, seconds):
    """The exit code of one file, with what there is to say printed."""
    try:
        report, notes = record.explained(path, seconds)
    except (record.RecordError, OSError) as error:
        print(f"assay judge: {path}: {error}", file=sys.stderr)
        return USAGE
    print("\n".join([f"{path}: {report}", *notes]))
    return PASS if report.passed else FINDING


def _dump(path, options):
    count, findings, left = 0, 0, collections.Counter()
    for folder, name, outcome, kept in dump_judge.judged(path, options.like, options.max_rows, options.findings):
        if isinstance(outcome, str):
            left[f"{name}: {outcome}"] += 1
            continue
        count += 1
        findings += not outcome.passed
        if outcome.passed:
            order = f", order of keys: {outcome.order}" if outcome.order else ""
            print(f"{folder}: {name}: inside, worst |error| / allowed {outcome.ratios}{order}, like {outcome.like}")
        else:
            print(f"{folder}: {name}: {outcome}\n{reproduce(kept)}")
    for reason, times in sorted(left.items()):
        print(f"not judged ({times}): {reason}")
    print(f"{path}: {count} calls judged, {findings} findings, {sum(left.values())} calls not judged")
    if count == 0:
        print(f"assay judge: {path}: no call was judged", file=sys.stderr)
        return NOTHING
    return FINDING if findings else PASS
