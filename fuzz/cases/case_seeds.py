# SPDX-License-Identifier: Apache-2.0
"""Hand made seeds of fuzz_paged, fuzz_cascade and fuzz_schedule: cases as properties/case/fields.h lists their fields, under the
limits of case_judge.cpp."""
import struct

V1, V2, TREE = range(3)
KEYS = 288
REGIMES = {
    "q": "binary small_int normal normal zero subnormal wide",
    "k": "binary small_int normal zero rising falling plateau dominant ties offset huge normal subnormal below slope gaps",
    "v": "binary small_int normal one_hot constant shifted small near_max normal subnormal",
}


def number(value, low, high, simplest):
    """A number with anchors, given plainly."""
    return b"\0" + struct.pack("<H", (value - simplest) % (high - low + 1))


def small(value, low, high, simplest):
    """One without."""
    return bytes([(value - simplest) % (high - low + 1)])


def values(tensor, regime, exponent=0, seed=1):
    return bytes([REGIMES[tensor].split().index(regime)]) + small(exponent, -8, 8, 0) + struct.pack("<I", seed)


def cache(k_layout=0, v_layout=0, spare=0, table_pad=0, k_pad=0, v_pad=0):
    return bytes([k_layout, v_layout, spare, 0, table_pad, k_pad, v_pad])


def placed(placement, ids=(), pool=0):
    """0 identity, 1 reversed, 2 shuffled, 3 explicit: places of ids among those unused."""
    out = bytes([placement]) + (struct.pack("<I", 7) if placement == 2 else b"")
    unused = list(range(pool))
    for page in ids:
        out += bytes([unused.index(page)])
        unused.remove(page)
    return out


def scores(scale=0, splits=0, q="normal", k="normal"):
    return bytes([scale]) + number(splits, 0, 4, 0) + b"\0" + values("q", q, seed=1) + values("k", k, seed=2)


def outputs(v="normal", order=0, copies=0, seed=0, out_pad=0, lse_pad=0, poison=0):
    return bytes([out_pad, lse_pad]) + values("v", v, seed=3) + bytes([poison, order, copies]) + struct.pack("<I", seed)


def features(kv=0, k_scale=0, v_scale=0, scales=0, q_len=1, window_left=-1, logits_soft_cap=0, alibi=0, sinks=0):
    out = b"\x08" + bytes([kv]) + (bytes([k_scale, v_scale, scales]) if kv else b"")
    out += b"\x08" + number(q_len, 1, 8, 1) if q_len > 1 else b"\0"
    out += b"\x08" + number(window_left, -1, KEYS - 1, -1) if window_left >= 0 else b"\0"
    return out + bytes([logits_soft_cap, alibi, sinks]) + struct.pack("<I", 5)


def paged_case(kernel, lens, heads=1, group=2, dtype=0, base=0, page_size=16, memory=cache(), sharing=0, where=placed(0),
               numbers=scores(), out=outputs(), extra=b"\0", launch=b"\0\0"):
    head = bytes([kernel, base, 0, dtype]) + number(len(lens), 0, 3, 1) + small(heads, 1, 2, 1) + number(group, 1, 4, 1) + b"\0"
    body = number(page_size, 1, 32, 1) + b"".join(number(n, 0, KEYS, 1) for n in lens)
    return head + body + memory + bytes([sharing]) + where + numbers + out + extra + launch


def paged():
    seeds = {"nothing": b""}
    for kernel, name in ((V1, "v1"), (V2, "v2"), (TREE, "tree")):
        seeds |= {
            f"{name}_tiles": paged_case(kernel, [31, 32, 65], base=1),
            f"{name}_long": paged_case(kernel, [190], heads=1, group=3, numbers=scores(k="rising")),
            f"{name}_heads": paged_case(kernel, [40, 0], heads=2, group=4, dtype=1, page_size=3, out=outputs("shifted", 1, 1)),
            f"{name}_pages": paged_case(kernel, [50, 33], page_size=8, where=placed(2), memory=cache(1, 0, 2, 1, 1, 2), out=outputs(out_pad=2, lse_pad=1)),
            f"{name}_fp8": paged_case(kernel, [70], heads=2, extra=features(1, 2, 2, 1), memory=cache(0, 1)),
            f"{name}_tokens": paged_case(kernel, [5, 41], extra=features(q_len=3, window_left=19), out=outputs("one_hot", 2, 2, 9)),
            f"{name}_maps": paged_case(kernel, [60], heads=2, group=3, extra=features(logits_soft_cap=2, alibi=2, sinks=1)),
            f"{name}_dominant": paged_case(kernel, [150], numbers=scores(1, 0, "normal", "gaps"), out=outputs("near_max", 1, 1)),
        }
    for splits in (2, 3, 4):
        seeds[f"v2_splits_{splits}"] = paged_case(V2, [130, 33, 2], numbers=scores(0, splits, "normal", "falling"))
    seeds |= {
        "v2_splits_fp8": paged_case(V2, [100], numbers=scores(0, 2), extra=features(2, 1, 1, 2, q_len=2)),
        "v1_explicit": paged_case(V1, [20], page_size=4, memory=cache(spare=1), where=placed(3, (4, 0, 5, 2, 1), 6)),
        "v1_seeded_copies": paged_case(V1, [96], out=outputs("normal", 2, 2, 11)),
        "v1_early_start": paged_case(V1, [70, 3], launch=b"\1\1"),
        "v2_early_start": paged_case(V2, [70, 3], launch=b"\0\1", out=outputs("normal", 0, 0, 3)),
        "v2_second_call": paged_case(V2, [140, 9], out=outputs("normal", 0, 0, 1)),
        "tree_prefix": paged_case(TREE, [60, 70, 64], page_size=32, sharing=1, numbers=scores(0, 1, "normal", "slope")),
        "tree_deep": paged_case(TREE, [100, 90], page_size=16, sharing=3, numbers=scores(splits=2)),
        "tree_apart_later": paged_case(TREE, [150, 288], page_size=16, group=4, sharing=4, numbers=scores(splits=1)),
        "tree_whole": paged_case(TREE, [250, 232], page_size=8, group=4, sharing=3, numbers=scores(splits=1, k="rising")),
        "tree_of_three": paged_case(TREE, [200, 192, 100], page_size=32, group=4, sharing=3, numbers=scores(splits=1), extra=features(1, 2, 2, 1)),
        "v1_tiles_of_a_warp": paged_case(V1, [288], numbers=scores(k="falling"), out=outputs("shifted")),
        "tree_chain": paged_case(TREE, [80, 90, 85], page_size=8, sharing=4, where=placed(1), numbers=scores(splits=1)),
        "tree_prefix_fp8": paged_case(TREE, [60, 70], heads=1, page_size=32, sharing=1, numbers=scores(splits=1, q="wide"), extra=features(1, 1, 1, 1)),
        "tree_fp8_tiles": paged_case(TREE, [270, 230], heads=1, group=4, page_size=16, sharing=3, numbers=scores(1, 1, "wide", "normal"), extra=features(1, 2, 2, 2)),
    }
    return seeds


