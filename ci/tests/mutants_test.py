#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is done with mutants of kernels: which compile and which are the same machine code (mutation/compile.py), what is reported
of orders of memory (order_sites.py), what the usual rules see, and what machine_mutants.py writes."""
import collections
import contextlib
import csv
import io
import json
import pathlib
import sys
import tempfile
import threading
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci"))
import machine_mutants  # noqa: E402
import order_sites  # noqa: E402
import wrong  # noqa: E402
from in_folder import InFolder  # noqa: E402
from mutation import compile, usual_rules  # noqa: E402
from mutation.catalog import Mutant  # noqa: E402

HEADER = """#pragma once
inline int twice(int x) {
  int y = x * 2;
  y =
      y;
  return y;
}
inline int line() { return __LINE__; }
"""


def ended(call, *arguments):
    """(what it returns or ends with, what it prints)."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            code = call(*arguments)
        except SystemExit as error:
            code = error.code
    return code, said.getvalue()


def mutant(name, find="x * 2", replace="x * 3", file="kernels/a.h", group="plan", operator="sync_removal", kernels="v2", line=3, at=None, kind="expression"):
    at = HEADER.find(find) if at is None else at
    return Mutant(name, file, line, at, kind, find, replace, group, operator, kernels, f"{operator}: {find} becomes {replace}")


class Compiled(InFolder):
    def tree(self, compiler):
        """A build of two units that hold mutants, and one that holds none."""
        (self.root / "ci").symlink_to(ROOT / "ci")
        self.write("kernels/a.h", HEADER)
        self.write("kernels/b.h", "#pragma once\ninline int other() { return 5; }\n")
        self.write("corpus/mutants/active.h", "#pragma once\nnamespace assay::mutants { bool is_active(int); }\n")
        for part in compile.PARTS:
            self.write(f"build/tree/kernels/{part}/instantiations.def", "")
        entries = []
        for name, target, text in (("one", "assay_mutants", '#include "kernels/a.h"\nint value(int x) { return twice(x) + line(); }\n'),
                                   ("two", "assay_mutated_calls", "int nothing;\n"), ("three", "assay_other", "not C++")):  # fmt: skip
            file = self.write(f"units/{name}.cpp", text)
            command = f"ccache /usr/bin/{compiler} -I{self.root}/build/tree -I{self.root} -O2 -g -std=c++20 -o {target}.dir/{name}.o -c {file}"
            entries.append({"directory": str(self.root), "file": str(file), "command": command})
        self.write("build/compile_commands.json", json.dumps(entries))
        self.enterContext(contextlib.chdir(self.root))
        self.addCleanup(mock.patch.stopall)
        mock.patch.object(compile, "ROOT", self.root).start()
        return self.root / "build"

    def test_units_are_those_that_hold_mutants(self):
        units = dict(compile.units(self.tree("c++")))
        self.assertEqual([pathlib.Path(file).name for file in units], ["one.cpp", "two.cpp"])
        command = units[str(self.root / "units/one.cpp")]
        self.assertEqual(command, ["/usr/bin/c++", f"-I{self.root}/build/tree", f"-I{self.root}", "-O2", "-g", "-std=c++20"])
        self.assertEqual(compile.tree_of(command), self.root / "build/tree")

    def test_what_does_not_compile_is_moved_away(self):
        for compiler in ("clang++", "g++"):
            with self.subTest(compiler):
                self.setUp()
                build, folder = self.tree(compiler), self.root / "mutants"
                machine_mutants.write(folder, [mutant("a_right"), mutant("b_wrong", replace="z * 2"), mutant("c_right", "y", "y + 1", at=HEADER.find("y;\n  return")),
                                               mutant("d_wrong", "__LINE__", "nothing()"), mutant("e_wrong", "y", "{}", at=HEADER.rfind("y;"))])  # fmt: skip
                dropped, said = ended(compile.Viability(folder, build).drop)
                self.assertEqual((sorted(dropped), said.splitlines()[-1]), (["b_wrong", "d_wrong", "e_wrong"], "do not compile: 3"))
                self.assertEqual([sorted(path.stem for path in folder.glob(f"{where}*.mutant")) for where in ("", "unviable/")], [["a_right", "c_right"], sorted(dropped)])

    def test_an_error_of_no_mutant_ends_it(self):
        build, folder = self.tree("clang++"), self.root / "mutants"
        machine_mutants.write(folder, [mutant("right")])
        self.write("units/two.cpp", "int two = nothing;\n")
        self.assertIn("an error that no mutant makes alone", ended(compile.Viability(folder, build).drop)[0])

    def test_the_nearest_mutants_are_suspected_first(self):
        path = self.write("a.h", "is_active(1)\nis_active(2) is_active(3)\nis_active(4)\n")
        names = dict(enumerate("abcd", 1))
        for place, expected in (("2:5", "bacd"), ("2:16", "cbda"), ("1:1", "abcd"), ("3:9", "dcba")):
            for message in (f"{path}:{place}: error: x", f"{path}:{place}: fatal error: x", f"/other.h:1:1: error: x\n{path}:{place}: note: here\n{path}:1:1: note: not here"):
                found = compile.suspects(f"In file included from x\n{message}\n  code\n", self.root, names)
                self.assertEqual(found, {tuple(expected)}, (place, message))
        found = compile.suspects(f"{path}:2:16: error: x\n{path}:1:1: error: y\n{path}:1:1: warning: z\n", self.root, names)
        self.assertEqual(found, {tuple("cbda"), tuple("abcd")})

    def test_which_are_the_same_machine_code(self):
        same = compile.SameCode(self.tree("g++"))
        of = lambda *given, **more: same.equal({key: str(value) for key, value in mutant("m", *given, **more)._asdict().items()})  # noqa: E731
        self.assertTrue(of(replace="x + x"))
        self.assertFalse(of())
        self.assertTrue(of("y = y;", "", kind="statement", at=HEADER.find("y =\n")))  # what is behind keeps its line
        self.assertFalse(of("y = y;", "y = 3;", kind="statement", at=HEADER.find("y =\n")))
        self.assertTrue(of("5", "6", file="kernels/b.h", at=41))  # no unit includes it
        self.assertTrue(of(replace="x << 1"))
        self.assertEqual((same.plain / "kernels/a.h").read_text(), HEADER)


