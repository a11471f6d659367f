#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the executor reports of our kernels without one of their barriers, waits, phases, fences, counts or orders.

order_sites.py make FOLDER                    a mutant for each of them, removed or weakened, in the format of ci/wrong.py
order_sites.py run FOLDER BUILD --results CSV [--jobs 1]

BUILD is a build tree configured with -DASSAY_MUTANT_FOLDER=FOLDER: one library has them all, and chooses at run time. Of
each, `assay mutants --first-schedule` runs the cases that `assay check` draws, on the first schedule, until the executor
reports one; where it reports none, so do the cases of corpus/mutants/order_cases, and then the whole draw of `check`, each
case on its own schedule. The table has the report and
both of its lines. The column `reason` is written by hand and stays: a mutant that is not reported, or has one line
alone, needs one, or the exit code is 1. Needs Debian's python3-clang-14."""
import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import machine_mutants  # noqa: E402
import wrong  # noqa: E402
from mutation.catalog import catalog  # noqa: E402

OPERATORS = ("sync_removal", "sync_weakening", "wait_count", "atomic_removal")
COLUMNS = ("file", "line", "change", "mutant", "kernel", "schedule", "report", "at", "other", "reason")
#: Of which no draw has all: a long prefix of few rows, and one in fp8.
CASES = sorted((machine_mutants.ROOT / "corpus" / "mutants" / "order_cases").glob("*.case"))
#: file:line. A text of the mutants' tree has one line more at its head (ci/make_schemata.py).
PLACE = re.compile(r"(/machine/)?(kernels/[\w./]+):(\d+)")


def weakens(mutant):
    """A wait for more groups is no weaker, and a plain `or` is made by sync_weakening."""
    stronger = mutant.operator == "wait_count" and "- 1>" in mutant.replace
    return mutant.operator in OPERATORS and not stronger and not (mutant.operator == "atomic_removal" and "_or_" in mutant.find)


def make(folder):
    mutants = [m._replace(kernels=f"{m.kernels}, sharded_attention") if m.group == "exchange" else m
               for m in catalog(machine_mutants.ROOT)[0] if weakens(m)]
    machine_mutants.write(folder, mutants)
    print(f"{len(mutants)} mutants in {folder}")


def said(build, mutant, *draw):
    """What the program says of a mutant: the kernel, and the message of the executor."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        ended = subprocess.run([build / "assay", "mutants", *draw, "--threads", "1", "--mutant", mutant["name"], "--json", file.name],
                               capture_output=True, text=True)
        text = pathlib.Path(file.name).read_text()
    if not text:
        sys.exit(f"{mutant['name']}: {ended.stderr or ended.stdout}")
    found = json.loads(text)["rows"][0]
    message = re.search(r"hazard: (\S+: [a-z-]+: .*)", found.get("message", ""))
    return found.get("kernel", ""), message[1] if message else ""


def reported(build, mutant, reason):
    schedule = "first"
    kernel, message = said(build, mutant, "--first-schedule")
    if not message and not reason:
        kernel, message = said(build, mutant, "--first-schedule", "--case", *CASES)
        schedule = "case"
    if not message and not reason:
        kernel, message = said(build, mutant, "--default-draw")
        schedule = "drawn" if message else ""
    kind = re.match(r"\S+: ([a-z-]+): ", message)
    # Twice the same one where both parties are at one line.
    found = [f"{path}:{int(line) - bool(of_tree)}" for of_tree, path, line in PLACE.findall(message)]
    places = list(dict.fromkeys(found)) if len(set(found)) > 1 else found
    return {"file": mutant["file"], "line": mutant["line"], "change": mutant["why"].split(": ", 1)[1], "mutant": mutant["name"],
            "kernel": kernel if message else "", "schedule": schedule, "report": kind[1] if kind else "",
            "at": places[0] if places else "", "other": places[1] if len(places) > 1 else "", "reason": reason}


def run(folder, build, results, jobs):
    reasons = {row["mutant"]: row["reason"] for row in wrong.table(results)} if results.exists() else {}
    with ThreadPoolExecutor(jobs) as pool:
        rows = list(pool.map(lambda mutant: reported(build, mutant, reasons.get(mutant["name"], "")), wrong.texts(folder)))
    rows.sort(key=lambda row: (row["file"], int(row["line"]), row["mutant"]))
    with results.open("w", newline="") as file:
        out = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    seen = [row for row in rows if row["report"]]
    both = [row for row in seen if row["other"]]
    holes = [row["mutant"] for row in rows if not row["reason"] and not row["other"]]
    print(f"{len(rows)} mutants: {len(seen)} reported, {len(both)} with both lines, {sum(bool(row['reason']) for row in rows)} "
          f"with a reason, {len(holes)} holes {' '.join(holes)}")
    return not holes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("make", "run"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path, nargs="?")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    if asked.command == "make":
        return make(asked.folder)
    if asked.build is None or asked.results is None:
        parser.error("run FOLDER BUILD --results CSV")
    sys.exit(0 if run(asked.folder, asked.build, asked.results, asked.jobs) else 1)


if __name__ == "__main__":
    main()
