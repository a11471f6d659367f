#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ci/skipped.py reads out of a log of ctest."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import skipped  # noqa: E402

RULE = "-" * 58
ONE = """{number}/9 Testing: {name}
{number}/9 Test: {name}
Command: "/build/a_test"
Output:
{rule}
{output}
<end of output>
Test time =   0.01 sec
{rule}
Test {verdict}.
"{name}" end time: Nov 25 15:40 UTC

"""


def log(*tests):
    return "".join(ONE.format(number=i, name=name, output=output, verdict=verdict, rule=RULE)
                   for i, (name, output, verdict) in enumerate(tests, 1))


class Skipped(unittest.TestCase):
    def test_a_gtest_says_why(self):
        text = "[ RUN      ] A.B\n/tree/a_test.cpp:66: Skipped\nno /dev/full\n\n[  SKIPPED ] A.B (0 ms)"
        self.assertEqual(list(skipped.skipped(log(("A.B", text, "Skipped")))), [("A.B", "no /dev/full")])

    def test_pytest_that_passes_tells_what_it_left_out(self):
        text = "..s\nSKIPPED [3] pages_test.py:24: no chromium: not looked at\n2 passed, 3 skipped in 0.1s"
        self.assertEqual(list(skipped.skipped(log(("pages", text, "Passed")))), [("pages", "no chromium: not looked at (3)")])

    def test_one_without_a_reason_is_listed(self):
        self.assertEqual(list(skipped.skipped(log(("C.D", "", "Skipped"), ("E.F", "fine", "Passed")))),
                         [("C.D", "no reason given")])

    def test_the_program_reads_the_logs_of_builds(self):
        tests = {"one": [("A.B", "", "Skipped"), ("C.D", "SKIPPED [2] x.py:1: why\n", "Passed")], "two": [("E.F", "fine", "Passed")]}
        with tempfile.TemporaryDirectory() as folder:
            for name, of in tests.items():
                path = pathlib.Path(folder, name, "Testing/Temporary/LastTest.log")
                path.parent.mkdir(parents=True)
                path.write_text(log(*of))
            command = [sys.executable, "-B", skipped.__file__, *(f"{folder}/{name}" for name in tests)]
            said = subprocess.run(command, text=True, capture_output=True, check=True).stdout
        self.assertEqual(said.splitlines(), ["one: 2 skipped", "  A.B: no reason given", "  C.D: why (2)", "two: 0 skipped"])


if __name__ == "__main__":
    unittest.main()
