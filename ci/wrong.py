#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The catalogue of wrong kernels in corpus/ (corpus/README.md): its texts, its index, its runner.

wrong.py list [KIND...]               a row for each entry: kind, name, place, what is wrong, who must see it, since when
wrong.py run BUILD [KIND|NAME...]     whether they are seen, by the tests of a build tree; changes have ci/gate_trial.py

A mistake that is a text of the kernels is a file of `key = value` lines, NAME.mutant, or NAME.change for the gate:

  why      what is wrong with it, one line
  file     kernel header, relative to the root
  kind     expression:  FIND becomes (active ? (REPLACE) : (FIND))
           statement:   FIND becomes { if (active) { REPLACE } else { FIND } }
           declaration: of one name, `T x = FIND;` and `T x = REPLACE;`: what it is made from is the expression
           A change has no kind: its text is replaced.
  find     text of the original; must occur exactly once, white space is not significant; texts of mutants may lie
           within one another, and not cross
  replace  the wrong text; may be empty for a statement
  after    optional: text that stands right in front of FIND, which alone occurs more often
  at       optional: the offset in the file at which FIND stands, for mutants that a program made
  also_file, also_find, also_replace
           optional: a second place of the same mistake, of the same kind
  kernels  kernels it concerns, comma separated, of a change also `all`
  verdict  of a change: pass or block
  seen_by  optional: the fuzz targets whose seeds must see it, comma separated
  needs    optional, when plain attention on N(0,1) data in few splits does not show the mistake:
           `features`, `enable_pdl`, `even_lengths`, `distant_splits` (LSEs more than 127 apart),
           `eight_warps` (a block of them), `many_splits` (more than a block has warps),
           `balanced_plan` (no fixed splits), `empty_requests` (of length 0), `second_call` (with a plan),
           `many_requests`,
           `long_prefix` (of several tiles, shared by many rows), `few_states` (at most 4 in a
           merge), `many_states` (more than lanes), `odd_sizes` (that fill no block)
           or `nan` (in the inputs)
  set      optional, 1 by default: properties/measured/mutants.md lists the sets; the kill matrix has the first
"""
import argparse
import csv
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
REQUIRED = {".mutant": ("why", "file", "kind", "find", "replace", "kernels"),
            ".change": ("why", "verdict", "file", "find", "replace", "kernels")}
OPTIONAL = ("after", "at", "also_file", "also_find", "also_replace", "seen_by", "needs", "set",
            "line", "group", "operator")  # the last three of mutants that a program made
VALUES = {"kind": ("expression", "statement", "declaration"), "verdict": ("pass", "block")}
COLUMNS = ("kind", "name", "place", "what", "seen_by", "since")
#: The test of a kind, and the cases of it that concern a name.
FUNCTIONS = ROOT / "properties/python/tests/test_judge_callable.py"
TESTS = {"functions": (FUNCTIONS, "{}"), "mutants": ("properties/mutants_test", "*Mutants.*/{}"), "bugs": ("properties/bugs_test", "*Bugs.*/{}"),
         "calls": ("properties/bugs_test", "*Bugs.*/{}"),
         "planted": ("fuzz/fuzz_planted_test", "*Planted.*/{}"), "served": ("corpus/served/served_test", "*")}


def parse(path):
    """The fields of a text, and its name. Ends the program where they are not those of its kind."""
    text, required = {"name": path.stem}, REQUIRED[path.suffix]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        key, separator, value = (part.strip() for part in line.partition("="))
        if not separator or key not in required + OPTIONAL or key in text:
            sys.exit(f"{path}:{number}: expected 'key = value' with another key of {', '.join(required + OPTIONAL)}")
        if value not in VALUES.get(key, (value,)):
            sys.exit(f"{path}: {key} is '{value}', expected one of {', '.join(VALUES[key])}")
        text[key] = value
    for key in required:
        if key not in text:
            sys.exit(f"{path}: no '{key}'")
    return text


def write(folder, name, **fields):
    (folder / f"{name}.mutant").write_text("".join(f"{key} = {value}\n" for key, value in fields.items() if value is not None))


def pattern(find, after=""):
    """Group 1: the text with any white space between its tokens, behind another one."""
    after, find = (r"\s*".join(re.escape(t) for t in re.findall(r"\w+|[^\w\s]", text)) for text in (after, find))
    return re.compile(rf"{after}\s*({find})")


def span(place, text):
    """Where a place stands in the text of its file, or why that is not one place."""
    searched = pattern(place["find"], place.get("after", ""))
    hits = [searched.match(text, int(place["at"]))] if "at" in place else list(searched.finditer(text))
    if hits == [None]:
        return None, f"'{place['find']}' does not stand at {place['at']} of {place['file']}"
    if len(hits) != 1:
        return None, f"'{place['find']}' occurs {len(hits)} times in {place['file']}, expected once"
    return hits[0].span(1), None


def texts(*folders):
    """Every text of these folders, by name."""
    return [parse(path) for folder in folders for path in sorted(pathlib.Path(folder).glob("*.*"))
            if path.suffix in REQUIRED]


def table(path):
    """Rows of a CSV by the names of its columns."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def rows(name):
    return table(ROOT / "corpus" / name)