class Written(InFolder):
    MUTANTS = [mutant(f"m{at}", file=f"kernels/{folder}/a.h", group=folder, operator=operator)
               for at, (folder, operator) in enumerate([("tree", "loop"), ("tree", "cast"), ("plan", "loop"), ("plan", "loop"), ("host", "cast")])]

    def run_main(self, *words, libclang=True):
        catalog = lambda root: (self.MUTANTS, collections.Counter({"constant": 4, "a comment within": 1}))  # noqa: E731
        with mock.patch.multiple(machine_mutants, catalog=catalog, syntax=types.SimpleNamespace(cindex=libclang or None, MISSING="needs it")), \
                mock.patch.object(sys, "argv", ["machine_mutants.py", str(self.root / "out"), *words]):
            code, said = ended(machine_mutants.main)
        return code, said.splitlines(), sorted(path.stem for path in self.root.glob("out/*.mutant"))

    def test_mutants_are_written_and_counted(self):
        self.write("out/old.mutant", "")
        code, said, names = self.run_main()
        self.assertEqual((code, names), (None, ["m0", "m1", "m2", "m3", "m4"]))
        self.assertEqual([line.split() for line in said], [["operator", "host", "plan", "tree", "all"], ["cast", "1", "0", "1", "2"], ["loop", "0", "2", "1", "3"],
                                                           ["all", "1", "2", "2", "5"], "not made, a comment within: 1".split(), "not made, constant: 4".split()])  # fmt: skip
        self.assertEqual(wrong.parse(self.root / "out/m2.mutant"), {"name": "m2", "why": "loop: x * 2 becomes x * 3", "file": "kernels/plan/a.h", "line": "3", "at": str(HEADER.find("x * 2")),
                                                                    "kind": "expression", "find": "x * 2", "replace": "x * 3", "kernels": "v2", "group": "plan", "operator": "loop"})  # fmt: skip

    def test_some_are_chosen(self):
        self.assertEqual(self.run_main("--operators", "loop", "--under", "kernels/plan")[2], ["m2", "m3"])
        _, said, names = self.run_main("--sample", "3", "--seed", "2")
        self.assertEqual((len(names), "sample of 3, seed 2" in said, said[-1].split()[-1]), (3, True, "3"))
        self.assertEqual(self.run_main("--sample", "9")[2], ["m0", "m1", "m2", "m3", "m4"])
        self.assertEqual(self.run_main(libclang=False)[0], "machine_mutants.py needs it")

    def test_what_does_not_compile_is_said(self):
        asked = []
        viability = lambda *folders: asked.append(folders) or types.SimpleNamespace(drop=lambda: ["a", "b"])  # noqa: E731
        with mock.patch.object(machine_mutants, "Viability", viability):
            self.assertEqual(self.run_main("--viable", str(self.root / "build"))[:2], (None, ["does not compile: a", "does not compile: b"]))
        self.assertEqual(asked, [(self.root / "out", self.root / "build")])


