#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which tables ci/page_figures.py takes for those of a result."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import page_figures  # noqa: E402

ROWS = [
    {"cell": "cascade b16 p8192 u128", "us": 25.13, "floor_us": 10.9, "flops": 2e9, "bytes": 41943040},
    {"cell": "prefix b16 p8192", "us": 20.23, "peers": {"other": {"us": 17.76}}},
    {"cell": "cascade b64 p2048 u256", "us": 1337.4, "floor_us": 18.7},
]


class Pages(unittest.TestCase):
    """A page beside a result."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "result.json").write_text(json.dumps({"cells": ROWS}))
        (self.folder / "peers.csv").write_text("cell,floor_us,other\ncascade b16 p8192 u128,10.0,20.0\n")

    def complaints(self, row, mark="<!-- measured: result.json -->"):
        page = self.folder / "page.md"
        page.write_text(f"words\n\n{mark}\n| cell | us |\n|---|---|\n{row}\n\nwords\n")
        return list(page_figures.check(page))

    def test_figures_of_one_cell_are_taken_rounded_as_shown(self):
        self.assertEqual(self.complaints("| 16 requests | 25.1 | 10.9, **17.76** peer | 42 MB | 0.434 v2 |"), [])
        self.assertEqual(self.complaints("| 64 requests | 1,337 | 18.7 |"), [])

    def test_what_follows_from_a_row_is_taken(self):
        self.assertEqual(self.complaints("| TFLOP/s | 25.13 | 80 |"), [])  # 2e9 in 25.13 us

    def test_another_figure_is_refused(self):
        for row in ("| 16 requests | 25.2 |", "| 16 requests | 25.10 |", "| 16 requests | 25.1 | 17.8 | 9.9 |"):
            with self.subTest(row=row):
                self.assertEqual(len(self.complaints(row)), 1)

    def test_figures_of_two_cells_are_refused(self):
        self.assertIn("nearest is", self.complaints("| mixed | 25.1 | 18.7 |")[0])

    def test_a_table_of_peers_is_a_result(self):
        mark = "<!-- measured: result.json peers.csv -->"
        self.assertEqual(self.complaints("| 16 requests | 25.1 | 0.500 other |", mark), [])

    def test_a_row_without_figures_and_a_result_that_is_not_there_are_refused(self):
        self.assertIn("without figures", self.complaints("| 16 requests | fast |")[0])
        self.assertIn("there is no", self.complaints("| 16 requests | 25.1 |", "<!-- measured: gone.json -->")[0])

    def test_times_need_a_result(self):
        self.assertIn("times without a result", self.complaints("| 16 requests | 25.1 |", "words")[0])

    def test_the_mark_ends_with_its_table(self):
        page = self.folder / "page.md"
        page.write_text("<!-- measured: result.json -->\n| a | b |\n|---|---|\n| 1 | 25.1 |\n\n| a | b |\n|---|---|\n| 1 | 7 |\n")
        self.assertEqual(list(page_figures.check(page)), [])


if __name__ == "__main__":
    unittest.main()
