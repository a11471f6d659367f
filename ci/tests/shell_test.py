#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts of ci in a tree of their own, over programs that only say how they were called and end as they are told."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Says its name, its folder's last part and its arguments, prints what a file of its name holds, and ends with that file's code.
STUB = """#!/bin/sh
name=$(basename "$0")
echo "$name in ${PWD##*/}: $*" >>"$STUBS/calls"
cat "$STUBS/$name.says" 2>/dev/null
exit "$(cat "$STUBS/$name.code" 2>/dev/null || echo 0)"
"""
COMMANDS = ("cmake", "ctest", "dpkg-query", "apt-get", "nvidia-smi", "sudo")
LIB = ". ci/lib.sh; "
PROGRESS = "".join(f"[{at}/40] step\n" for at in range(1, 41))
FUZZED = "#20 INITED cov: 1\nstat::number_of_executed_units: {}\n"
GATE = "--json build/gate/verdict/gate.json --markdown build/gate/verdict/gate.md --html build/gate/verdict/gate.html " \
    "--sarif build/gate/verdict/gate.sarif --junit build/gate/verdict/gate.xml"
RUNS = [  # command, what programs say or end with, exit code, calls that are made, what is printed
    (LIB + "printf 'all a\nsimt b\nsimt-x c\n' >ci/nightly.txt; run_tests simt -L x", {}, 1, ["ctest in tree: --preset simt -E ^(a|b) -L x"], ""),
    (LIB + "ASSAY_NIGHTLY=1 run_tests simt -L x", {"ctest": "1/1 Test #1: a ... Passed 0.1 sec\n100% tests passed\n"}, 0, ["ctest in tree: --preset simt -L x"], "100% tests passed"),
    (LIB + "run_tests simt", {"ctest": ("50% tests passed\na said why\n", 8)}, 1, [], "a said why"),
    (LIB + "build simt -DX=1 one -UY two", {}, 0, ["cmake in tree: --preset simt -DX=1 -UY", "cmake in tree: --build --preset simt -j N --target one two"], ""),
    (LIB + "build simt", {"cmake": PROGRESS}, 0, ["cmake in tree: --build --preset simt -j N"], "40 of 40"),
    (LIB + "build simt", {"cmake": ("x.cpp: error: wrong\n", 1)}, 1, ["cmake in tree: --preset simt"], "error: wrong"),
    (LIB + "hide_toolkit; nvcc", {}, 127, [], "nvcc is hidden"),
    (LIB + "hide_toolkit; echo '#include <cuda_runtime.h>' | cc -E -x c - >/dev/null", {}, 1, [], "belongs to the CUDA toolkit"),
    (LIB + "hide_toolkit; have_nvcc", {}, 1, [], ""),
    (LIB + "have_gpu", {"nvidia-smi": ("", 9)}, 9, ["nvidia-smi in tree: -L"], ""),
    (LIB + "have_gpu", {}, 0, ["nvidia-smi in tree: -L"], ""),
    ("cd ..; tree/ci/check.sh --cases 3", {"nvidia-smi": ("", 9)}, 0, ["simt.assay in work: check --target simt --cases 3"], "no usable GPU"),
    ("ci/check.sh --target simt", {"simt.assay": ("", 3)}, 3, ["simt.assay in tree: check --target simt"], ""),
    ("ci/check.sh --target=simt --seed 2", {"nvidia-smi": ("", 9)}, 0, ["simt.assay in tree: check --target=simt --seed 2"], ""),
    ("ci/gate.sh --base a", {}, 0, ["program.assay in tree: gate --base a " + GATE], ""),
    ("mkdir -p build/gate/verdict; echo blocked >build/gate/verdict/gate.md; GITHUB_STEP_SUMMARY=s ci/gate.sh; code=$?; cat s; exit $code",
     {"program.assay": ("", 1)}, 1, ["program.assay in tree: gate " + GATE], "blocked"),
    ("GITHUB_STEP_SUMMARY=s ci/gate.sh --budgte 1m", {"program.assay": ("", 2)}, 2, ["program.assay in tree: gate --budgte 1m " + GATE], ""),
    ("ASSAY_REPORTS=here ci/gate.sh; code=$?; ls -d here; exit $code", {"program.assay": ("", 4)}, 4, [], "here"),
    ("ci/campaign.sh", {}, 0, ["cmake in tree: --build --preset fuzz -j N --target all_fuzzers",
                               "cmake in tree: --build --preset simt-asan-ubsan -j N --target all_fuzzers",
                               "program.assay in tree: campaign --hours 8 --dir campaign"], ""),
    ("ci/campaign.sh 2 there", {"program.assay": ("", 1)}, 1, ["program.assay in tree: campaign --hours 2 --dir there"], ""),
    ("ci/setup.sh", {}, 0, [], ""),
    ("ci/setup.sh", {"dpkg-query": ""}, 0, ["apt-get in tree: update -qq"], "setup: installing clang cmake"),
    ("ci/setup.sh", {"dpkg-query": "", "apt-get": ("no network", 100)}, 1, [], "no network"),
    ("ci/fuzz.sh 1", {"fuzz_one": FUZZED.format(30)}, 0, [], "2 seeds"),
    ("ci/fuzz.sh 1", {"fuzz_one": FUZZED.format(21)}, 123, [], "ran 1 new inputs"),
    ("ci/fuzz.sh 1", {"fuzz_one": ("a crash\n", 77)}, 123, [], "a crash"),
    ("rm build/simt-asan-ubsan/fuzz/fuzz_one; ci/fuzz.sh 1", {}, 1, [], "no fuzz target was built"),
    ("ci/test.sh --fast", {}, 2, [], "usage"),
]


