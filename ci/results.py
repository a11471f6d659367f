#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Results of benchmarks say where they were measured.

Usage: results.py [FOLDER]   (kernels/bench/results)
Each JSON file names its device, its date and a commit of this history. What does not stands in the table of journal.md,
between "<!-- commits -->" and "<!-- /commits -->", with the reason. A file there that is in order, or that there is not, is an
error too. The scripts that make tables and plots read results through `load`, which refuses the same.
"""
import json
import pathlib
import re
import subprocess
import sys

HASH = re.compile(r"\b[0-9a-f]{7,40}\b")


def git(folder, *arguments):
    return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)


def whole_history(folder):
    """Whether every commit that there is can be asked for."""
    said = git(folder, "rev-parse", "--is-shallow-repository")
    return said.returncode == 0 and said.stdout.strip() == "false"


def complaint(result, folder):
    """Empty, or why nobody can measure the result again."""
    for field in ("device", "date"):
        if not result.get(field):
            return f"no \"{field}\""
    commit = str(result.get("commit", ""))
    hashes = HASH.findall(commit)
    if not hashes:
        return f"its \"commit\" is \"{commit}\": put in the one that was built"
    if "dirty" in commit:
        return f"its \"commit\" is \"{commit}\": measured with changes that nobody can build again"
    if whole_history(folder):
        for name in hashes:
            if git(folder, "cat-file", "-e", f"{name}^{{commit}}").returncode != 0:
                return f"commit {name} is not in this history"
    return ""


def excused(folder):
    """Names in the table of the journal beside the results -> their row's commit."""
    journal = folder / "journal.md"
    text = journal.read_text() if journal.exists() else ""
    table = re.search(r"<!-- commits -->(.*?)<!-- /commits -->", text, re.S)
    rows = re.findall(r"^\| `(\S+\.json)` \| ([^|]+) \| ([^|]+) \|$", table.group(1) if table else "", re.M)
    return {name: commit.strip() for name, commit, _ in rows}


def load(path):
    """A result to make a page of; ends the script where it is not to be."""
    path = pathlib.Path(path)
    result = json.loads(path.read_text())
    wrong = complaint(result, path.parent)
    if wrong and path.name not in excused(path.parent):
        sys.exit(f"{path}: {wrong}")
    return result


def check(folder):
    """A line for each result that is not in order."""
    rows = excused(folder)
    for name in sorted(set(rows) - {path.name for path in folder.glob("*.json")}):
        yield f"journal.md: there is no {name}"
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text())
        wrong = complaint(result, folder)
        if wrong and path.name not in rows:
            yield f"{path.name}: {wrong}"
        if path.name in rows and rows[path.name] != result.get("commit"):
            yield f"{path.name}: journal.md says commit {rows[path.name]}, the file {result.get('commit')}"
        if path.name in rows and not wrong:
            yield f"journal.md: {path.name} needs no reason"


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "kernels/bench/results"
    lines = list(check(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default))
    print("\n".join(lines), end="\n" if lines else "")
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
