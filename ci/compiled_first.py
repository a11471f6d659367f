#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which headers a build has compiled alone already: those that some file includes before anything else.

Usage: compiled_first.py BUILD: prints them, by the build's compile_commands.json, a line each.

Of files that are compiled several at a time only the first has nothing in front of it. A file without an object in the
build folder was not compiled, and one whose first include path is not the tree (mutants) was compiled with others'."""
import json
import pathlib
import re
import shlex
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def first_include(path):
    """The header in quotes that `path` includes before any other, or None."""
    for line in path.read_text().splitlines():
        if found := re.match(r'\s*#\s*(include|if\w*|define)\b\s*(?:"([^"]+)")?', line):
            return found[2] if found[1] == "include" else None
    return None


def compiled_first(units, root=ROOT):
    """Headers of the tree, by compile_commands.json's `units`."""
    out = set()
    for unit in units:
        words = shlex.split(unit["command"])
        paths = [word for word in words if word.startswith("-I")]
        built = pathlib.Path(unit["directory"]) / words[words.index("-o") + 1]
        if unit["file"].endswith(".c") or paths[:1] != [f"-I{root}"] or not built.exists():
            continue
        header = first_include(pathlib.Path(unit["file"]))
        if header and header.endswith(".cpp"):
            header = first_include(pathlib.Path(header))
        if header and (root / header).is_file():
            out.add(header)
    return out


if __name__ == "__main__":
    print("\n".join(sorted(compiled_first(json.loads((pathlib.Path(sys.argv[1]) / "compile_commands.json").read_text())))))
