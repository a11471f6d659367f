# SPDX-License-Identifier: Apache-2.0
"""The hand made seeds of the targets that drive the kernels' own parts (make_seeds.py writes them)."""
import struct

POS_ZERO, NEG_ZERO, INF, NEG_INF, NAN, NEG_NAN, MAX, NEG_MAX, MIN_NORMAL = range(9)
DENORM, SUBNORMAL, LIMIT, NEG_LIMIT, BEYOND, E5, NEG_E5, N126 = 10, 12, 13, 14, 15, 16, 17, 18
ABSORB, RESCALE, MERGE, LOAD = range(4)


def q(value):
    """A multiple of 1/4 in -12 .. 11.75."""
    return bytes([int(value * 4) + 80])


def s(special):
    return bytes([special])


def raw(value):
    return bytes([128]) + struct.pack("<f", value)


def op(kind, slot=0):
    return bytes([slot * 4 + kind])


def absorb(score, v0=None, v1=None, slot=0):
    return op(ABSORB, slot) + score + (v0 or q(1)) + (v1 or q(-2))


def load(lse, v0=None, v1=None, slot=0):
    return op(LOAD, slot) + lse + (v0 or q(1)) + (v1 or q(-2))


def rescale():
    one, ln = bytes([0]), bytes([1])
    ramp = range(-6, 7)
    merge01 = op(MERGE, 0)  # slot 1 into slot 0
    nan = (s(NAN), s(INF))
    return {
        "nothing": one,
        "one_key": one + absorb(q(1)),
        "rising": ln + b"".join(absorb(q(x), q(x)) for x in ramp),
        "falling": ln + b"".join(absorb(q(-x), q(x)) for x in ramp),
        "ties": ln + b"".join(absorb(q(2), q(x)) for x in ramp),
        "all_masked": ln + absorb(s(NEG_INF)) * 3,
        "masked_first_and_last": ln + absorb(s(NEG_INF)) + absorb(q(1)) + absorb(s(NEG_INF)),
        "huge_scores": one + absorb(s(E5)) + absorb(s(NEG_E5)) + absorb(raw(99999.5)),
        "range_edge": one + absorb(s(LIMIT)) + absorb(s(NEG_LIMIT)) + absorb(s(LIMIT)),
        "beyond_range": one + absorb(s(BEYOND)) + absorb(s(MAX)) + absorb(s(NEG_MAX)),
        "weights_underflow": one + absorb(raw(0.0)) + absorb(s(N126)) + absorb(raw(252.5)),
        "subnormals": one + absorb(s(SUBNORMAL), s(DENORM), s(MIN_NORMAL)) + absorb(s(DENORM), s(SUBNORMAL)),
        "zeros_of_both_signs": one + absorb(s(NEG_ZERO), s(NEG_ZERO)) + absorb(s(POS_ZERO), s(NEG_ZERO)),
        "large_values": one + absorb(q(1), raw(2.0**125), raw(-(2.0**125))) + absorb(q(2), raw(2.0**124), s(MAX)),
        "nan_score": one + absorb(q(1)) + absorb(s(NAN)) + absorb(q(2)),
        "inf_score": one + absorb(q(1)) + absorb(s(INF)),
        "nan_in_one_lane": one + absorb(q(1), s(NAN), q(1)) + absorb(q(3), q(1), q(2)),
        "merge_two": ln + absorb(q(1)) + absorb(q(3), slot=1) + absorb(q(2), slot=1) + merge01,
        "merge_many": ln + b"".join(absorb(raw(x * 1.37)) + absorb(raw(5 - x / 3), slot=1) + merge01 for x in ramp),
        "merge_fractions": ln + b"".join(
            load(raw(x / 7), raw(x / 3), raw(1.7 + x / 9), slot=1) + absorb(raw(x / 11), raw(x / 13), slot=1) + merge01
            for x in range(1, 9)),
        "merge_empty_into_live": one + absorb(q(1)) + merge01,
        "merge_live_into_empty": one + absorb(q(1), slot=1) + merge01,
        "merge_empty_empty": one + merge01,
        "dead_partial_merged": one + load(s(NEG_INF), *nan) + absorb(q(1), slot=1) + merge01,
        "nan_partial_then_masked": one + load(s(NAN)) + absorb(s(NEG_INF)),
        "inf_partial_then_lower": one + load(s(INF)) + absorb(q(1)),
        "partials": ln + load(q(1)) + load(q(2), q(5), slot=1) + merge01 + load(raw(-3.3), slot=1) + merge01,
        "rescale_up": one + absorb(q(1)) + op(RESCALE) + q(3) + absorb(q(3)),
        "rescale_underflows_all": one + absorb(q(1)) + op(RESCALE) + s(E5) + absorb(q(1)),
        "rescale_empty": one + op(RESCALE) + q(1) + absorb(q(1)),
        "scale_tiny": s(MIN_NORMAL) + absorb(s(LIMIT)) + absorb(s(NEG_LIMIT)),
        "scale_negative": q(-1) + absorb(q(1)) + absorb(q(2)),
        "scale_nan": s(NAN) + absorb(q(1)) + absorb(q(2)),
    }


