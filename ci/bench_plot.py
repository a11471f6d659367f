#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plot of the decode cells of a bench result: fraction of the floor over the bytes of a cell, ours beside the best peer.

Usage: bench_plot.py RESULT.json PEERS.csv OUT.svg   (needs matplotlib)
One panel per KV type. Peers' fractions are of their own run and floor, as in bench_table.py.
A result of kernels/bench/sweeps.json: one panel per sweep, v1 and v2, no peers.
"""
import csv
import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def read_peers(path):
    """cell -> fraction of the floor that the fastest peer reaches."""
    best = {}
    with open(path) as f:
        for row in csv.DictReader(f):
            times = [float(us) for name, us in row.items() if name not in ("cell", "floor_us") and us]
            if times:
                best[row["cell"]] = float(row["floor_us"]) / min(times)
    return best


def read_cells(result):
    """cell -> (KV type, bytes, best fraction of ours, best when started early)."""
    cells = {}
    for row in result["cells"]:
        kind, size = row["kv_dtype"], row["bytes"]
        old = cells.get(row["cell"], (kind, size, 0.0, 0.0))
        plain, early = max(old[2], row["floor_fraction"]), max(old[3], row["early_fraction"])
        cells[row["cell"]] = (kind, size, plain, early)
    return cells


def draw(axis, kind, cells, peers):
    mine = {name: c for name, c in cells.items() if c[0] == kind}
    for name, (_, size, *fractions) in mine.items():
        ends = [*fractions, *([peers[name]] if name in peers else [])]
        axis.plot([size / 1e6] * 2, [min(ends), max(ends)], color="0.8", linewidth=1, zorder=1)
    with_peer = [(c[1] / 1e6, peers[n]) for n, c in mine.items() if n in peers]
    axis.scatter(*zip(*with_peer), marker="x", color="tab:orange", label="best peer", zorder=2)
    sizes = [c[1] / 1e6 for c in mine.values()]
    plain, early = [c[2] for c in mine.values()], [c[3] for c in mine.values()]
    axis.scatter(sizes, plain, s=22, color="tab:blue", label="assay, better of v1 and v2", zorder=3)
    axis.scatter(sizes, early, s=22, facecolors="none", edgecolors="tab:blue", label="started early", zorder=3)
    axis.set_xscale("log")
    axis.set_ylim(0, 1)
    axis.set_title(f"{kind} KV")
    axis.set_xlabel("KV bytes of a step (MB)")
    axis.grid(alpha=0.3)


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


def draw_cells(cells, peers, figure):
    axes = figure.subplots(1, 2, sharey=True)
    for axis, kind in zip(axes, ("bf16", "e4m3")):
        draw(axis, kind, cells, peers)
    axes[0].set_ylabel("fraction of a plain read of the same bytes")
    axes[0].legend(loc="lower right")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with open(sys.argv[1]) as f:
        result = json.load(f)
    result["cells"] = [row for row in result["cells"] if row["kernel"].startswith("paged_attention_")]
    title = f"{result['device']}, {result['date']}, commit {result.get('commit', 'unknown')}"
    figure = plt.figure(figsize=(10, 4.2))
    if result["cells"][0]["cell"].startswith("sweep "):
        draw_sweeps(result["cells"], figure)
    else:
        draw_cells(read_cells(result), read_peers(sys.argv[2]), figure)
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    # No time of day and no random ids in the file: the same data gives the same bytes.
    plt.rcParams["svg.hashsalt"] = "assay"
    figure.savefig(sys.argv[3], metadata={"Date": None})


main()