def several(values):
    return " ".join(dict.fromkeys(values))


def entries():
    """(kind, name, place, what is wrong, who must see it) of each."""
    killers = {}
    for row in rows("mutants/killers.csv"):
        killers.setdefault(row["name"], []).append(row["property"])
    for kind in ("mutants", "planted", "changes"):
        for text in texts(ROOT / "corpus" / kind):
            seen = killers.get(text["name"], []) if kind == "mutants" else []
            seen += [f"gate: {text['verdict']}"] if kind == "changes" else text.get("seen_by", "").split(", ")
            yield kind, text["name"], text["file"], text["why"], several(seen).strip()
    for kind in ("bugs", "calls"):
        for row in rows(f"{kind}/{kind}.csv"):
            if row["kernel"] != "mutant":
                yield kind, row["name"], row["kernel"], row["cause"], several(row["property"].split())
    for row in rows("functions/functions.csv"):
        yield "functions", row["name"], row["file"], row["what"], row["verdict"]
    for row in {(row["call"], row["mistake"]): row for row in rows("served/planted_h100.csv")}.values():
        yield "served", f"{row['call']}: {row['mistake']}", row["call"], row["mistake"], row["tier"]


def since():
    """The day of the commit that brought a file, by its name, or a row of a table, by that of the table and how it begins."""
    log = subprocess.run(["git", "-C", ROOT, "log", "--reverse", "--date=short", "--format=day %ad", "-p", "-U0", "--",
                          "*.mutant", "*.change", "*/bugs.csv", "*/calls.csv", "*/functions.csv", "*/planted_h100.csv"],
                         check=True, capture_output=True, text=True).stdout
    day, file, first = "", "", {}
    for line in log.splitlines():
        if line.startswith("day "):
            day = line[4:]
        elif line.startswith("+++ b/"):
            file = pathlib.Path(line).name
            first.setdefault(file, day)
        elif line.startswith("+"):
            for columns in (1, 2):
                first.setdefault((file, ": ".join(line[1:].split(",")[:columns])), day)
    return first


def ran(build, test, cases):
    """A test of a build tree, or of Python with what that tree has, ended."""
    if test != FUNCTIONS:
        return subprocess.run([build / test, f"--gtest_filter={':'.join(cases)}"], capture_output=True, text=True)
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", test, "-k", " or ".join(f"get_no_pass and {name}" for name in cases)]
    environment = {**os.environ, "ASSAY_PROGRAM": str(build.resolve() / "assay"), "PYTHONPATH": str(ROOT / "properties/python")}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def run(build, asked):
    """Runs the tests of these kinds and names, all by default; returns whether every entry is seen."""
    every = list(entries())
    unknown = set(asked) - {word for entry in every for word in entry[:2]}
    if unknown:
        sys.exit(f"wrong.py: no kind and no entry {', '.join(sorted(unknown))}")
    whole = True
    for kind, (test, cases) in TESTS.items():
        names = [e[1] for e in every if e[0] == kind and (not asked or kind in asked or e[1] in asked)]
        if not names:
            continue
        ended = ran(build, test, list(dict.fromkeys(cases.format(name) for name in names)))
        passed = re.search(r"PASSED  \] (\d+)|(?<!\S)(\d+)(?= passed)", ended.stdout)
        count = (passed[1] or passed[2]) if passed else "0"
        whole = whole and ended.returncode == 0 and count != "0"
        print(f"{kind}: {count} tests pass, exit code {ended.returncode}")
        print("".join(f"  {line}\n" for line in ended.stdout.splitlines() if line.startswith("[  FAILED  ]")), end="", flush=True)
    return whole


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("list", "run"))
    parser.add_argument("words", nargs="*")
    asked = parser.parse_args()
    if asked.command == "run":
        if not asked.words:
            parser.error("run BUILD")
        sys.exit(0 if run(pathlib.Path(asked.words[0]), asked.words[1:]) else 1)
    first = since()
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(COLUMNS)
    for kind, name, *rest in entries():
        if not asked.words or kind in asked.words:
            where = {"mutants": f"{name}.mutant", "planted": f"{name}.mutant", "changes": f"{name}.change",
                     "served": ("planted_h100.csv", name)}.get(kind, (f"{kind}.csv", name))
            out.writerow((kind, name, *rest, first.get(where, "")))


if __name__ == "__main__":
    main()
