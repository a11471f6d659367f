#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plots of decode cells. A result of kernels/bench/peers.py: a bar a cell, its speed over the best peer above the share
of the memory floor that it reaches. A result of kernels/bench/sweeps.json: a panel a sweep, v1 and v2.

Usage: bench_plot.py RESULT.json OUT.svg [DARK.svg]   (needs matplotlib)
Ours is the fastest of v1 and v2, with and without early start; a peer is FlashInfer on CUDA cores or tensor cores, or
XQA. SDPA is left out: it is timed on contiguous keys, which a paged cache does not have. Backgrounds are transparent:
OUT.svg is for a light page, DARK.svg for a dark one.
"""
import collections
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from pages import results

PEERS = ("FlashInfer CUDA cores", "FlashInfer tensor cores", "XQA")
CAP = 2.5  # times the best peer: a longer bar is cut there, with its figure beside it
SIZES = {1e8: "100 MB", 1e9: "1 GB"}  # marks on the axis of cells, which are in order of their bytes
LIGHT = {"ink": "#1f2328", "grid": "#d0d7de", "bf16": "#0969da", "fp8": "#bc4c00"}
DARK = {"ink": "#e6edf3", "grid": "#3d444d", "bf16": "#58a6ff", "fp8": "#f0883e"}

Cell = collections.namedtuple("Cell", "bytes speed floor")


def read_cells(rows):
    """"bf16" and "fp8" -> their cells that a peer takes, the smallest first."""
    by_name = {}
    for row in rows:
        by_name.setdefault(row["cell"], []).append(row)
    groups = {"bf16": [], "fp8": []}
    for kernels in by_name.values():
        first, ours = kernels[0], min(row["us"] for row in kernels)
        peers = [p["us"] for name, p in first["peers"].items() if name in PEERS and "us" in p]
        if peers:
            kind = "bf16" if first["kv_dtype"] == "bf16" else "fp8"
            groups[kind].append(Cell(first["bytes"], min(peers) / ours, first["floor_us"] / ours))
    return {kind: sorted(cells, key=lambda c: (c.bytes, -c.speed)) for kind, cells in groups.items()}


def style(theme):
    ink = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    return {
        **{name: theme["ink"] for name in ink},
        "axes.facecolor": "none",
        "axes.axisbelow": True,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "figure.facecolor": "none",
        "font.size": 11,
        "grid.color": theme["grid"],
        "legend.framealpha": 0,
        "svg.hashsalt": "assay",  # no random ids: the same data gives the same bytes
    }


def mark_sizes(axis, cells):
    """A mark where cells of the next size begin."""
    begins = {text: sum(c.bytes < size for c in cells) for size, text in SIZES.items()}
    axis.set_xticks([at - 0.5 for at in begins.values()], begins.keys())
    axis.set_xlim(-1, len(cells))
    axis.grid(axis="y")


def draw_speed(axis, cells, color, theme):
    for at, cell in enumerate(cells):
        axis.bar(at, min(cell.speed, CAP) - 1, bottom=1, width=0.72, color=color)
        if cell.speed > CAP:
            axis.text(at - 0.6, CAP, f"{cell.speed:.1f}x", ha="right", va="top")
    axis.axhline(1, color=theme["ink"], linewidth=1.5)


def draw_floor(axis, cells, color, theme):
    axis.bar(range(len(cells)), [100 * c.floor for c in cells], width=0.72, color=color)
    axis.axhline(100, color=theme["ink"], linewidth=1.5)
    axis.text(len(cells) / 2, 104, "plain read of the same KV", ha="center", fontsize=10)


def draw_peers(groups, figure, theme):
    top, bottom = figure.subplots(2, 2, sharex="col", sharey="row")
    for speed, floor, (kind, cells) in zip(top, bottom, groups.items()):
        draw_speed(speed, cells, theme[kind], theme)
        draw_floor(floor, cells, theme[kind], theme)
        mark_sizes(speed, cells)
        mark_sizes(floor, cells)
        speed.spines["bottom"].set_visible(False)  # the line at 1x stands there
        speed.tick_params(bottom=False)
        speed.set_title(f"{kind} KV, {len(cells)} cells", fontsize=11, color=theme[kind])
    top[0].set_ylim(min(0.95, *(c.speed for cells in groups.values() for c in cells)), CAP)
    top[0].set_yticks([1, 1.5, 2, 2.5], ["1x", "1.5x", "2x", "2.5x"])
    top[0].set_ylabel("speed over\nthe best peer")
    bottom[0].set_ylim(0, 118)
    bottom[0].set_yticks([0, 50, 100], ["0 %", "50 %", "100 %"])
    bottom[0].set_ylabel("speed over\nthe memory floor")


def peers_title(groups):
    cells = [c for cells in groups.values() for c in cells]
    faster = sum(c.speed >= 1 for c in cells)
    return f"Decode: at least as fast as FlashInfer and XQA in {faster} of {len(cells)} cells"


def draw_sweeps(rows, figure):
    """Cells are named "sweep", what varies, its value; a sweep's panel has its values in order."""
    sweeps = {}
    for row in rows:
        _, what, value = row["cell"].split(" ", 2)
        lines = sweeps.setdefault(what, {})
        lines.setdefault(row["kernel"], []).append((value, row["floor_fraction"]))
    for axis, (what, lines) in zip(figure.subplots(1, len(sweeps), sharey=True), sweeps.items()):
        for kernel, points in sorted(lines.items()):
            axis.plot(*zip(*points), marker="o", markersize=4, label=kernel.removeprefix("paged_attention_"))
        axis.set_title(what)
        axis.set_ylim(0, 1)
        axis.tick_params(axis="x", rotation=90)
        axis.grid(alpha=0.3)
    figure.axes[0].set_ylabel("fraction of a plain read of the same bytes")
    figure.axes[0].legend(loc="lower right")


def about(result):
    text = f"{result['device']}, {result['date']}, commit {result['commit']}"
    return text + (f", FlashInfer {result['flashinfer']}" if "flashinfer" in result else "")


def draw(result, theme, path):
    rows = [row for row in result["cells"] if row["kernel"].startswith("paged_attention_")]
    if not rows:
        sys.exit(f"{sys.argv[1]}: no cells of paged_attention_v1 or _v2")
    with plt.rc_context(style(theme)):
        if rows[0]["cell"].startswith("sweep "):
            figure = plt.figure(figsize=(10, 4.2), layout="constrained")
            draw_sweeps(rows, figure)
            figure.suptitle(about(result), fontsize=9)
        else:
            figure = plt.figure(figsize=(6.4, 4.5), layout="constrained")
            groups = read_cells(rows)
            draw_peers(groups, figure, theme)
            figure.suptitle(peers_title(groups), fontsize=11.5, fontweight="bold")
            figure.supxlabel(f"one bar per cell, from the least to the most KV read in a step\n{about(result)}", fontsize=10)
        figure.savefig(path, metadata={"Date": None})


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    result = results.load(sys.argv[1])
    for path, theme in zip(sys.argv[2:], (LIGHT, DARK)):
        draw(result, theme, path)


if __name__ == "__main__":
    main()
