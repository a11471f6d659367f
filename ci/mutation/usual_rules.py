# SPDX-License-Identifier: Apache-2.0
"""What the acceptance rules that tests usually have see of the mutants of a score (`assay mutants --usual-rules`)."""
import collections
import json
import math
import pathlib
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

RULES = ("1e-2", "1e-3", "98%", "2x")


def document_of(run_limited, program, name, seed, seconds):
    """What `mutants --usual-rules` says of one mutant; None when it did not end in that time."""
    with tempfile.TemporaryDirectory() as folder:
        document = pathlib.Path(folder) / "rules.json"
        command = [program, "--seed", str(seed), "--json", document, "mutants", "--usual-rules", "--threads", "2", "--mutant", name]
        code, _ = run_limited(command, seconds)
        if code is None:
            return None
        if code != 0:
            sys.exit(f"{' '.join(map(str, command))}: exit code {code}")
        return json.loads(document.read_text())["rows"][0]


def words_of(row, right):
    """The rules that reject what they accept of the right kernels, or how the kernel ended."""
    if row is None:
        return "timed_out"
    if set(row["ended"]) - set(right["ended"]):
        return "ended"
    words = [rule for rule, cases in row["rejected"].items() if set(cases) - set(right["rejected"][rule])]
    return " ".join(words or (["stopped"] if set(row["stopped"]) - set(right["stopped"]) else ["none"]))


def judge(run_limited, correct, options, results):
    """Fills the column usual. run_limited(command, seconds) runs a program; `correct` names the right kernels."""
    program = options.build / "assay"
    right = document_of(run_limited, program, correct, options.seed, math.inf)
    rejected = ", ".join(f"{rule} {len(cases)}" for rule, cases in right["rejected"].items())
    print(f"of {right['cases']} cases of the right kernels are rejected by {rejected}", flush=True)

    def one(row):
        words = words_of(document_of(run_limited, program, row["mutant"], options.seed, options.seconds), right)
        with results.lock:
            row["usual"] = words
            print(f"{row['mutant']}: {words}", flush=True)
            results.write()

    todo = [row for row in results.rows if row["outcome"] != "unviable" and not row.get("usual")]
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, todo))
    print_summary(results.rows)


def print_summary(rows):
    judged = [row for row in rows if row["outcome"] not in ("unviable", "same") and row["triage"] not in ("equivalent", "allowed")]
    seen = collections.Counter(word for row in judged for word in row["usual"].split())
    ended = seen["ended"]
    print(f"\nof {len(judged)} {ended} ended, {seen['stopped']} stopped on the executor alone, {seen['timed_out']} timed out, "
          f"{seen['none']} are seen by no rule;")
    for rule in RULES:
        print(f"{rule:5} sees {ended + seen[rule]}, {100 * (ended + seen[rule]) / len(judged):.1f} %")
