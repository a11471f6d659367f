#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ci/machine_mutants.py on a small source: which mutants are made, which are not, what they compute; the sample; the score."""
import collections
import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "ci"))
import mutation_score  # noqa: E402
from mutation import catalog, syntax  # noqa: E402

SOURCE = """#include <algorithm>
#include <cstdint>
#define RETURN_IF(x) do { if (x) return 7; } while (false)
constexpr int halved(int x) { return x / 2; }
template <int kN> int least_of(const int (&values)[kN]) {
  int least = values[0];
  for (int i = 1; i < kN; ++i)
    if (values[i] < least) least = values[i];
  return least;
}
int value(int x, int y) {
  static_assert(sizeof(int) > 2);
  RETURN_IF(x > 99);
  const int values[3] = {x, y, x - y}; // three
  const int64_t wide = int64_t{x} * y;
  if (wide == 0) return std::max(x, y);
  return least_of<3>(values) + static_cast<int>(wide % 5);
}
"""


@unittest.skipIf(syntax.cindex is None, syntax.MISSING)
class Made(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = syntax.trees(ROOT, SOURCE, lambda path: path == "small.cpp", "small.cpp")["small.cpp"]
        cls.made = list(catalog.candidates(cls.tree))

    def changes(self, operator):
        return {(SOURCE[start:end], wrong) for name, _, start, end, _, wrong in self.made if name == operator}

    def test_operators(self):
        self.assertIn(("i < kN", "i <= kN"), self.changes("relational"))
        self.assertIn(("x > 99", "x >= 99"), self.changes("relational"))  # within a macro's argument
        self.assertIn(("x - y", "x + y"), self.changes("arithmetic"))
        self.assertIn(("i < kN", "i < (kN) - 1"), self.changes("loop"))
        self.assertIn(("wide == 0", "false"), self.changes("condition"))
        self.assertIn(("std::max(x, y)", "std::min(x, y)"), self.changes("minimum"))
        self.assertIn(("int64_t{x} * y", "(x) * y"), self.changes("cast"))
        self.assertIn(("int64_t{x} * y", "static_cast<int32_t>(int64_t{x} * y)"), self.changes("narrow"))
        self.assertIn(("RETURN_IF(x > 99);", ""), self.changes("statement"))
        self.assertIn(("values[i]", "values[0]"), self.changes("index"))
        self.assertIn(("5", "5 - 1"), self.changes("constant"))

    def test_what_the_compiler_computes_is_told_apart(self):
        reasons = collections.Counter(node.compile_time for _, node, *_ in self.made)
        self.assertGreater(reasons["constexpr function"], 0)
        self.assertGreater(reasons["constant"], 0)  # static_assert
        self.assertGreater(reasons["template argument"], 0)
        self.assertNotIn(("3", "3 + 1"), {(SOURCE[s:e], w) for _, n, s, e, _, w in self.made if not n.compile_time})

    def test_every_mutant_is_a_program(self):
        """All in one copy of the source: with none active the right values, with each what its text says."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "small.cpp").write_text(SOURCE)
            (root / "mutants").mkdir()
            for number, (_, node, start, end, kind, wrong) in enumerate(self.made):
                if node.compile_time or "//" in SOURCE[start:end]:
                    continue
                (root / f"mutants/m{number}.mutant").write_text(
                    f"why = wrong\nfile = small.cpp\nat = {start}\nkind = {kind}\nkernels = k\n"
                    f"find = {catalog.one_line(SOURCE[start:end])}\nreplace = {catalog.one_line(wrong)}\n")
            subprocess.run([sys.executable, ROOT / "ci/make_schemata.py", root / "mutants", root, root], check=True)
            text = (root / "small.cpp").read_text().replace(
                '#include "corpus/mutants/active.h"',
                "namespace assay::mutants { inline bool is_active(int) { return false; } }")
            (root / "program.cpp").write_text(f"{text}int main() {{ return value(7, 5) != 2 || value(0, 4) != 4; }}\n")
            subprocess.run(["c++", "-std=c++20", "-w", root / "program.cpp", "-o", root / "program"], check=True)
            self.assertEqual(subprocess.run([root / "program"]).returncode, 0)


class Counted(unittest.TestCase):
    def test_score(self):
        low, high = mutation_score.wilson(95, 100)
        self.assertAlmostEqual(low, 0.8882, 4)
        self.assertAlmostEqual(high, 0.9785, 4)
        rows = [{"group": "g", "operator": "o", "outcome": o, "triage": t}
                for o, t in (("killed", ""), ("crashed", ""), ("hung", ""), ("survived", ""), ("survived", "equivalent"), ("timed_out", "allowed"),
                             ("same", ""), ("unviable", ""))]
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            mutation_score.summary(rows)
        self.assertIn("| all | 8 | 1 | 1 | 1 | 1 | 0 | 1 | 1 | 1 | 1 | 75.0 |", said.getvalue())


if __name__ == "__main__":
    unittest.main()
