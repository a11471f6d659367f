#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The catalogue of wrong kernels is whole: nothing is missing, every text stands at its place, what is no text is refused."""
import collections
import contextlib
import csv
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci"))
import wrong  # noqa: E402

RIGHT = {"why": "wrong", "file": "a.h", "kind": "expression", "find": "1", "replace": "2", "kernels": "k"}


class Texts(unittest.TestCase):
    def refusal(self, name="a.mutant", extra="", **fields):
        """What is said of a text; None where it is taken."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, name)
            fields = {key: value for key, value in {**RIGHT, **fields}.items() if value is not None}
            path.write_text("".join(f"{key} = {value}\n" for key, value in fields.items()) + extra)
            try:
                wrong.parse(path)
            except SystemExit as said:
                return str(said)
        return None

    def test_what_is_refused(self):
        self.assertIsNone(self.refusal())
        self.assertIsNone(self.refusal("a.change", kind=None, verdict="block"))
        self.assertIn("no 'find'", self.refusal(find=None))
        self.assertIn("no 'verdict'", self.refusal("a.change", kind=None))
        self.assertIn("kind is 'word'", self.refusal(kind="word"))
        self.assertIn("a.mutant:7", self.refusal(extra="neds = features\n"))
        self.assertIn("a.mutant:7", self.refusal(extra="why = twice\n"))
        self.assertIn("a.mutant:7", self.refusal(extra="a line of a value\n"))

    def test_a_text_stands_once(self):
        place = {"file": "a.h", "find": "x + y", "after": "return"}
        self.assertEqual(wrong.span(place, "x + y; return x  +y;"), ((14, 19), None))
        self.assertIn("occurs 0 times", wrong.span(place, "x + y;")[1])
        self.assertIn("occurs 2 times", wrong.span(place, "return x + y; return x + y;")[1])

    # mutants_test and fuzz_planted_test refuse theirs; a trial of the gate is run by hand.
    def test_changes_stand_in_the_kernels(self):
        for change in wrong.texts(ROOT / "corpus/changes"):
            self.assertIsNone(wrong.span(change, (ROOT / change["file"]).read_text())[1], change["name"])

    def test_seeds_see_every_planted_mistake(self):
        for text in wrong.texts(ROOT / "corpus/planted"):
            self.assertTrue("seen_by" in text or text.get("set") == "numeric", text["name"])


class Catalogue(unittest.TestCase):
    def setUp(self):
        self.entries = list(wrong.entries())

    def test_it_only_grows(self):
        """corpus/README.md says how many of each kind there were at least."""
        said = re.findall(r"^\| `(\w+)` .*\| (\d+) \|$", (ROOT / "corpus/README.md").read_text(), re.M)
        least = {kind: int(number) for kind, number in said}
        counts = collections.Counter(entry[0] for entry in self.entries)
        self.assertEqual(set(least), set(counts))
        for kind, number in least.items():
            self.assertGreaterEqual(counts[kind], number, kind)

    def test_no_name_is_there_twice(self):
        names = collections.Counter(entry[:2] for entry in self.entries)
        self.assertEqual([name for name, number in names.items() if number > 1], [])

    def test_every_entry_says_what_is_wrong(self):
        for entry in self.entries:
            self.assertTrue(all(entry[:4]), entry)

    def test_killers_are_of_mutants(self):
        mutants = {entry[1] for entry in self.entries if entry[0] == "mutants"}
        self.assertEqual({row["name"] for row in wrong.rows("mutants/killers.csv")} - mutants, set())

    def test_a_wrong_name_is_not_run(self):
        ran = subprocess.run([sys.executable, "-B", ROOT / "ci/wrong.py", "run", "build", "nobody"], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("no entry nobody", ran.stderr)

    def test_a_run_needs_tests_that_ran_and_passed(self):
        for said, code, whole in (("[  PASSED  ] 3 tests.", 0, True), ("[  PASSED  ] 0 tests.", 0, False), ("", 0, False), ("[  PASSED  ] 3 tests.", 1, False)):
            with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
                test = pathlib.Path(folder, wrong.TESTS["bugs"][0])
                test.parent.mkdir(parents=True)
                test.write_text(f"#!/bin/sh\necho \"$*\" >>$0.calls\necho '{said}'\nexit {code}\n")
                test.chmod(0o755)
                self.assertIs(wrong.run(pathlib.Path(folder), ["bugs"]), whole, (said, code))
                bugs = [entry[1] for entry in self.entries if entry[0] == "bugs"]
                wrong.run(pathlib.Path(folder), bugs[:2])
                chosen = [":".join(f"*Bugs.*/{name}" for name in dict.fromkeys(names)) for names in (bugs, bugs[:2])]
                self.assertEqual(pathlib.Path(f"{test}.calls").read_text().splitlines(), [f"--gtest_filter={names}" for names in chosen])

    def test_functions_are_asked_by_pytest_with_the_program_of_the_build(self):
        ended = mock.Mock(stdout="...\n12 passed, 1 skipped in 3s\n", returncode=0)
        names = [entry[1] for entry in self.entries if entry[0] == "functions"]
        with mock.patch.object(wrong.subprocess, "run", return_value=ended) as ran, contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertTrue(wrong.run(pathlib.Path("/build"), names[:2]))
        command, options = ran.call_args.args[0], ran.call_args.kwargs
        self.assertEqual(command[1:], ["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", wrong.FUNCTIONS, "-k", " or ".join(f"get_no_pass and {name}" for name in names[:2])])
        self.assertEqual((options["env"]["ASSAY_PROGRAM"], options["env"]["PYTHONPATH"]), ("/build/assay", str(ROOT / "properties/python")))
        self.assertEqual(said.getvalue(), "functions: 12 tests pass, exit code 0\n")

    def test_one_kind_that_is_not_seen_is_enough(self):
        says = {"properties/bugs_test": "[  PASSED  ] 3 tests.\n[  FAILED  ] Bugs.x\n", "fuzz/fuzz_planted_test": "[  PASSED  ] 2 tests.\n"}
        ended = lambda build, test, cases: mock.Mock(stdout=says[test], returncode=int("FAILED" in says[test]))  # noqa: E731
        with mock.patch.object(wrong, "ran", ended), contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual([wrong.run(None, asked) for asked in (["bugs", "planted"], ["planted"])], [False, True])
        lines = ["bugs: 3 tests pass, exit code 1", "  [  FAILED  ] Bugs.x", "planted: 2 tests pass, exit code 0"]
        self.assertEqual(said.getvalue().splitlines(), [*lines, lines[-1]])

    def program(self, *words):
        with mock.patch.object(sys, "argv", ["wrong.py", *words]), contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(io.StringIO()), \
                mock.patch.object(wrong, "run", lambda build, names: (str(build), names) == ("build", ["bugs"])):
            try:
                code = wrong.main()
            except SystemExit as error:
                code = error.code
        return code, said.getvalue()

    def test_the_program_runs_and_lists(self):
        self.assertEqual([self.program(*words)[0] for words in (("run", "build", "bugs"), ("run", "build"), ("run",), ("walk",))], [0, 1, 2, 2])
        chosen = [next(entry for entry in self.entries if entry[0] == kind) for kind in wrong.TESTS] + [next(entry for entry in self.entries if entry[0] == "changes")]
        days = {"mutants": "{}.mutant", "planted": "{}.mutant", "changes": "{}.change"}
        first = {days[kind].format(name) if kind in days else ({"served": "planted_h100.csv"}.get(kind, f"{kind}.csv"), name): f"day of {kind}" for kind, name, *_ in chosen}
        with mock.patch.multiple(wrong, entries=lambda: iter(chosen), since=lambda: first):
            for words, kinds in (((), [entry[0] for entry in chosen]), (("bugs", "served"), ["bugs", "served"])):
                head, *rows = csv.reader(io.StringIO(self.program("list", *words)[1]))
                self.assertEqual(tuple(head), wrong.COLUMNS)
                self.assertEqual(sorted(rows), sorted([*entry, f"day of {entry[0]}"] for entry in chosen if entry[0] in kinds))

    def test_who_must_see_an_entry(self):
        seen = {entry[:2]: entry[4] for entry in self.entries}
        killers = [row for row in wrong.rows("mutants/killers.csv")]
        name = killers[0]["name"]
        self.assertEqual(seen["mutants", name], " ".join(dict.fromkeys(row["property"] for row in killers if row["name"] == name)))
        self.assertTrue(all(seen["changes", text["name"]] == f"gate: {text['verdict']}" for text in wrong.texts(ROOT / "corpus/changes")))
        for text in wrong.texts(ROOT / "corpus/planted"):
            self.assertEqual(seen["planted", text["name"]], text.get("seen_by", "").replace(",", ""))
        mutants = [row for kind in ("bugs", "calls") for row in wrong.rows(f"{kind}/{kind}.csv") if row["kernel"] == "mutant"]
        self.assertFalse({row["name"] for row in mutants} & {name for kind, name in seen if kind in ("bugs", "calls")})

    def test_the_day_is_that_of_the_first_commit(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(wrong, "ROOT", folder):
            subprocess.run(["git", "init", "-q", folder], check=True)
            for day, texts in (("2026-01-01", {"a.mutant": "1", "bugs.csv": "one,x\n"}), ("2026-01-02", {"a.mutant": "2", "bugs.csv": "one,y\ntwo,x\n", "b.change": ""}),
                               ("2026-01-03", {"planted_h100.csv": "call,mistake,z\n", "b.change": "1"})):  # fmt: skip
                for name, text in texts.items():
                    pathlib.Path(folder, "kind").mkdir(exist_ok=True)
                    pathlib.Path(folder, "kind", name).write_text(text)
                when = {"GIT_AUTHOR_DATE": f"{day}T12:00:00", "GIT_COMMITTER_DATE": f"{day}T12:00:00"}
                subprocess.run(["git", "-C", folder, "add", "."], check=True)
                subprocess.run(["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", day], env={**os.environ, **when}, check=True)
            first = wrong.since()
        self.assertEqual([first[key] for key in ("a.mutant", ("bugs.csv", "one"), ("bugs.csv", "two"), "b.change", ("planted_h100.csv", "call: mistake"))],
                         [f"2026-01-0{day}" for day in (1, 1, 2, 3, 3)])  # an empty file has no line that says when it came


if __name__ == "__main__":
    unittest.main()
