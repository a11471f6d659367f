#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts the changes of corpus/changes to the gate, each as a commit of its own in a clone; ci/wrong.py has their format.

Usage: gate_trial.py PROGRAM CLONE [--only NAME]... [--budget 10m] [--csv FILE] [--seed N]
CLONE is made from this repository when it is not there; its HEAD is the base. A line per change, and in the end exit
code 1 unless each has its verdict, and blocked ones their kernel. With --csv, changes that FILE has are not run again.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import time

import wrong

COLUMNS = ("change", "expected", "got", "as_expected", "red", "kernel", "property", "case_lines", "seconds")


def git(clone, *words):
    return subprocess.run(["git", "-C", clone, *words], check=True, capture_output=True, text=True).stdout.strip()


def apply(clone, change):
    path = pathlib.Path(clone, change["file"])
    text = path.read_text()
    place, error = wrong.span(change, text)
    if error:
        sys.exit(f"{change['name']}: {error}")
    path.write_text(text[:place[0]] + change["replace"] + text[place[1]:])


def gate(program, clone, base, budget, seed):
    report = pathlib.Path(clone + ".json").resolve()
    begin = time.monotonic()
    ended = subprocess.run([program, "gate", "--base", base, "--head", "HEAD", "--budget", budget, "--seed", str(seed),
                            "--json", report, "--quiet"], cwd=clone, stdout=subprocess.DEVNULL)
    if ended.returncode not in (0, 1):
        sys.exit(f"assay gate ended with {ended.returncode}")
    return json.loads(report.read_text()), time.monotonic() - begin


def judge(change, document, seconds):
    got = "block" if document["exit"] else "pass"
    new = [f for f in document["findings"] if f["red"]]
    right = change["kernels"] == "all" or all(f["kernel"] in change["kernels"].split(",") for f in new)
    first = new[0] if new else {"kernel": "", "property": "", "case": ""}
    return {"change": change["name"], "expected": change["verdict"], "got": got,
            "as_expected": "yes" if got == change["verdict"] and right else "no",
            "red": " ".join(sorted({line["id"] for line in document["red"]})),
            "kernel": " ".join(sorted({f["kernel"] for f in new})), "property": first["property"],
            "case_lines": len(first["case"].splitlines()), "seconds": round(seconds)}


def run(change, options, base):
    git(options.clone, "checkout", "--quiet", "--detach", base)
    apply(options.clone, change)
    git(options.clone, "-c", "user.name=trial", "-c", "user.email=trial@localhost", "commit", "--quiet", "--all",
        "--message", change["why"])
    document, seconds = gate(options.program, options.clone, base, options.budget, options.seed)
    git(options.clone, "checkout", "--quiet", "--detach", base)
    return judge(change, document, seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("clone")
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--budget", default="10m")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--csv", type=pathlib.Path)
    options = parser.parse_args()
    if not pathlib.Path(options.clone).exists():
        subprocess.run(["git", "clone", "--quiet", wrong.ROOT, options.clone], check=True)
    base = git(options.clone, "rev-parse", "HEAD")
    rows = wrong.table(options.csv) if options.csv and options.csv.exists() else []
    done = {row["change"] for row in rows}
    for change in wrong.texts(wrong.ROOT / "corpus/changes"):
        if change["name"] in done or (options.only and change["name"] not in options.only):
            continue
        row = run(change, options, base)
        rows.append(row)
        print("{change:36} {expected:5} {got:6} {as_expected:3} {seconds:5} s  {red} {kernel} {property}".format(**row),
              flush=True)
        if options.csv:
            with options.csv.open("w", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
    right = sum(row["as_expected"] == "yes" for row in rows)
    print(f"{right} of {len(rows)} as expected")
    sys.exit(0 if right == len(rows) else 1)


if __name__ == "__main__":
    main()