def tile():
    """form, scale, then per tile: spots (scores + 16 values), keys masked, scores: fill, pattern, [spread],
    values: fill, pattern; spots of scores: token (+ 64: upper rows), rows, number; of values: token, dim, element"""

    def step(scores, values=q(1), pattern=b"\0", masked=0, spots=(), v_pattern=0, v_spots=()):
        head = bytes([len(spots) + 16 * len(v_spots), masked])
        return head + scores + pattern + values + bytes([v_pattern]) + b"".join(spots) + b"".join(v_spots)

    def ramp(spread, seed=1):
        return bytes([seed]) + spread

    def spot(number, token=0, rows=0):
        return bytes([token, rows]) + number

    large = s(10)  # 2^112 in bf16
    programs = {
        "one": step(q(1)),
        "rising": b"".join(step(q(x), q(1 + x), ramp(q(0.5), x + 1), v_pattern=x) for x in range(4)),
        "falling": b"".join(step(q(-x), q(1 + x), ramp(q(0.25), x + 1), v_pattern=x + 1) for x in range(4)),
        "masked_by_the_tail": step(q(1), masked=16) + step(q(1), masked=5),
        "masked_by_scores": step(s(NEG_INF)) + step(s(NEG_INF), spots=[spot(q(1), 3, 2)]) + step(s(NEG_INF)),
        "nan_score": step(q(1), spots=[spot(s(NAN), 4, 1)]) + step(q(2)),
        "nan_scores_alone": step(s(NAN)) + step(q(1)),
        "inf_score": step(q(1), spots=[spot(s(INF), 9, 4)]) + step(q(2)),
        "far_key_of_large_value": step(q(0), s(0), spots=[spot(s(N126), 2)], v_spots=[bytes([2, 1]) + large]),
        "nan_value": step(q(0), v_spots=[bytes([2, 1, 4])]) + step(q(-4)),
        "barely_rising": step(q(1)) + step(raw(1.0001)) + step(raw(1.00011)) + step(raw(1.000114)),
        "rising_by_2_17": step(q(1)) + step(raw(1.000007), masked=12),
        "subnormal_values": step(q(0), s(7), v_pattern=3) + step(q(1), s(8), v_pattern=4),
        "large_logits": step(raw(1e7), pattern=ramp(q(1))) + step(raw(1e7 + 2), pattern=ramp(q(2), 5)),
        "huge_scores": step(s(NEG_E5)) + step(s(E5)) + step(s(LIMIT)),
    }
    for k in (12, 14, 16):
        programs[f"rising_by_2_{k}"] = step(q(1)) + step(raw(1 + 1.5 * 2.0**-k), masked=12)
    for k in (90, 118):
        at_2_k = [spot(raw(-float(k)), 2)]
        programs[f"key_at_2_{k}_of_large_value"] = step(q(0), s(0), spots=at_2_k, v_spots=[bytes([2, 1]) + large])
    programs["maximum_of_2_19"] = step(raw(2.0**19 + 8)) + step(raw(2.0**19 + 9))
    return {f"{name}_{form}": bytes([form, form]) + data for name, data in programs.items() for form in range(4)
            if form == 0 or name in ("rising", "falling", "nan_score", "masked_by_the_tail", "subnormal_values")}


