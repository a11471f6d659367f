#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bench_plot.py compares, and what it draws, over a stand-in for matplotlib.

bench_plot_test.py --record writes the calls that draw two pictures to plots.txt: a change of a picture shows there."""
import math
import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
for name in ("matplotlib", "matplotlib.pyplot"):
    sys.modules.setdefault(name, mock.MagicMock())
import bench_plot  # noqa: E402

PLOTS = pathlib.Path(__file__).parent / "plots.txt"


class Drawing:
    """Stands for matplotlib and all that it makes: every call is a line of `said`."""

    def __init__(self, said, name="plt"):
        self.said, self.name = said, name

    def __getattr__(self, name):
        return Drawing(self.said, f"{self.name}.{name}".removeprefix("plt."))

    def __getitem__(self, key):
        return Drawing(self.said, f"{self.name}[{key!r}]")

    def __call__(self, *given, **named):
        self.said.append(f"{self.name}({', '.join([*map(repr, given), *(f'{name}={value!r}' for name, value in named.items())])})")
        if not self.name.endswith("subplots"):
            return Drawing(self.said, self.name.partition("(")[0])
        axes = [[Drawing(self.said, f"axis {row} {column}") for column in range(given[1])] for row in range(given[0])]
        return axes if given[0] > 1 else axes[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.said.append(f"end of {self.name}")


def drawn(rows, theme=bench_plot.LIGHT, **about):
    said = []
    with mock.patch.object(bench_plot, "plt", Drawing(said)):
        bench_plot.draw({"cells": rows, "device": "d", "date": "2026-11-28", "commit": "c", **about}, theme, "out.svg")
    return said


def recorded():
    """What draws cells beside peers, one of them far faster, and two sweeps."""
    row = lambda kernel, cell, us=4, size=9, kind="bf16", **more: dict(  # noqa: E731
        kernel=f"paged_attention_{kernel}", cell=cell, us=us, kv_dtype=kind, bytes=size, floor_us=2, floor_fraction=2 / us, peers={"XQA": {"us": 3}}, **more)
    cells = [row("v1", "a"), row("v2", "a", 2), row("v2", "b", 1, 2e8), row("v1", "c", 3, 2e9), row("v2", "d", 5, 7, "e4m3"), {"kernel": "other"}]
    sweeps = [row(kernel, f"sweep {cell}", us) for kernel, us in (("v2", 4), ("v1", 8)) for cell in ("keys 64", "keys 128", "page size 1")]
    return [*drawn(cells, flashinfer="0.6"), *drawn(sweeps)]


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
        row = dict(kernel="paged_attention_v2", us=4, kv_dtype="bf16", bytes=9, floor_us=2, floor_fraction=0.5, peers={"XQA": {"us": 3}})
        colours = {name: set(theme.values()) for name, theme in (("light", bench_plot.LIGHT), ("dark", bench_plot.DARK))}
        self.assertTrue(colours["light"].isdisjoint(colours["dark"]) and bench_plot.LIGHT.keys() == bench_plot.DARK.keys())
        for rows, used in (([{**row, "cell": "a"}, {**row, "cell": "b", "kv_dtype": "e4m3"}], {"ink", "grid", "bf16", "fp8"}), ([{**row, "cell": "sweep keys 5"}], {"ink", "grid"})):
            for theme, other in ((bench_plot.LIGHT, "dark"), (bench_plot.DARK, "light")):
                text = "\n".join(drawn(rows, theme))
                self.assertEqual([text.count(colour) for colour in colours[other]], [0] * 4)
                self.assertEqual({name for name in theme if theme[name] in text}, used)
                self.assertEqual(text.splitlines(), drawn(rows, theme))

    def test_pictures_are_drawn_like_this(self):
        self.assertEqual(recorded(), PLOTS.read_text().splitlines())

    def test_a_result_without_cells_is_refused(self):
        with mock.patch.object(sys, "argv", ["bench_plot.py", "r.json"]):
            self.assertRaisesRegex(SystemExit, "^r.json: no cells of paged_attention", drawn, [{"kernel": "merge_states"}])

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
    if sys.argv[1:] == ["--record"]:
        PLOTS.write_text("\n".join(recorded()) + "\n")
    else:
        unittest.main()
