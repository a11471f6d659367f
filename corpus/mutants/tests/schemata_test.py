#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ci/make_schemata.py: texts within texts, declarations, statements behind an `if` without braces, what it refuses."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
KERNEL = """#pragma once
inline int twice(int x, int y) {
  int sum = x + y;
  if (sum > 9) sum = 9;
  return sum * 2;
}
"""


def mutant(**fields):
    keys = {"why": "wrong", "file": "kernel.h", "kind": "expression", "replace": "", "kernels": "k"}
    return "".join(f"{key} = {value}\n" for key, value in {**keys, **fields}.items())


class Schemata(unittest.TestCase):
    def run_on(self, **mutants):
        """The instrumented header, or what the script said when it refused."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "kernel.h").write_text(KERNEL)
            for name, text in mutants.items():
                (root / f"{name}.mutant").write_text(text)
            script = [sys.executable, ROOT / "ci/make_schemata.py", root, root, root / "out"]
            result = subprocess.run(script, capture_output=True, text=True)
            self.omitted = (root / "out/mutant_omitted.inc").read_text() if result.returncode == 0 else ""
            return (root / "out/kernel.h").read_text() if result.returncode == 0 else result.stderr

    def value(self, source, active, x, y):
        """What twice(x, y) returns with a mutant active, by the compiler."""
        with tempfile.TemporaryDirectory() as folder:
            stub = "namespace assay::mutants { inline bool is_active(int id) { return id == %d; } }\n" % active
            body = source.replace('#include "corpus/mutants/active.h"\n', stub).replace("#pragma once", "")
            program = pathlib.Path(folder) / "program.cpp"
            program.write_text(f"{body}int main() {{ return twice({x}, {y}); }}\n")
            binary = program.with_suffix("")
            subprocess.run(["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", program, "-o", binary], check=True)
            return subprocess.run([binary]).returncode

    def test_a_text_within_another(self):
        source = self.run_on(
            a=mutant(kind="statement", find="int sum = x + y; if (sum > 9) sum = 9; return sum * 2;", replace="return x - y;"),
            b=mutant(find="sum > 9", replace="sum > 5"),
            c=mutant(kind="statement", find="sum = 9;"),
        )
        self.assertEqual([self.value(source, active, 5, 2) for active in (0, 1, 2, 3)], [14, 3, 18, 14])
        self.assertEqual([self.value(source, active, 8, 2) for active in (0, 1, 2, 3)], [18, 6, 18, 20])

    def test_headers_of_an_earlier_run_go(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            stale = root / "out/kernels/merge/gone.cuh"
            stale.parent.mkdir(parents=True)
            stale.write_text("")
            of_build = stale.with_name("instantiations.def")  # which the build writes before
            of_build.write_text("")
            (root / "kernels").mkdir()
            (root / "kernels/kernel.h").write_text(KERNEL)
            (root / "a.mutant").write_text(mutant(file="kernels/kernel.h", find="sum > 9", replace="sum > 5"))
            subprocess.run([sys.executable, ROOT / "ci/make_schemata.py", root, root, root / "out"], check=True)
            self.assertFalse(stale.exists())
            self.assertTrue(of_build.exists())
            self.assertTrue((root / "out/kernels/kernel.h").exists())

    def test_a_declaration(self):
        source = self.run_on(a=mutant(kind="declaration", find="int sum = x + y;", replace="int sum = x * y;"))
        self.assertEqual([self.value(source, active, 3, 2) for active in (0, 1)], [10, 12])
        refused = self.run_on(a=mutant(kind="declaration", find="int sum = x + y;", replace="int other = x * y;"))
        self.assertIn("not two declarations of one name", refused)

    def test_a_statement_behind_an_if(self):
        source = self.run_on(a=mutant(kind="statement", find="sum = 9;", replace="sum = 8;"))
        self.assertEqual([self.value(source, active, 9, 9) for active in (0, 1)], [18, 16])

    def test_several_of_one_text(self):
        source = self.run_on(a=mutant(find="sum * 2", replace="sum"), b=mutant(find="sum * 2", replace="sum * 3"))
        self.assertEqual([self.value(source, active, 1, 1) for active in (0, 1, 2)], [4, 2, 6])

    def test_one_of_several_equal_texts(self):
        second = KERNEL.index("sum", KERNEL.index("sum = 9"))
        source = self.run_on(a=mutant(find="sum", replace="x", at=second))
        self.assertEqual([self.value(source, active, 9, 9) for active in (0, 1)], [18, 36])
        self.run_on(a=mutant(find="sum", replace="x", at=second + 1))
        self.assertEqual(self.omitted, '"a",\n')

    def test_what_is_not_there_is_left_out(self):
        self.run_on(a=mutant(find="sum * 4", replace="sum"), b=mutant(find="sum * 2", replace="sum"))
        self.assertEqual(self.omitted, '"a",\n')

    def test_texts_that_cross_are_refused(self):
        crossing = self.run_on(a=mutant(find="x + y", replace="x"), b=mutant(find="sum = x +", replace="sum ="))
        self.assertIn("a and b overlap" if crossing.find("a and b") >= 0 else "b and a overlap", crossing)

    def test_neighbours_and_texts_with_one_beginning_are_no_crossing(self):
        source = self.run_on(a=mutant(kind="statement", find="sum = 9;", replace="sum = 8;"), b=mutant(kind="statement", find="return sum * 2;", replace="return sum;"),
                             c=mutant(find="x + y", replace="x"), d=mutant(find="x", after="sum =", replace="y"))  # fmt: skip
        self.assertEqual([self.value(source, active, 9, 3) for active in range(5)], [18, 16, 9, 18, 12])

    def test_the_table_and_what_a_second_run_leaves_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "kernel.h").write_text(KERNEL)
            right = dict(find="sum * 2", replace="sum")
            for name, fields in {"a": right, "b": {**right, "needs": "features"}, "c": {**right, "set": "2"}, "d": {**right, "set": "1", "seen_by": "fuzz_x"}, "gone": {"find": "z"}}.items():
                (root / f"{name}.mutant").write_text(mutant(**fields))
            script = [sys.executable, ROOT / "ci/make_schemata.py", root, root, root / "deep/out"]
            times = []
            for _ in range(2):
                said = subprocess.run(script, capture_output=True, text=True, check=True).stderr
                self.assertEqual(said, "warning: mutant gone left out: 'z' occurs 0 times in kernel.h, expected once\n")
                times.append([path.stat().st_mtime_ns for path in sorted((root / "deep/out").iterdir())])
            self.assertEqual(times[0], times[1])
            rows = [("a", "false", ""), ("b", "true", ""), ("c", "true", ""), ("d", "false", "fuzz_x")]
            table = [f'{{{at}, "{name}", "kernel.h", "wrong", "k", {special}, "{seen}"}},' for at, (name, special, seen) in enumerate(rows, 1)]
            self.assertEqual((root / "deep/out/mutant_table.inc").read_text().splitlines(), table)
            (root / "deep/out/mutant_table.inc").write_text("old")
            subprocess.run(script, capture_output=True, check=True)
            self.assertEqual((root / "deep/out/mutant_table.inc").read_text().splitlines(), table)


if __name__ == "__main__":
    unittest.main()