def merge():
    """form, natural, [scale of a block], rows - 1, [states wanted], [levels - 1, levels not covered], then per
    state: LSE, [mass of a block], o: fill, pattern, [component of its own]"""
    pair, pair_bf16, sink, few, many, block, splits, cascade = range(8)

    def program(form, *states, natural=0, rows=0, wanted=0, levels=0, uncovered=0):
        head = bytes([form, natural]) + (b"\0" if form == block else b"") + bytes([rows])
        if form in (many, splits, cascade):
            head += bytes([wanted])
        if form == cascade:
            head += bytes([levels, uncovered])
        return head + b"".join(states)

    def state(lse, o=q(1), pattern=0, mass=b"", own=b""):
        return lse + mass + o + bytes([pattern]) + own

    def warp(m, mass=q(1), o=q(1), pattern=0):
        return state(m, o, pattern, mass)

    near, far = state(q(2), q(3), 5), state(q(-3), q(-2), 9)
    empty, dead = state(s(NEG_INF), s(POS_ZERO)), state(s(NEG_INF), s(NAN))
    heavy = state(s(N126), s(MAX), 3)  # a state of small weight
    at_2_70 = state(raw(-68.0), raw(2.0**100), 3)
    seeds = {}
    for name, form in (("pair", pair), ("pair_bf16", pair_bf16), ("few", few), ("many", many), ("splits", splits),
                       ("cascade", cascade)):
        seeds.update({
            f"{name}_two": program(form, near, far),
            f"{name}_empty": program(form, empty, dead),
            f"{name}_empty_and_one": program(form, dead, near),
            f"{name}_nan_lse": program(form, near, state(s(NAN))),
            f"{name}_nan_value": program(form, state(q(2), q(1), 192 + 3, own=s(NAN)), far),
            f"{name}_near_maxima": program(form, state(q(1), q(2), 7), state(raw(1.0005), q(3), 8)),
            f"{name}_small_weight": program(form, state(q(0), s(POS_ZERO)), heavy),
            f"{name}_weight_of_2_70": program(form, state(q(2), s(POS_ZERO)), at_2_70),
        })
    ramp = [state(raw(x * 0.37), q(x % 7), x + 7) for x in range(-6, 6)]
    seeds.update({
        "pair_natural": program(pair, far, near, natural=1),
        "few_natural": program(few, far, near, natural=1),
        "pair_small_mass": program(pair, state(q(0)), state(raw(-13.0), q(2))),
        "pair_far_apart": program(pair, state(s(E5)), state(s(NEG_E5))),
        "sink": program(sink, near, state(q(1))),
        "sink_of_an_empty_row": program(sink, empty, state(q(1))),
        "sink_small": program(sink, near, state(raw(-10.0))),
        "sink_none": program(sink, near, empty),
        "many_17": program(many, *ramp, wanted=17),
        "many_40": program(many, *ramp, dead, natural=1, wanted=40),
        "many_rising_by_little": program(many, *(state(raw(1 + x / 16384), q(x % 5 + 1)) for x in range(20))),
        "splits_paired": program(splits, *ramp[:7], rows=1),
        "splits_of_all_rows": program(splits, *ramp[:8], rows=7),
        "cascade_own": program(cascade, *ramp[:6], rows=5, levels=2),
        "cascade_uncovered": program(cascade, *ramp[:6], levels=3, uncovered=5),
        "splits_weight_of_2_90": program(splits, state(q(2), s(POS_ZERO)), state(raw(-88.0), raw(2.0**100), 3)),
        "many_weight_of_2_90": program(many, state(q(2), s(POS_ZERO)), state(raw(-88.0), raw(2.0**100), 3)),
        "sink_of_2_12": program(sink, state(q(0)), state(raw(-11.5 / 1.44269504))),
        "pair_apart_by_2_14": program(pair, state(q(1), q(2), 7), state(raw(1 + 1.5 * 2.0**-14), q(3), 8)),
        "block_two": program(block, warp(q(1), q(3), q(2), 5), warp(q(3), q(2), q(-3), 6)),
        "block_low_part": program(block, warp(q(1), q(3), q(2), 5), warp(q(3), q(2), q(-3), 6), natural=1),
        "block_empty": program(block, warp(s(NEG_INF)), warp(s(NEG_INF))),
        "block_one_empty": program(block, warp(s(NEG_INF)), warp(q(1), q(2), q(5), 3), warp(s(NEG_INF))),
        "block_nan": program(block, warp(s(NAN)), warp(q(1), q(2))),
        "block_far": program(block, warp(q(0), q(1), s(POS_ZERO)), warp(raw(-110.0), q(1), raw(2.0**100))),
    })
    return seeds
