#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rooms of Python whose lines are changed (python_mutants.py): which tests run on a mutant, what they see, and what a table says."""
import contextlib
import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import python_mutants  # noqa: E402
from in_folder import InFolder  # noqa: E402

#: Stands for coverage: of a file the second line is run by every test, and others by none.
COVERAGE = """import json, pathlib
NAMES = pathlib.Path("names.json")
class Coverage:
    def __init__(self, config_file): self.names = [pathlib.Path(config_file).read_text()]
    def start(self): pass
    stop = start
    def switch_context(self, name): self.names.append(name)
    def save(self): NAMES.write_text(json.dumps(self.names))
class CoverageData:
    def read(self): self.names = json.loads(NAMES.read_text())[1:]
    def measured_files(self): return ["/elsewhere/a.py"]
    def contexts_by_lineno(self, file): return {2: self.names}
"""
SOURCE = "def value(x):\n    return x + 1\n\ndef other(x):\n    while x > 99: x = x\n    return x - 1\n"
TESTS = {"test_a.py": "from assay import a\ndef test_drawn(): pass\ndef test_value(): assert a.value(2) == 3\n",
         "test_b.py": "from assay import a\ndef test_other(): assert a.other(2) == 1\n", "test_check.py": "def test_apart(): pass\n"}


def text_of(call, *arguments):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        call(*arguments)
    return said.getvalue()


