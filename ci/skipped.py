#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every test that the last run in these build folders skipped, with its reason: skipped.py BUILD...

Reads what ctest wrote of the run (Testing/Temporary/LastTest.log). A test program may pass and have skipped some of
its own tests (pytest with -rs says which), so what each printed is looked at, not ctest's word alone."""
import pathlib
import re
import sys

TEST = re.compile(r"^\d+/\d+ Testing: (.+?)\n(.*?)^Test (Passed|Failed|Skipped)\.", re.M | re.S)
GTEST = re.compile(r": Skipped\n([^\n]*)")
PYTEST = re.compile(r"^SKIPPED \[(\d+)\] [^\n]*?: (.+)$", re.M)


def skipped(log):
    """(test, reason) of each in a log."""
    for name, output, verdict in TEST.findall(log):
        reasons = [" ".join(reason.split()) for reason in GTEST.findall(output)]
        reasons += [f"{reason} ({count})" for count, reason in PYTEST.findall(output)]
        if verdict == "Skipped" and not reasons:
            reasons = ["no reason given"]
        yield from ((name, reason) for reason in reasons)


def main(folders):
    for folder in map(pathlib.Path, folders):
        found = list(skipped((folder / "Testing/Temporary/LastTest.log").read_text(errors="replace")))
        print(f"{folder.name}: {len(found)} skipped")
        for name, reason in found:
            print(f"  {name}: {reason}")


if __name__ == "__main__":
    main(sys.argv[1:])
