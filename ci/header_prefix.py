#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which headers may be read precompiled where a header is compiled alone.

Usage: header_prefix.py FOLDER <HEADERS: writes FOLDER/<n>.h, lists of headers, and prints a line `n HEADER` for each
header: the last list all of which it reaches anyway, so that no name becomes visible that was not, or `-`.

What stands in a conditional does not count as reached. Reading the standard library is two thirds of the time of a
header, and reading the executor four fifths of that of a kernel's."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Chosen for what they save: few headers reach more, most reach one of these.
PREFIXES = [
    {"string"},
    {"string", "vector"},
    {"functional", "string", "vector"},
    {"algorithm", "bit", "cstring", "memory", "span", "string", "unordered_map", "vector"},
    {"array", "cmath", "functional", "memory", "optional", "span", "stdexcept", "string", "utility", "variant", "vector"},
    {"algorithm", "array", "bit", "chrono", "cmath", "functional", "map", "memory", "optional", "set", "span", "stdexcept",
     "string", "string_view", "utility", "variant", "vector"},
    {"kernels/arch/thread.cuh"},
]


def included(text):
    """What a file includes outside conditionals: standard headers, files of the tree."""
    standard, own, depth = set(), set(), 0
    for line in text.splitlines():
        if re.match(r"\s*#\s*if", line):
            depth += 1
        elif re.match(r"\s*#\s*endif", line):
            depth -= 1
        elif depth == 0 and (found := re.match(r'\s*#\s*include\s*([<"])([^>"]+)', line)):
            (standard if found[1] == "<" else own).add(found[2])
    return standard, own


def reached(header, root=ROOT):
    """Headers that `header` includes, itself or through files of the tree."""
    out, seen, left = set(), set(), [header]
    while left:
        path = left.pop()
        if path in seen or not (root / path).is_file():
            continue
        seen.add(path)
        standard, own = included((root / path).read_text())
        out |= standard
        left += own
    return out | seen - {header}


def prefix_of(header, root=ROOT):
    """Index of the last of PREFIXES that `header` reaches whole, or None."""
    has = reached(header, root)
    return max((i for i, prefix in enumerate(PREFIXES) if prefix <= has), default=None)


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    for number, prefix in enumerate(PREFIXES):
        # The folder is an include path, so headers of the tree are found there, too.
        (folder / f"{number}.h").write_text("".join(f"#include <{name}>\n" for name in sorted(prefix)))
    for line in sys.stdin.read().splitlines():
        number = prefix_of(line)
        print("-" if number is None else number, line)
