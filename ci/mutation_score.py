#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the default draw of `assay check` sees of the mutants of a folder (ci/machine_mutants.py).

mutation_score.py FOLDER BUILD [--results CSV] [--seconds 180] [--jobs 2] [--seed 1] [--order S] [--groups NAME ...]
mutation_score.py FOLDER BUILD --results CSV --usual-rules
mutation_score.py --summary CSV

BUILD is a build tree configured with -DASSAY_MUTANT_FOLDER=FOLDER. Every mutant is drawn for in a process of its own
until a property fails, for 180 s of processor time at most (90 s of two cores), in a random order, so that what has run
so far is a random sample, too. The results are appended mutant by mutant: the same command goes on where it ended, and
with more --seconds draws again for what timed out and nobody has triaged. Beside the first and behind the last the
kernels with no mutant active are drawn for and must pass. What is not killed and has the right kernel's machine code is told
apart, and the unit tests of the calls, as far as the target assay_mutated_tests is built, run over the other ones: what fails
first stands in the column tests, and counts in no score of the draw. --groups: mutants of these groups alone. Outcomes:

  killed      a property failed            crashed   the process of the kernel died     hung    or did not return
  survived    the draw ended with nothing  timed_out the draw did not end: no kill      same    survived, same machine code
  unviable    does not compile
--usual-rules: what 1e-2, 1e-3, 98 % and 2x see of the mutants of the results in the cases of within_budget with values N(0,1)
(`assay mutants --usual-rules`), in the column usual: the rules that reject a case of which they accept the right kernel's
result; `ended` where the kernel crashed, hung or refused; `stopped` where only the executor ended it; `timed_out`; `none`.

A person adds to what is not killed, in the column triage, `equivalent`, `allowed` (by kernels/abi/assay.h) or `hole`, and
why. The score is of all that are none of same, equivalent, allowed and unviable: what timed out counts as not killed. Its
interval is Wilson's, 95 %."""
import argparse
import collections
import csv
import json
import math
import os
import pathlib
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import wrong  # noqa: E402
from mutation import usual_rules  # noqa: E402
from mutation.compile import SameCode  # noqa: E402

COLUMNS = ("mutant", "group", "operator", "file", "line", "change", "outcome", "kernel", "property", "seconds", "tests", "triage",
           "reason", "usual")
KILLS, ALIVE = ("killed", "crashed", "hung"), ("survived", "timed_out")
CORRECT = "(correct)"
#: Of a process: so many properties and kernels are drawn for side by side, and what one of them alone sees is seen early.
THREADS = 4
TESTS = ("abi_test", "cascade_test", "decode_test", "exchange_test", "merge_test", "shared_memory_test")


def outcome_of(message):
    """By what the harness says of a kernel's process (properties/sut/child.cpp)."""
    if "has not returned for" in message:
        return "hung"
    if any(words in message for words in ("the kernel's process", "ended its process", "channel of its process")):
        return "crashed"
    return "killed"


