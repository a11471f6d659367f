#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kernel_figures.py sees a kernel that spills, one that no SM can launch, and one that the table has otherwise."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import kernel_figures  # noqa: E402


def said(threads=256, registers=64, stack=0, table=None, size=0):
    row = ["sm_90a", "kernel", "64", str(threads), str(registers), str(stack), "0"]
    return list(kernel_figures.faults([row], [row if table is None else table], size))


class Faults(unittest.TestCase):
    def test_registers_are_given_out_in_eights(self):
        self.assertEqual(said(256, 256), [])
        self.assertEqual(len(said(520, 121)), 1)  # 62,920 as they are, 66,560 in eights

    def test_what_else_is_a_fault(self):
        self.assertIn("8 bytes of stack", said(stack=8)[0])
        self.assertIn("absent", said(table=["sm_90a", "another", "64", "1", "1", "0", "0"])[0])
        self.assertIn("stripped", said(size=1 << 40)[0])


if __name__ == "__main__":
    unittest.main()
