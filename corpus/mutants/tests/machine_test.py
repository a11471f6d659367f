#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ci/machine_mutants.py on small sources: which mutants are made, which are not, what they compute; the score.

machine_test.py --record writes the syntax trees of the sources (recorded/trees.json), for machines without libclang, and every
mutant that is made of them (recorded/mutants.txt): a change of an operator shows there."""
import collections
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "ci"))
import mutation_score  # noqa: E402
import wrong  # noqa: E402
from mutation import catalog, syntax  # noqa: E402

RECORDED = pathlib.Path(__file__).parent / "recorded"

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
#: What only a kernel has.
KERNEL = """namespace arch {
int thread_idx(); int lane_id(); int warp_id(); int block_idx_x(); bool any(bool); float shfl_xor(float, int); float max_num(float, float);
void block_barrier(); void named_barrier(int, int); void mbarrier_init(int *, int); void mbarrier_wait(int *, unsigned);
template <int kLeft> void cp_async_wait(); void shared_store(float *, float);
unsigned atomic_inc_acq_rel(unsigned *, unsigned); unsigned atomic_or_relaxed(unsigned *, unsigned);
}
struct Dim { int x, y; };
struct View { float *k_data, *v_data; long stride_batch, stride_head; };
template <class Function> void launch_kernel(Function, Dim, int) {}
float row_of(const View &view, int request, int head, int begin, int end) {
  float d = 0.5f, m = -1;
  for (int row = begin; row < end && !(row > 99); ++row) {
    m = arch::max_num(m, view.k_data[request * view.stride_batch + head * view.stride_head + row]);
    if (m >= 2.f) continue;
    d += m - static_cast<float>(row);
  }
  return head % 2 ? d : d / m;
}
Dim grid_of(int rows, int heads) { return {rows, heads}; }
void kernel(float *out, int *full, int *empty, unsigned *count, int stage) {
  const long first = long{stage} << 3;
  if (arch::thread_idx() == 0) arch::mbarrier_init(full, 32);
  arch::block_barrier();
  arch::named_barrier(1, 64);
  while (arch::any(stage > 0)) stage -= 1;
  arch::mbarrier_wait(full, unsigned(stage & 1));
  arch::cp_async_wait<1>();
  arch::shared_store(out + arch::warp_id(), arch::shfl_xor(out[arch::lane_id()], 16));
  if (arch::atomic_inc_acq_rel(count, 7u) == 7u || arch::atomic_or_relaxed(count, 1u) != 0u) return;
  out[arch::block_idx_x()] = row_of(View{out, out, first, 4}, 0, 1, stage, 8);
}
void call(int rows, bool wide) {
  if (wide) rows *= 2;
  launch_kernel([] {}, {rows, 1}, 128);
}
"""
SOURCES = {"small.cpp": SOURCE, "kernel.cpp": KERNEL}
FIELDS = ("kind", "start", "end", "name", "type", "returns", "compile_time", "arguments")


def parsed(name):
    return syntax.trees(ROOT, SOURCES[name], lambda path: path == name, name)[name]


def record_of(node):
    return [*(getattr(node, field) for field in FIELDS), [record_of(child) for child in node.children]]


def node_of(record, parent=None):
    node = syntax.Node(*record[:3], parent)
    for field, value in zip(FIELDS, record):
        setattr(node, field, value)
    node.children = [node_of(child, node) for child in record[-1]]
    return node


def trees():
    """The recorded trees, by file."""
    made = {}
    for name, roots in json.loads((RECORDED / "trees.json").read_text()).items():
        made[name] = syntax.Tree(f"folder/{name}", SOURCES[name])
        made[name].roots = [node_of(root) for root in roots]
    return made


def lines_of(made):
    """Every mutant of these trees as a line, and why others are not made."""
    for name, tree in made.items():
        not_made = collections.Counter()
        with mock.patch.object(catalog, "FILES", [(tree.path, "group", "kernel")]):
            for mutant in catalog.mutants_of(tree, not_made):
                yield f"{mutant.name} {mutant.kind} at {mutant.at}: {mutant.why}: {mutant.replace}"
        yield from (f"{name}: not made, {reason}: {count}" for reason, count in sorted(not_made.items()))


class Recorded(unittest.TestCase):
    def test_these_mutants_are_made(self):
        self.assertEqual(list(lines_of(trees())), (RECORDED / "mutants.txt").read_text().splitlines())

    def test_each_stands_at_its_place(self):
        for name, tree in trees().items():
            with mock.patch.object(catalog, "FILES", [(tree.path, "group", "kernel")]):
                for m in catalog.mutants_of(tree, collections.Counter()):
                    begin, end = wrong.span({"file": m.file, "find": m.find, "at": m.at}, tree.text)[0]
                    self.assertEqual((begin, catalog.one_line(tree.text[begin:end])), (m.at, m.find))
                    self.assertEqual((tree.text.count("\n", 0, begin) + 1, m.file, m.group, m.kernels), (m.line, tree.path, "group", "kernel"))

    @unittest.skipIf(syntax.cindex is None, syntax.MISSING)
    def test_libclang_gives_these_trees(self):
        if "clang/14" not in syntax.resource_dir():
            self.skipTest("the trees are those of clang 14")
        for name, tree in trees().items():
            here, there = (json.dumps([record_of(root) for root in roots]) for roots in (parsed(name).roots, tree.roots))
            self.assertEqual(here, there)


@unittest.skipIf(syntax.cindex is None, syntax.MISSING)
class Made(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = list(catalog.candidates(parsed("small.cpp")))

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


def record():
    RECORDED.mkdir(exist_ok=True)
    found = {name: [record_of(root) for root in parsed(name).roots] for name in SOURCES}
    (RECORDED / "trees.json").write_text(json.dumps(found, separators=(",", ":")) + "\n")
    (RECORDED / "mutants.txt").write_text("\n".join(lines_of(trees())) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        record()
    else:
        unittest.main()