def level(batch, page_size, first, segments, lens):
    """segments: requests that each serves."""
    out = number(page_size, 1, 32, 1) + small(first, 0, batch, 0) + small(len(segments), 0, batch + 1, 1)
    left = batch - first
    for count in segments:
        out += small(count, 0, left, left)
        left = max(0, left - count)
    return out + b"".join(number(n, 0, KEYS, 1) for n in lens)


def cascade_case(batch, levels, heads=1, group=2, dtype=0, base=0, memory=cache(), where=placed(0), numbers=scores(), out=outputs()):
    head = bytes([0, base, 0, dtype]) + number(batch, 0, 4, 1) + small(heads, 1, 2, 1) + number(group, 1, 8, 1) + b"\0"
    body = small(len(levels), 1, 3, 1) + b"".join(level(batch, *one) for one in levels)
    return head + body + memory + where + numbers + out


def cascade():
    def shared(batch, prefix, lens):
        return [(16, 0, [batch], [prefix]), (16, 0, [1] * batch, lens)]

    return {
        "nothing": b"",
        "narrow": cascade_case(2, shared(2, 70, [30, 5]), base=1),
        "narrow_heads": cascade_case(2, shared(2, 40, [33, 0]), heads=2, group=3, dtype=1, memory=cache(1, 1, 1, 1, 1, 1)),
        "tiles": cascade_case(3, shared(3, 90, [10, 20, 3]), group=8, numbers=scores(k="falling")),
        "tiles_splits": cascade_case(3, shared(3, 96, [10, 0, 33]), group=8, numbers=scores(0, 2, "normal", "rising")),
        "wide": cascade_case(4, shared(4, 80, [1, 17, 0, 5]), group=8, numbers=scores(1, 0, "normal", "gaps")),
        "tiles_three_splits": cascade_case(4, shared(4, 96, [3, 4, 5, 6]), group=8, numbers=scores(0, 3), out=outputs("shifted", 2, 2, 5)),
        "wide_tiles": cascade_case(4, shared(4, 270, [1, 20, 2, 3]), heads=2, group=8, numbers=scores(k="rising")),
        "wide_three_tiles": cascade_case(4, [(32, 0, [4], [288])], heads=2, group=8, numbers=scores(k="falling"), out=outputs("shifted", 1, 1)),
        "wide_padding": cascade_case(4, shared(4, 200, [0, 0, 9, 0]), group=8, dtype=1, numbers=scores(k="slope"), out=outputs("normal", 2, 2, 6)),
        "two_heads_wide": cascade_case(4, shared(4, 150, [20, 1, 2, 3]), heads=2, group=8),
        "three_levels": cascade_case(4, [(8, 0, [4], [50]), (5, 0, [2, 2], [33, 20]), (16, 0, [1, 1, 1, 1], [9, 8, 0, 31])]),
        "uncovered": cascade_case(4, [(16, 1, [2], [40]), (3, 0, [1, 0, 2], [20, 7, 9])], where=placed(1)),
        "empty_segments": cascade_case(3, [(16, 0, [3], [0]), (16, 0, [1, 1, 1], [0, 5, 0])]),
        "one_level": cascade_case(2, [(4, 0, [1, 1], [90, 31])], group=4, numbers=scores(0, 4, "wide", "slope")),
        "pages": cascade_case(2, shared(2, 64, [16, 17]), where=placed(2), memory=cache(0, 1, 3, 2), out=outputs("one_hot", 1, 1, out_pad=1, lse_pad=2)),
        "seeded": cascade_case(3, shared(3, 60, [20, 40, 1]), group=5, out=outputs("normal", 2, 2, 77)),
    }


def schedule():
    """case, order + 3 copies, seed, holds"""
    seeds = {"nothing": b""}
    for subject in range(21):
        seeds[f"{subject:02}_descending"] = bytes([subject, 1 + 3])
        seeds[f"{subject:02}_seeded"] = bytes([subject, 8, 5, 0])
        seeds[f"{subject:02}_held"] = bytes([subject, 3 * (subject % 3), 0, 0]) + bytes([16, 32, 48, 64, 80, 96, 112] * 2)
    return seeds
