#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Markdown table of a bench result beside the peers' figures.

Usage: bench_table.py RESULT.json PEERS.csv
Fractions are floor / kernel, each with the floor of its own run: the peers were measured on another
day (kernels/bench/peers_h200.csv), so their microseconds are not comparable, their fractions are.
"""
import csv
import json
import sys


def peers(path):
    """cell -> (best peer, its floor fraction)."""
    best = {}
    with open(path) as f:
        for row in csv.DictReader(f):
            floor = float(row["floor_us"])
            found = [(float(us), name) for name, us in row.items() if name not in ("cell", "floor_us") and us]
            if found:
                us, name = min(found)
                best[row["cell"]] = (name, floor / us)
    return best


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1]) as f:
        result = json.load(f)
    best = peers(sys.argv[2])
    cells = {}
    for row in result["cells"]:
        cells.setdefault(row["cell"], {})[row["kernel"]] = row
    print("| cell | KV MB | floor us | v1 us | v2 us | best of ours | best peer |")
    print("|---|---|---|---|---|---|---|")
    for cell, kernels in cells.items():
        v1, v2 = kernels["paged_attention_v1"], kernels["paged_attention_v2"]
        ours = max(v1["floor_fraction"], v2["floor_fraction"])
        which = "v1" if v1["floor_fraction"] >= v2["floor_fraction"] else "v2"
        name, fraction = best.get(cell, ("", None))
        mark = "**" if fraction is not None and ours >= fraction else ""
        peer = f"{fraction:.3f} {name}" if fraction is not None else "-"
        print(
            f"| {cell} | {v1['bytes'] / 1e6:.0f} | {v1['floor_us']:.2f} | {v1['us']:.2f} | {v2['us']:.2f} "
            f"| {mark}{ours:.3f}{mark} {which} | {peer} |"
        )


main()
