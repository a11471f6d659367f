#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trials of mistakes, from the program's answer to the row of a table: gate_trial.py, mutation_score.py, usual_rules.py."""
import contextlib
import csv
import io
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import unittest
import warnings
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import gate_trial  # noqa: E402
import machine_mutants  # noqa: E402
import mutation_score  # noqa: E402
from mutation import usual_rules  # noqa: E402

CHANGE = "why = a change\nverdict = {}\nfile = kernels/a.h\nfind = {}\nreplace = {}\nkernels = {}\n"
BLOCKED = {"exit": 1, "red": [{"id": "b"}, {"id": "a"}, {"id": "b"}], "findings": [
    {"red": False, "kernel": "old"}, {"red": True, "kernel": "v2", "property": "p", "case": "x\ny"}, {"red": True, "kernel": "v1", "property": "q", "case": ""}]}
#: Says how it was called, and blocks every text but one.
PROGRAM = """#!/bin/sh
for word; do [ "$last" = --json ] && out=$word; last=$word; done
echo "$*" >>{folder}/calls
grep -q same kernels/a.h && echo '{{"exit": 0, "findings": [], "red": []}}' >"$out" && exit
cp {folder}/blocked.json "$out"
exit 1
"""


def text_of(call, *arguments):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        call(*arguments)
    return said.getvalue()


class InFolder(unittest.TestCase):
    def setUp(self):
        watch = warnings.catch_warnings(record=True)
        self.addCleanup(watch.__exit__, None, None, None)
        caught = watch.__enter__()
        warnings.simplefilter("always")
        self.addCleanup(lambda: self.assertEqual([str(warning.message) for warning in caught], []))  # of files that stay open
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()

    def write(self, name, text, mode=0o644):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path