BOTH = "a hazard: v2: race-read: kernels/b.h:7 and /x/machine/kernels/a.h:11, after kernels/b.h:7"
#: By mutant: what the program says on the first schedule, of the cases, and of the draw.
REPORTS = {"both": (BOTH, "", ""), "once": ("hazard: v1: lost-wait: kernels/a.h:9, kernels/a.h:9", "", ""), "case": ("passes", BOTH, ""), "drawn": ("", "", BOTH),
           "unseen": ("", "", ""), "known": ("", BOTH, BOTH), "alone": ("hazard: v1: lost-wait: kernels/a.h:9", "", "")}


class Orders(InFolder):
    def test_which_weaken_an_order(self):
        for operator, find, replace, expected in (("sync_removal", "f", "void()", True), ("loop", "f", "void()", False), ("wait_count", "f", "arch::w<(1) + 1>()", True),
                                                  ("wait_count", "f", "arch::w<(1) - 1>()", False), ("sync_weakening", "f", "g - 1>", True),
                                                  ("atomic_removal", "arch::atomic_inc_acq_rel(a)", "g", True), ("atomic_removal", "arch::atomic_or_relaxed(a)", "g", False)):  # fmt: skip
            self.assertEqual(order_sites.weakens(mutant("m", find, replace, operator=operator)), expected, (operator, replace))

    def main(self, *words):
        with mock.patch.object(sys, "argv", ["order_sites.py", *map(str, words)]), contextlib.redirect_stderr(io.StringIO()):
            return ended(order_sites.main)

    def test_they_are_written(self):
        made = [mutant("a", group="exchange"), mutant("b"), mutant("c", operator="loop")]
        with mock.patch.object(order_sites, "catalog", lambda root: (made, {})):
            self.assertEqual(self.main("make", self.root / "out"), (None, f"2 mutants in {self.root}/out\n"))
        self.assertEqual({text["name"]: text["kernels"] for text in wrong.texts(self.root / "out")}, {"a": "v2, sharded_attention", "b": "v2"})

    def run_them(self, names, *words):
        """(exit code, what is printed, rows, calls by mutant)."""
        machine_mutants.write(self.root / "out", [mutant(name, line=20 - at, file=f"kernels/{'a' if at else 'z'}.h") for at, name in enumerate(names)])
        calls = collections.defaultdict(list)

        def program(command, **_):
            name, draw = command[command.index("--mutant") + 1], 2 if "--default-draw" in command else int("--case" in command)
            self.assertEqual((command[0], ("--first-schedule" in command) == (draw < 2)), (self.root / "build/assay", True))
            calls[name].append(draw)
            pathlib.Path(command[-1]).write_text(json.dumps({"rows": [{"kernel": f"kernel {draw}", "message": REPORTS[name][draw]}]}) if name in REPORTS else "")
            return types.SimpleNamespace(stderr="no such mutant", stdout="")

        with mock.patch.object(order_sites.subprocess, "run", program):
            code, said = self.main("run", self.root / "out", self.root / "build", "--results", self.root / "r.csv", *words)
        return code, said, wrong.table(self.root / "r.csv") if (self.root / "r.csv").exists() else None, calls

    def test_a_report_has_both_of_its_lines(self):
        self.write("r.csv", "mutant,reason\nknown,it is allowed\n")
        code, said, rows, calls = self.run_them(list(REPORTS), "--jobs", "2")
        self.assertEqual((code, said), (1, "7 mutants: 5 reported, 4 with both lines, 1 with a reason, 2 holes alone unseen\n"))
        self.assertEqual([row["mutant"] for row in rows], ["alone", "known", "unseen", "drawn", "case", "once", "both"])  # by file and line
        found = {row["mutant"]: tuple(row[name] for name in ("kernel", "schedule", "report", "at", "other", "reason")) for row in rows}
        both = ("race-read", "kernels/b.h:7", "kernels/a.h:10", "")
        self.assertEqual(found, {"both": ("kernel 0", "first", *both), "case": ("kernel 1", "case", *both), "drawn": ("kernel 2", "drawn", *both),
                                 "once": ("kernel 0", "first", "lost-wait", "kernels/a.h:9", "kernels/a.h:9", ""), "unseen": ("", "", "", "", "", ""),
                                 "known": ("", "first", "", "", "", "it is allowed"), "alone": ("kernel 0", "first", "lost-wait", "kernels/a.h:9", "", "")})  # fmt: skip
        self.assertEqual(calls, {"both": [0], "once": [0], "alone": [0], "known": [0], "case": [0, 1], "drawn": [0, 1, 2], "unseen": [0, 1, 2]})
        self.assertEqual((rows[0]["file"], rows[0]["line"], rows[0]["change"]), ("kernels/a.h", "14", "x * 2 becomes x * 3"))

    def test_no_hole_is_no_error_and_reasons_stay(self):
        self.assertEqual(self.run_them(["both", "once"])[0], 0)
        self.write("r.csv", (self.root / "r.csv").read_text().replace("kernels/a.h:9,\n", "kernels/a.h:9,both parties\n"))
        self.assertEqual([row["reason"] for row in self.run_them(["both", "once"])[2]], ["both parties", ""])

    def test_a_program_that_says_nothing_ends_it(self):
        self.assertEqual(self.run_them(["gone"])[0], "gone: no such mutant")
        self.assertEqual(self.main("run", self.root)[0], 2)


