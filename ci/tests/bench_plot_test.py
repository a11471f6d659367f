#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bench_plot.py compares, and with which colours it draws, over a stand-in for matplotlib."""
import math
import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
for name in ("matplotlib", "matplotlib.pyplot"):
    sys.modules.setdefault(name, mock.MagicMock())
import bench_plot  # noqa: E402


class Plot(unittest.TestCase):
    def test_a_cell_is_our_fastest_beside_the_best_peer(self):
        peers = {"XQA": {"us": 8}, "FlashInfer CUDA cores": {"us": 6}, "SDPA": {"us": 1}, "FlashInfer tensor cores": {"refused": "x"}}
        row = lambda cell, us, kind, size, by: {"cell": cell, "us": us, "kv_dtype": kind, "bytes": size, "floor_us": 2, "peers": by}  # noqa: E731
        rows = [row("a", 4, "bf16", 9, peers), row("a", 3, "bf16", 9, peers), row("b", 4, "e4m3", 9, peers), row("c", 4, "bf16", 5, peers),
                row("d", 4, "bf16", 5, {"SDPA": {"us": 1}})]  # fmt: skip
        groups = bench_plot.read_cells(rows)
        self.assertEqual(groups, {"bf16": [(5, 1.5, 0.5), (9, 2, 2 / 3)], "fp8": [(9, 1.5, 0.5)]})
        self.assertIn("in 3 of 3 cells", bench_plot.peers_title(groups))
        slow = {"bf16": [bench_plot.Cell(1, 1, 1), bench_plot.Cell(1, math.nextafter(1, 0), 1)]}
        self.assertIn("in 1 of 2 cells", bench_plot.peers_title(slow))

    def test_a_picture_has_the_colours_of_its_page_and_no_others(self):
        """All that is drawn and how it is set, of cells beside peers and of sweeps, twice: the same each time."""
        def drawn(rows, theme):
            said = []
            note = lambda *given, **named: said.append((given, named)) or mock.DEFAULT  # noqa: E731
            axis = mock.MagicMock(**{f"{name}.side_effect": note for name in ("bar", "axhline", "set_title", "plot", "text", "set_xticks")})
            figure = mock.MagicMock(axes=[axis], subplots=lambda rows, columns, **_: [[axis] * columns] * rows if rows > 1 else [axis] * columns)
            plot = mock.MagicMock(figure=lambda **_: figure, rc_context=note)
            plot.rc_context = mock.MagicMock(side_effect=note)
            with mock.patch.object(bench_plot, "plt", plot):
                bench_plot.draw({"cells": rows, "device": "d", "date": "2026-11-28", "commit": "c"}, theme, "out.svg")
            figure.savefig.assert_called_once_with("out.svg", metadata={"Date": None})
            return repr(said)

        row = dict(kernel="paged_attention_v2", us=4, kv_dtype="bf16", bytes=9, floor_us=2, floor_fraction=0.5, peers={"XQA": {"us": 3}})
        colours = {name: set(theme.values()) for name, theme in (("light", bench_plot.LIGHT), ("dark", bench_plot.DARK))}
        self.assertTrue(colours["light"].isdisjoint(colours["dark"]) and bench_plot.LIGHT.keys() == bench_plot.DARK.keys())
        for rows, used in (([{**row, "cell": "a"}, {**row, "cell": "b", "kv_dtype": "e4m3"}], {"ink", "grid", "bf16", "fp8"}), ([{**row, "cell": "sweep keys 5"}], {"ink", "grid"})):
            for theme, other in ((bench_plot.LIGHT, "dark"), (bench_plot.DARK, "light")):
                text = drawn(rows, theme)
                self.assertEqual([text.count(colour) for colour in colours[other]], [0] * 4)
                self.assertEqual({name for name in theme if theme[name] in text}, used)
                self.assertIn("'svg.hashsalt': 'assay'", text)
                self.assertEqual(text, drawn(rows, theme))

    def test_the_first_picture_is_for_a_light_page(self):
        for paths in (["a.svg"], ["a.svg", "b.svg"]):
            made = []
            with mock.patch.object(bench_plot, "draw", lambda *given: made.append(given)), mock.patch.object(bench_plot.results, "load", lambda path: path), \
                    mock.patch.object(sys, "argv", ["bench_plot.py", "r.json", *paths]):
                bench_plot.main()
            self.assertEqual(made, [("r.json", theme, path) for theme, path in zip((bench_plot.LIGHT, bench_plot.DARK), paths)])
        with mock.patch.object(sys, "argv", ["bench_plot.py", "r.json"]):
            self.assertRaises(SystemExit, bench_plot.main)


if __name__ == "__main__":
    unittest.main()