class Rooms(InFolder):
    def test_a_room_of_python_is_tried(self):
        test = "import sys\nsys.path.insert(0, 'ci')\nimport a\nsys.exit(a.value(2) != 3)\n"
        files = {"ci/a.py": "def value(x):\n    y = 7\n    while x < 0:\n        x = x\n    return x + 1\n", "ci/tests/a_test.py": test, "ci/tests/programs_test.py": "", "ci/other.py": "x = 1\n"}
        for name, text in files.items():
            self.write(f"tree/{name}", text)
        for words in (("init", "-q"), ("add", "."), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "base")):
            subprocess.run(["git", "-C", self.root / "tree", *words], check=True)
        path = self.root / "rows.csv"

        def run(*options):
            words = ["python_mutants.py", "ci", "--results", str(path), "--seconds", "1", *options]
            with mock.patch.object(python_mutants, "ROOT", self.root / "tree"), mock.patch.object(sys, "argv", words):
                printed = text_of(python_mutants.main)
            with path.open() as file:
                return printed, list(csv.DictReader(file))

        self.assertEqual(len(run("--sample", "2", "--seed", "3")[1]), 2)
        for _ in range(2):  # the second time nothing is left
            printed, rows = run()
            self.assertEqual({(row["line"], row["text"]): row["outcome"] for row in rows},
                             {("2", "7 -> (7 + 1)"): "survived", ("3", "x < 0 -> (x <= 0)"): "survived", ("3", "0 -> (0 + 1)"): "survived", ("5", "x + 1 -> (x - 1)"): "killed",
                              ("5", "x + 1 -> None"): "killed", ("5", "1 -> (1 + 1)"): "killed"})  # fmt: skip
            self.assertEqual((len(rows), {row["file"] for row in rows}, "ci: 6 mutants of 1 files" in printed, "3 of 6 killed" in printed), (6, {"ci/a.py"}, True, True))
        self.assertEqual((self.root / "tree/ci/a.py").read_text(), files["ci/a.py"])
        self.write("tree/ci/a.py", "def value(x):\n    while x < 3:\n        x += 1\n    return x\n")
        subprocess.run(["git", "-C", self.root / "tree", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "a loop"], check=True)
        path.unlink()
        self.assertEqual({row["outcome"] for row in run()[1] if row["text"] == "x += 1 -> pass"}, {"hung"})

    def test_summary_of_python(self):
        path = self.write("rows.csv", "room,outcome,triage\na,killed,\na,hung,\na,survived,hole: x\na,survived,equivalent: y\nb,survived,\n")
        self.assertEqual(text_of(python_mutants.summary, path).splitlines(),
                         ["a: 2 of 3 killed, 66.7 % (20.8 to 93.9), 1 equivalent", "b: 0 of 1 killed, 0.0 % (0.0 to 79.3), 0 equivalent"])

    def test_a_room_with_pytest_runs_the_tests_of_a_line(self):
        """The lines that tests run are kept beside the results; where no test runs a line, all but those apart are tried."""
        files = {"properties/python/assay/__init__.py": "", "properties/python/assay/a.py": SOURCE, "properties/python/coverage.py": COVERAGE,
                 **{f"properties/python/tests/{name}": text for name, text in TESTS.items()}}
        for name, text in files.items():
            self.write(f"tree/{name}", text)
        for words in (("init", "-q"), ("add", "."), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "base")):
            subprocess.run(["git", "-C", self.root / "tree", *words], check=True)
        words = ["python_mutants.py", "assay", "--results", str(self.root / "r.csv"), "--seconds", "20", "--python", "/usr/bin/python3", "--build", str(self.root)]
        beside = {"PYTHONPATH": str(self.root / "tree/properties/python"), "PYTHONDONTWRITEBYTECODE": "1"}
        with mock.patch.object(python_mutants, "ROOT", self.root / "tree"), mock.patch.object(sys, "argv", words), mock.patch.dict("os.environ", beside):
            text_of(python_mutants.main)
        lines = json.loads((self.root / "r.lines.json").read_text())
        self.assertEqual(lines, {"a.py": {"2": ["test_a.py::test_drawn", "test_a.py::test_value", "test_b.py::test_other"]}})
        with (self.root / "r.csv").open() as file:
            rows = {row["text"]: (row["outcome"], row["by"]) for row in csv.DictReader(file)}
        self.assertEqual([rows[text] for text in ("x + 1 -> (x - 1)", "x - 1 -> (x + 1)", "99 -> (99 + 1)")],
                         [("killed", "test_a.py::test_value"), ("killed", "test_b.py::test_other"), ("survived", "")])  # fmt: skip

    def test_which_tests_run_on_a_mutant(self):
        tree = pathlib.Path("/tree")
        commands = lambda room, path, line=1, covering={}: [  # noqa: B006, E731
            [word.removeprefix("/tree/ci/tests/") for word in command] for command in python_mutants.tests_of(tree, room, tree / path, line, covering)]
        last = ["/usr/bin/python3", "-B", "programs_test.py"]
        for stem, first, on_tree in (("wrong", "wrong", []), ("gate_trial", "trials", []), ("docs", "docs", [["check"]]), ("workflows", "workflows", [[""]]),
                                     ("tree", "tree", [["layers"], ["shape"]])):  # fmt: skip
            ran = [["/usr/bin/python3", "-B", f"/tree/ci/{stem}.py", *filter(None, words)] for words in on_tree]
            self.assertEqual(commands("ci", f"ci/{stem}.py"), [["/usr/bin/python3", "-B", f"{first}_test.py"], *ran, last])
        run = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
        apart = python_mutants.ROOMS["assay"][2]
        with mock.patch.object(pathlib.Path, "exists", lambda path: "gone" not in path.name):
            lines = {("a.py", 1): ["test_drawn.py::b", "gone.py::x", "test_a.py::a", "test_drawn.py::b"], ("worker.py", 1): ["test_a.py::a"]}
            self.assertEqual(commands("assay", "a.py", 1, lines), [[*run, "test_a.py::a", "test_drawn.py::b"]])
            self.assertEqual(commands("assay", "a.py", 2, lines), [[*run, *(f"--ignore={name}" for name in apart), "."]])
            self.assertEqual(commands("assay", "worker.py", 1, lines), [[*run, "test_a.py::a"], [*run, *apart]])
            self.assertEqual(commands("assay", "worker.py", 2, lines), [[*run, *apart]])

    def test_tests_that_fail_without_a_mutant_end_it(self):
        tests = types.SimpleNamespace(run=lambda arguments, covered: (1, "FAILED x"))
        options = types.SimpleNamespace(results=self.root / "r.csv")
        self.write("tree/properties/python/tests/x", "")
        with self.assertRaisesRegex(SystemExit, "the tests fail without a mutant:\nFAILED x"):
            python_mutants.contexts(tests, self.root / "tree", "assay", options)
        self.write("tree/ci/tests/x", "")
        self.assertEqual(python_mutants.contexts(tests, self.root / "tree", "ci", options), {})


if __name__ == "__main__":
    unittest.main()