class UsualRules(InFolder):
    def test_each_mutant_gets_its_words(self):
        right = {"cases": 5, "ended": [], "stopped": [], "rejected": {"1e-2": [1], "2x": []}}
        said = {"right": right, "seen": {**right, "rejected": {"1e-2": [1], "2x": [4]}}, "slow": None, "none": right}
        rows = [dict(mutant=name, outcome=outcome, usual=usual, triage="")
                for name, outcome, usual in (("seen", "killed", ""), ("slow", "survived", ""), ("none", "survived", ""), ("old", "killed", "ended"), ("no", "unviable", ""))]
        limits = {}

        def limited(command, seconds):
            name, limits[command[-1]] = command[-1], seconds
            self.assertEqual((command[0], command[1:3], command[5:-1]), (self.root / "assay", ["--seed", "7"], ["mutants", "--usual-rules", "--threads", "2", "--mutant"]))
            if said[name] is None:
                return None, 1.0
            command[4].write_text(json.dumps({"rows": [said[name]]}))
            return 0, 1.0

        written = []
        results = types.SimpleNamespace(rows=rows, lock=threading.Lock(), write=lambda: written.append(1))
        options = types.SimpleNamespace(build=self.root, seed=7, seconds=30, jobs=2)
        printed = ended(usual_rules.judge, limited, "right", options, results)[1]
        self.assertEqual([row["usual"] for row in rows], ["2x", "timed_out", "none", "ended", ""])
        self.assertEqual((limits, len(written)), ({"right": float("inf"), "seen": 30, "slow": 30, "none": 30}, 3))
        self.assertIn("of 5 cases of the right kernels are rejected by 1e-2 1, 2x 0\n", printed)
        self.assertIn("of 4 1 ended, 0 stopped on the executor alone, 1 timed out, 1 are seen by no rule;\n", printed)
        with mock.patch.object(sys, "argv", ["x"]):
            self.assertIn("exit code 3", ended(usual_rules.document_of, lambda *_: (3, 1.0), "assay", "m", 1, 9)[0])


if __name__ == "__main__":
    unittest.main()