def processor_seconds(session):
    """Of the living processes of a session, and of those that they have waited for."""
    ticks = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def run_limited(command, seconds):
    """(exit code or None when the limit ended it, processor seconds) of a program and its children."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    taken = 0.0
    try:
        while process.poll() is None and taken < seconds:
            taken = max(taken, processor_seconds(process.pid))
            time.sleep(0.2)
        return process.returncode, round(taken, 1)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # its children end with their channels
            process.wait()


def draw(program, name, seed, seconds):
    """(outcome, kernel, property, seconds) of one mutant."""
    with tempfile.TemporaryDirectory() as folder:
        document = pathlib.Path(folder) / "draw.json"
        command = [program, "--seed", str(seed), "--json", document, "mutants", "--default-draw", "--threads", str(THREADS),
                   "--mutant", name]
        code, taken = run_limited(command, seconds)
        if code is None:
            return "timed_out", "", "", taken
        if code < 0 or not document.exists():
            return "crashed", "", "", taken
        row = json.loads(document.read_text())["rows"][0]
    if "property" not in row:
        return "survived", "", "", taken
    return outcome_of(row["message"]), row["kernel"], row["property"], taken


class Results:
    """Rows of a CSV, appended one by one."""

    def __init__(self, path):
        self.path, self.lock = path, threading.Lock()
        self.rows = wrong.table(path) if path.exists() else []

    def done(self, seconds):
        """What need not run again with this limit."""
        return {row["mutant"] for row in self.rows
                if row["outcome"] != "timed_out" or row["triage"] or float(row["seconds"]) >= seconds}

    def add(self, mutant, outcome, kernel="", prop="", seconds=""):
        row = {"mutant": mutant["name"], "group": mutant["group"], "operator": mutant["operator"], "file": mutant["file"],
               "line": mutant["line"], "change": mutant["why"].partition(": ")[2], "outcome": outcome, "kernel": kernel,
               "property": prop, "seconds": seconds, "tests": "", "triage": "", "reason": "", "usual": ""}
        with self.lock:
            if any(old["mutant"] == row["mutant"] for old in self.rows):  # it timed out before
                self.rows = [row if old["mutant"] == row["mutant"] else old for old in self.rows]
                return self.write()
            self.rows.append(row)
            fresh = not self.path.exists()
            with self.path.open("a", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                if fresh:
                    writer.writeheader()
                writer.writerow(row)

    def write(self):
        whole = self.path.with_suffix(".new")  # a cut leaves the old rows or the new ones
        with whole.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
        whole.replace(self.path)


def check_correct(program, seed):
    outcome = draw(program, CORRECT, seed, math.inf)
    if outcome[0] != "survived":
        sys.exit(f"the kernels with no mutant active do not pass: {outcome}")
    print(f"no mutant active: passes, {outcome[3]} s", flush=True)


def run_all(options, results):
    program = options.build / "assay"
    mutants = [m for m in wrong.texts(options.folder) if not options.groups or m["group"] in options.groups]
    random.Random(options.order).shuffle(mutants)
    for path in sorted(options.folder.glob("unviable/*.mutant")):
        if path.stem not in results.done(0):
            results.add(wrong.parse(path), "unviable")
    todo = [m for m in mutants if m["name"] not in results.done(options.seconds)]
    done = len(mutants) - len(todo)

    def one(mutant):
        nonlocal done
        outcome = draw(program, mutant["name"], options.seed, options.seconds)
        results.add(mutant, *outcome)
        done += 1
        kills = sum(row["outcome"] in KILLS for row in results.rows)
        print(f"{done}/{len(mutants)} {kills} killed: {mutant['name']} {' '.join(map(str, outcome))}", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        controls = [pool.submit(check_correct, program, options.seed) for _ in range(options.control > 0)]
        list(pool.map(one, todo))
        for control in controls:
            control.result()
    if options.control > 1:
        check_correct(program, options.seed)


def tell_same_code(options, results):
    free = queue.Queue()
    for number in range(options.jobs):
        free.put(SameCode(options.build, number))

    def one(row):
        same = free.get()
        try:
            equal = same.equal(wrong.parse(options.folder / f"{row['mutant']}.mutant"))
        finally:
            free.put(same)
        with results.lock:
            row["outcome"] = "same" if equal else row["outcome"]
            row["reason"] = "" if equal else "other machine code"
            print(f"{row['mutant']}: {'same' if equal else 'other'} machine code", flush=True)
            results.write()

    todo = [row for row in results.rows if row["outcome"] in ALIVE and not row["reason"]
            and (options.folder / f"{row['mutant']}.mutant").exists()]
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, todo))


def run_tests(options, results):
    """Of a pull request's tests those that see the host side of calls."""
    tests = [path for name in TESTS for path in options.build.glob(f"kernels/*/{name}")]

    def failing(mutant):
        for test in tests:
            try:
                code = subprocess.run([test], env={**os.environ, **mutant}, capture_output=True, timeout=120)
                if code.returncode != 0:
                    return test.name
            except subprocess.TimeoutExpired:
                return test.name
        return "none"

    if tests and failing({}) != "none":
        sys.exit("the tests fail with no mutant active")

    def one(row):
        failed = failing({"ASSAY_MUTANT": row["mutant"]})
        with results.lock:
            row["tests"] = failed
            print(f"{row['mutant']}: fails {row['tests']}", flush=True)
            results.write()

    todo = [row for row in results.rows if tests and row["outcome"] in ALIVE and not row["tests"]
            and (options.folder / f"{row['mutant']}.mutant").exists()]
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, todo))


def wilson(hits, count):
    """95 % interval of a share."""
    if count == 0:
        return 0.0, 1.0
    z, p = 1.959964, hits / count
    middle, radius = p + z * z / (2 * count), z * math.sqrt(p * (1 - p) / count + z * z / (4 * count * count))
    return (middle - radius) / (1 + z * z / count), (middle + radius) / (1 + z * z / count)


def summary(rows):
    names = ("killed", "crashed", "hung", "survived", "timed_out", "same", "equivalent", "allowed", "unviable")

    def line(title, chosen):
        counts = collections.Counter(r["triage"] if r["triage"] in ("equivalent", "allowed") else r["outcome"] for r in chosen)
        kills = sum(counts[name] for name in KILLS)
        judged = kills + counts["survived"] + counts["timed_out"]
        low, high = wilson(kills, judged)
        score = f"{100 * kills / judged:.1f}" if judged else "-"
        cells = " | ".join(str(counts[name]) for name in names)
        print(f"| {title} | {len(chosen)} | {cells} | {score} | {100 * low:.1f} to {100 * high:.1f} |")

    print("| | mutants | " + " | ".join(names) + " | score % | interval |\n|---" + "|---" * (len(names) + 3) + "|")
    for key in ("group", "operator"):
        for value in sorted({row[key] for row in rows}):
            line(f"{key} {value}", [row for row in rows if row[key] == value])
    line("all", rows)
    if any(row.get("usual") for row in rows):
        usual_rules.print_summary(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("build", type=pathlib.Path, nargs="?")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--order", type=int, default=1, help="seed of the order in which mutants run")
    parser.add_argument("--groups", nargs="+", metavar="NAME")
    parser.add_argument("--control", type=int, default=2, choices=(0, 1, 2), help="how often the right kernels are drawn for")
    parser.add_argument("--usual-rules", action="store_true")
    parser.add_argument("--summary", type=pathlib.Path, metavar="CSV")
    options = parser.parse_args()
    if options.summary:
        return summary(Results(options.summary).rows)
    if options.build is None:
        parser.error("FOLDER and BUILD, or --summary CSV")
    results = Results(options.results or options.folder / "results.csv")
    if options.usual_rules:
        return usual_rules.judge(run_limited, CORRECT, options, results)
    run_all(options, results)
    tell_same_code(options, results)
    run_tests(options, results)
    summary(results.rows)


if __name__ == "__main__":
    main()
