#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Markdown table of a bench result beside the peers' figures.

Usage: bench_table.py RESULT.json PEERS.csv
Fractions are floor / kernel, each with the floor of its own run: the peers were measured on another
day (kernels/bench/peers_h200.csv), so their microseconds are not comparable, their fractions are. Both
fractions of ours are over the floor of launches one after the other. Bold: at least the best peer.
Cascades and merges follow in a table of their own, without peers.
"""
import csv
import sys

import results


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


def best(kernels, time):
    """The faster version of ours: its fraction and name."""
    name, row = min(kernels.items(), key=lambda item: item[1][time])
    return row["floor_us"] / row[time], name.removeprefix("paged_attention_")


def shown(fraction, version, peer):
    mark = "**" if peer is not None and fraction >= peer else ""
    return f"{mark}{fraction:.3f}{mark} {version}"


def print_decode(cells, of_peers):
    print("| cell | KV MB | floor us | v1 us | v2 us | fraction | v1 early us | v2 early us | early | best peer |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for cell, kernels in cells.items():
        v1, v2 = kernels["paged_attention_v1"], kernels["paged_attention_v2"]
        name, peer = of_peers.get(cell, ("", None))
        plain, early = (shown(*best(kernels, time), peer) for time in ("us", "early_us"))
        print(
            f"| {cell} | {v1['bytes'] / 1e6:.0f} | {v1['floor_us']:.2f} | {v1['us']:.2f} | {v2['us']:.2f} | {plain} "
            f"| {v1['early_us']:.2f} | {v2['early_us']:.2f} | {early} | {f'{peer:.3f} {name}' if peer else '-'} |"
        )


def print_others(rows):
    """Floors: a plain read, and the products (cascade) or a plain read and write (merge)."""
    print("| cell | MB | floors us | us | x floor | TFLOP/s |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        second = row.get("flops_us", row.get("plain_us"))
        tflops = f"{row['tflops']:.0f}" if "tflops" in row else "-"
        print(
            f"| {row['cell']} | {row['bytes'] / 1e6:.0f} | {row['read_us']:.2f}, {second:.2f} | {row['us']:.2f} "
            f"| {row['times_floor']:.2f} | {tflops} |"
        )


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    result = results.load(sys.argv[1])
    decode, others = {}, []
    for row in result["cells"]:
        if row["kernel"].startswith("paged_attention_"):
            decode.setdefault(row["cell"], {})[row["kernel"]] = row
        else:
            others.append(row)
    if decode:
        print_decode(decode, peers(sys.argv[2]))
    if decode and others:
        print()
    if others:
        print_others(others)


main()
