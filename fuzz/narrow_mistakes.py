#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Numeric mistakes that nobody chose: one quantity of the tile or of a merge is off by 2^-6 of itself where its magnitude
lies in a narrow range.

  fuzz/narrow_mistakes.py build/narrow --seed 1      eight ranges of each quantity, as .mutant files
  cmake --preset fuzz -DASSAY_PLANTED_FOLDER=$PWD/build/narrow && cmake --build --preset fuzz --target all_planted
  fuzz/time_to_find.py tile --folder build/narrow ...

A range begins at a random power of two of what the quantity usually spans, and is an octave, an eighth or a 64th of one wide."""
import argparse
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "ci"))
import wrong  # noqa: E402

TILE, STATE = "kernels/common/attention_tile.cuh", "kernels/common/attention_state.cuh"
V2, BLOCK, SINK = "kernels/blocks/split_kv.cuh", "kernels/common/block_merge.cuh", "kernels/common/score_features.cuh"
FEW, MANY, LANES = "kernels/merge/merge_few_states.cuh", "kernels/merge/merge_many_states.cuh", "kernels/common/merge_lanes.cuh"
ATTENTION = "paged_attention_v1, paged_attention_v2"
MERGES = "merge_state, merge_states"
#: name: (file, text, what stands in front or None, exponents, kernels, the mistake where it is not the text made wrong)
QUANTITIES = {
    "tile_weight": (TILE, "arch::exp2_approx(arch::fma_rn(scores_[t][n][i], scale, shift[i % 2]))", None, (-120, 0), ATTENTION, None),
    "tile_correction": (STATE, "weight(m, m_new, scale)", "const R alpha =", (-120, 0), ATTENTION, None),
    "tile_mass": (STATE, "S::log2(d)", None, (-100, 100), ATTENTION, "S::log2(%s(d))"),
    "tile_lse": (STATE, "R(scale * m + S::log2(d))", None, (-20, 100), ATTENTION, None),
    "tile_quotient": (STATE, "R(o[i] * inverse)", None, (-100, 100), ATTENTION, None),
    "tile_partial_sum": (TILE, "arch::mma_m16n8k16<Mma>(acc, v, p_[t][n]);", None, (-100, 100), ATTENTION,
                         "arch::mma_m16n8k16<Mma>(acc, v, p_[t][n]); for (Number &x : acc) x = %s(x);"),
    "merge_weight": (STATE, "S::exp2(R(from - to) * scale)", None, (-120, 0), MERGES, "R(%s(S::exp2(R(from - to) * scale)))"),
    "merge_lanes_sum": (LANES, "o[k] = arch::fma_rn(weight, values[k], o[k]);", None, (-100, 100), "merge_states",
                        "o[k] = %s(arch::fma_rn(weight, values[k], o[k]));"),
    "merge_lanes_mass": (LANES, "d += weight;", None, (-4, 7), "merge_states", "d = %s(R(d + weight));"),
    "merge_workers_sum": (MANY, "Number(sum.o[k] + o[k])", None, (-100, 100), "merge_states", None),
    "merge_split_mass": (V2, "mass += weight;", None, (-4, 7), "paged_attention_v2", "mass = %s(Number(mass + weight));"),
    "merge_split_weight": (V2, "AttentionState<Number, 4>::weight(part_lse, largest, 1.0f)", None, (-120, 0), "paged_attention_v2", None),
    "merge_sink_mass": (SINK, "arch::log2_approx(mass)", None, (0, 1), ATTENTION, "arch::log2_approx(%s(mass))"),
    "merge_block_mass": (BLOCK, "arch::shared_load(&storage.d[first + w][row])", None, (-100, 100), ATTENTION, None),
    "merge_few_weight": (FEW, "AttentionState<Number, 1>::weight(lse[i], sum.m, row.params.scale)", None, (-120, 0), "merge_states", None),
}


def write(folder, name, low, high, quantity):
    file, text, after, _, kernels, mistake = quantity
    off = f"::assay::mutants::OffBetween{{{low.hex()}f, {high.hex()}f}}"
    expression = mistake % off if mistake else f"{off}({text})"
    kind = "statement" if text.endswith(";") else "expression"
    wrong.write(folder, name, why=f"a magnitude from {low.hex()} to {high.hex()} is off by 2^-6 of itself", file=file, kind=kind,
                after=after, find=text, replace=expression, kernels=kernels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranges", type=int, default=8, help="of each quantity")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(options.seed)
    for name, quantity in QUANTITIES.items():
        for number in range(options.ranges):
            low = 2.0 ** rng.randint(*quantity[3])
            if name == "merge_sink_mass":  # at least 1, and from 1 to 2 with two states of one key
                low = 1 + rng.random() * 0.9
            width = rng.choice((1, 1 / 8, 1 / 64))
            write(options.folder, f"{name}_{number}", low, low * (1 + width), quantity)


main()