def program(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(STUB)
    path.chmod(0o755)


class Shell(unittest.TestCase):
    def run_in_tree(self, command, says):
        """(exit code, calls, what is printed)."""
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder) / "work"
            tree, stubs = work / "tree", work / "stubs"
            shutil.copytree(ROOT / "ci", tree / "ci", ignore=shutil.ignore_patterns("tests", "*.csv"))
            for name in COMMANDS:
                program(stubs / name)
            for preset in ("simt", "program", "cuda"):
                program(stubs / f"{preset}.assay")
                (tree / f"build/{preset}").mkdir(parents=True)
                (tree / f"build/{preset}/assay").write_text(f'#!/bin/sh\nexec "$STUBS/{preset}.assay" "$@"\n')
                (tree / f"build/{preset}/assay").chmod(0o755)
            program(tree / "build/simt-asan-ubsan/fuzz/fuzz_one")
            for seed in "ab":
                (tree / "corpus/seeds/fuzz_one").mkdir(parents=True, exist_ok=True)
                (tree / "corpus/seeds/fuzz_one" / seed).write_text(seed)
            for name, said in {"dpkg-query": "installed", **says}.items():
                text, code = said if isinstance(said, tuple) else (said, 0)
                (stubs / f"{name}.says").write_text(text)
                (stubs / f"{name}.code").write_text(str(code))
            env = {"PATH": f"{stubs}:/usr/bin:/bin", "HOME": folder, "STUBS": str(stubs)}
            ran = subprocess.run(["bash", "-c", command], cwd=tree, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            calls = (stubs / "calls").read_text() if (stubs / "calls").exists() else ""
            return ran.returncode, calls.replace(f"-j {os.cpu_count()}", "-j N").replace(f"{tree}/", "").splitlines(), ran.stdout

    def test_runs(self):
        for command, says, code, calls, printed in RUNS:
            with self.subTest(command=command, says=says):
                ended, called, said = self.run_in_tree(command, says)
                self.assertEqual(ended, code, said)
                self.assertIn(printed, said)
                self.assertEqual([call for call in calls if call not in called], [], called)


if __name__ == "__main__":
    unittest.main()