class Gate(InFolder):
    def trial(self, *options, **changes):
        """(exit code, rows of the table, calls) of a trial of these changes."""
        git = lambda *words: subprocess.run(["git", "-C", self.root / "tree", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)  # noqa: E731
        self.write("tree/kernels/a.h", "one two\n")
        for name, fields in changes.items():
            self.write(f"tree/corpus/changes/{name}.change", CHANGE.format(*fields))
        git("init", "-q"), git("add", "."), git("commit", "-q", "-m", "base")
        program = self.write("assay", PROGRAM.format(folder=self.root), 0o755)
        self.write("blocked.json", json.dumps(BLOCKED))
        words = ["gate_trial.py", str(program), str(self.root / "clone"), "--csv", str(self.root / "rows.csv"), *options]
        with mock.patch.object(gate_trial.wrong, "ROOT", self.root / "tree"), mock.patch.object(sys, "argv", words):
            with self.assertRaises(SystemExit) as ended:
                text_of(gate_trial.main)
        self.assertEqual((self.root / "clone/kernels/a.h").read_text(), "one two\n")
        with (self.root / "rows.csv").open() as file:
            rows = {row["change"]: row for row in csv.DictReader(file)}
        return ended.exception.code, rows, (self.root / "calls").read_text()

    def test_each_has_its_verdict_and_its_kernels(self):
        both = "v1,v2"
        for kernels, verdict, new, right in ((both, "block", "three", True), ("all", "block", "three", True), ("v2", "block", "three", False),
                                             ("v1", "block", "three", False), ("none", "block", "three", False), (both, "pass", "three", False),
                                             ("v12,v21", "block", "three", False),  # names that begin like others
                                             ("v1", "pass", "same", True), ("v1", "block", "same", False)):  # fmt: skip
            with self.subTest(kernels=kernels, verdict=verdict, new=new):
                self.setUp()
                code, rows, calls = self.trial("--budget", "7s", "--seed", "5", change=(verdict, "two", new, kernels))
                self.assertEqual((code, rows["change"]["as_expected"]), (int(not right), "yes" if right else "no"))
                self.assertIn("--head HEAD --budget 7s --seed 5 --json", calls)
        seen = {key: value for key, value in rows["change"].items() if key != "seconds"}
        self.assertEqual(seen, dict(change="change", expected="block", got="pass", as_expected="no", red="", kernel="", property="", case_lines="0"))

    def test_a_row_says_what_was_found(self):
        _, rows, _ = self.trial(a=("block", "two", "three", "all"), b=("block", "one", "three", "all"))
        self.assertEqual(list(rows), ["a", "b"])
        self.assertEqual([rows["a"][key] for key in ("red", "kernel", "property", "case_lines")], ["a b", "v1 v2", "p", "2"])

    def test_what_has_a_row_is_not_tried_again_and_the_others_are_chosen(self):
        self.write("rows.csv", ",".join(gate_trial.COLUMNS) + "\na,block,block,no,,,,0,1\n")
        code, rows, calls = self.trial("--only", "b", "--only", "a", **{name: ("block", "two", "three", "all") for name in "abc"})
        self.assertEqual((code, list(rows), calls.count("--json")), (1, ["a", "b"], 1))

    def test_a_change_that_has_no_place_and_a_gate_that_fails_end_it(self):
        place = {"name": "a", "file": "a.h", "find": "four", "replace": ""}
        self.write("a.h", "one two")
        with self.assertRaisesRegex(SystemExit, "a: 'four' occurs 0 times"):
            gate_trial.apply(self.root, place)
        for code in (2, 3, 4, 127):
            program = self.write("gate", f"#!/bin/sh\nexit {code}\n", 0o755)
            with self.assertRaisesRegex(SystemExit, f"ended with {code}"):
                gate_trial.gate(program, str(self.root), "base", "1s", 1)


DRAWN = {"kernel": "k", "property": "p"}


class Score(InFolder):
    def test_a_draw(self):
        for row, code, outcome in (({}, 0, ("survived", "", "")), ({**DRAWN, "message": "wrong"}, 1, ("killed", "k", "p")),
                                   ({**DRAWN, "message": "the kernel's process ended"}, 1, ("crashed", "k", "p")),
                                   ({**DRAWN, "message": "x ended its process"}, 1, ("crashed", "k", "p")),
                                   ({**DRAWN, "message": "the channel of its process is shut"}, 1, ("crashed", "k", "p")),
                                   ({**DRAWN, "message": "has not returned for 60 s"}, 1, ("hung", "k", "p")),
                                   (None, 3, ("crashed", "", "")), ({}, -9, ("crashed", "", "")), ({}, None, ("timed_out", "", ""))):
            def limited(command, seconds):
                self.assertEqual((command[:3], command[5:], seconds), (["assay", "--seed", "4"], ["mutants", "--default-draw", "--threads", "4", "--mutant", "m"], 9))
                if row is not None:
                    command[4].write_text(json.dumps({"rows": [row]}))
                return code, 1.5  # noqa: B023

            with mock.patch.object(mutation_score, "run_limited", limited):
                self.assertEqual(mutation_score.draw("assay", "m", 4, 9), (*outcome, 1.5), (row, code))

    def test_a_limit_ends_a_program_and_its_children(self):
        self.assertEqual(mutation_score.run_limited(["sh", "-c", "exit 3"], 9)[0], 3)
        busy = f"sh -c 'while :; do :; done' & echo $! >{self.root}/child; wait"
        code, taken = mutation_score.run_limited(["sh", "-c", busy], 0.3)
        self.assertEqual((code, 0.2 < taken < 5), (None, True))
        child = pathlib.Path("/proc", (self.root / "child").read_text().strip(), "stat")
        end = time.monotonic() + 20
        while child.exists() and child.read_text().rpartition(")")[2].split()[0] != "Z":
            self.assertLess(time.monotonic(), end, "the child lives on")

    def test_the_time_of_children_that_have_ended_counts(self):
        busy = f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.3: pass'"
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        with subprocess.Popen(["sh", "-c", f"{busy}; {busy}; {busy}; echo; read line"], **pipes) as process:
            process.stdout.readline()
            self.assertGreater(mutation_score.processor_seconds(process.pid), 0.8)

    def test_results_are_kept_row_by_row(self):
        mutant = lambda name: dict(name=name, group="g", operator="o", file="f", line="1", why="o: a becomes b")  # noqa: E731
        results = mutation_score.Results(self.root / "rows.csv")
        results.add(mutant("a"), "timed_out", seconds=20)
        results.add(mutant("b"), "killed", "k", "p", 3)
        results.add(mutant("c"), "timed_out", seconds=20)
        results.rows[2]["triage"] = "hole"
        self.assertEqual([results.done(limit) for limit in (20, 21)], [{"a", "b", "c"}, {"b", "c"}])
        results.add(mutant("a"), "survived", seconds=30)
        rows = mutation_score.Results(self.root / "rows.csv").rows
        self.assertEqual([(r["mutant"], r["outcome"], r["kernel"], r["property"], r["seconds"], r["change"], r["triage"]) for r in rows],
                         [("a", "survived", "", "", "30", "a becomes b", ""), ("b", "killed", "k", "p", "3", "a becomes b", ""),
                          ("c", "timed_out", "", "", "20", "a becomes b", "hole")])  # fmt: skip

    def test_what_tests_fail_first(self):
        for name, code in (("abi_test", 0), ("merge_test", 1)):
            self.write(f"build/kernels/x/{name}", f'#!/bin/sh\n[ "$ASSAY_MUTANT" = "" ] || [ "$ASSAY_MUTANT" = none ] || exit {code}\n', 0o755)
        rows = [dict(mutant=name, outcome=outcome, tests="") for name, outcome in (("seen", "survived"), ("none", "timed_out"), ("old", "killed"))]
        for row in rows:
            self.write(f"mutants/{row['mutant']}.mutant", "")
        options = types.SimpleNamespace(build=self.root / "build", folder=self.root / "mutants", jobs=1)
        results = mutation_score.Results(self.root / "none.csv")
        written = []
        results.rows, results.write = rows, lambda: written.append([row["tests"] for row in rows])
        self.assertEqual(text_of(mutation_score.run_tests, options, results), "seen: fails merge_test\nnone: fails none\n")
        self.assertEqual(written, [["merge_test", "", ""], ["merge_test", "none", ""]])
        slow = subprocess.TimeoutExpired("x", 120)
        rows[0]["tests"] = ""
        with mock.patch.object(mutation_score.subprocess, "run", side_effect=[types.SimpleNamespace(returncode=0)] * 2 + [slow]):
            text_of(mutation_score.run_tests, options, results)
        self.assertEqual(rows[0]["tests"], "abi_test")

    def test_a_run_draws_for_what_has_no_outcome_yet(self):
        text = "why = o: x\nfile = f\nkind = expression\nfind = 1\nreplace = 2\nkernels = k\nline = 1\noperator = o\ngroup = "
        for name, group in (("a", "g"), ("b", "h"), ("c", "g"), ("unviable/d", "g")):
            self.write(f"mutants/{name}.mutant", text + group + "\n")
        csv_path, drawn = self.root / "rows.csv", []
        outcomes = {"a": ("killed", "k", "p", 1), "b": ("survived", "", "", 2), "c": ("timed_out", "", "", 9), "(correct)": ("survived", "", "", 3)}
        same = types.SimpleNamespace(equal=lambda mutant: mutant["name"] == "b")

        def run(*options):
            drawn.clear()
            words = ["mutation_score.py", str(self.root / "mutants"), "build", "--results", str(csv_path), "--jobs", "1", "--seed", "6", *options]
            draw = lambda program, name, seed, seconds: drawn.append((name, seed, seconds)) or outcomes[name]  # noqa: E731
            with mock.patch.multiple(mutation_score, draw=draw, SameCode=lambda build, number: same), mock.patch.object(sys, "argv", words):
                self.printed = text_of(mutation_score.main)
            with csv_path.open() as file:
                return {row["mutant"]: (row["outcome"], row["reason"]) for row in csv.DictReader(file)}

        self.assertEqual(run("--seconds", "9", "--groups", "g"), {"d": ("unviable", ""), "a": ("killed", ""), "c": ("timed_out", "other machine code")})
        self.assertEqual(sorted(drawn), [("(correct)", 6, math.inf)] * 2 + [("a", 6, 9), ("c", 6, 9)])
        self.assertIn("2/2 1 killed", self.printed)
        self.assertEqual(run("--seconds", "9", "--control", "0")["b"], ("same", ""))
        self.assertEqual(drawn, [("b", 6, 9)])
        outcomes["c"] = ("killed", "k", "p", 10)
        self.assertEqual(run("--seconds", "20", "--control", "1")["c"], ("killed", ""))
        self.assertEqual(sorted(drawn), [("(correct)", 6, math.inf), ("c", 6, 20)])
        outcomes["(correct)"] = ("killed", "k", "p", 1)
        self.assertRaisesRegex(SystemExit, "do not pass", run)
        before = csv_path.read_text()
        results = mutation_score.Results(csv_path)
        results.rows.append({"unknown": 1})
        self.assertRaises(ValueError, results.write)
        self.assertEqual(csv_path.read_text(), before)  # a cut leaves the old rows

    def test_results_lie_beside_the_mutants_unless_it_is_said_where(self):
        class Opened(Exception):
            pass

        def opened(path):
            raise Opened(str(path))

        for words, path in ((["m", "b"], "m/results.csv"), (["m", "b", "--results", "r.csv"], "r.csv"), (["--summary", "s.csv"], "s.csv"), (["m", "b", "--usual-rules"], "m/results.csv")):
            with mock.patch.object(mutation_score, "Results", opened), mock.patch.object(sys, "argv", ["mutation_score.py", *words]):
                self.assertRaisesRegex(Opened, f"^{path}$", mutation_score.main)
        for words in ([], ["m"]):
            with mock.patch.object(sys, "argv", ["mutation_score.py", *words]), contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertRaises(SystemExit, mutation_score.main)
            self.assertIn("FOLDER and BUILD, or --summary CSV", said.getvalue())

    def test_usual_rules(self):
        right = {"ended": [1], "stopped": [2], "rejected": {"1e-2": [3], "2x": []}}
        said = lambda **fields: usual_rules.words_of({**right, **fields}, right)  # noqa: E731
        self.assertEqual(usual_rules.words_of(None, right), "timed_out")
        self.assertEqual(said(), "none")
        self.assertEqual(said(ended=[1, 2], rejected={"1e-2": [4], "2x": []}), "ended")
        self.assertEqual(said(stopped=[2, 5]), "stopped")
        self.assertEqual(said(stopped=[2, 5], rejected={"1e-2": [3, 4], "2x": [1]}), "1e-2 2x")
        rows = [dict(outcome=o, triage=t, usual=u) for o, t, u in (("killed", "", "ended"), ("killed", "", "1e-2 2x"), ("survived", "hole", "none"),
                                                                  ("same", "", ""), ("survived", "equivalent", "none"), ("unviable", "", ""))]
        printed = text_of(usual_rules.print_summary, rows)
        for words in ("of 3 1 ended, 0 stopped", "1 are seen by no rule", "1e-2  sees 2, 66.7 %", "98%   sees 1, 33.3 %"):
            self.assertIn(words, printed)


class Drawn(InFolder):
    def test_a_sample_goes_to_the_end_of_the_list(self):
        population = [types.SimpleNamespace(group=f"g{i % 2}", operator=i % 3, number=i) for i in range(19)]
        for count in (1, 7, 10, 19):
            drawn = [machine_mutants.sample(population, count, seed) for seed in range(99)]
            self.assertEqual({len({m.number for m in some}) for some in drawn}, {count})
            self.assertEqual({m.number for some in drawn for m in some}, set(range(19)), count)
            self.assertEqual(drawn[0], machine_mutants.sample(population, count, 0))
            self.assertLessEqual({sum(m.group == "g0" for m in some) for some in drawn}, {10 * count // 19, -(-10 * count // 19)})

    def test_which_are_wanted(self):
        wanted = lambda **given: machine_mutants.is_wanted(types.SimpleNamespace(file="kernels/tree/a.h", operator="loop"),  # noqa: E731
                                                           types.SimpleNamespace(**{"under": None, "operators": None, **given}))
        self.assertEqual([wanted(), wanted(under=["kernels/tree/"]), wanted(under=["kernels/plan", "kernels/tree"]), wanted(operators=["loop"])], [True] * 4)
        self.assertEqual([wanted(under=["kernels/tre"]), wanted(operators=["cast"]), wanted(under=["kernels"], operators=["cast"])], [False] * 3)


if __name__ == "__main__":
    unittest.main()
