#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the hand made seeds: make_seeds.py corpus/seeds. Field by field, as the targets read them."""
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "paths"))
from path_seeds import merge, rescale, tile  # noqa: E402


def abi():
    """entry point, then per edit: word of the parameters, value: special, small or raw"""
    paged, plan, cascade, merge_state, merge_states = range(5)
    # By declaration in kernels/abi/assay.h: struct_size, target, dtype, ..., each a word.
    min_int, max_int, two_31, two_32, two_62, max_long = 16, 15, 17, 18, 21, 22
    seeds = {}
    for name, call in (("paged", paged), ("plan", plan), ("cascade", cascade), ("merge_state", merge_state),
                       ("merge_states", merge_states)):
        head = bytes([call]) + (bytes([0, 96]) + bytes([33, 96]) * 15 if call == cascade else b"")  # levels stay
        seeds[f"{name}_right"] = bytes([call])
        for value in (min_int, max_int, two_31, two_32, two_62, max_long):
            seeds[f"{name}_words_{value}"] = bytes([call]) + bytes([5, value, 40, value])
        seeds[f"{name}_cuda"] = head + bytes([1, 1])
        seeds[f"{name}_no_batch"] = head + bytes([4, 0, 5, 0])
    seeds["paged_workspace_small"] = bytes([paged, 124, 0, 125, 0])
    seeds["plan_field"] = bytes([plan, 2, 160, 3, 160])
    return seeds


def codec():
    def text(body):
        return b"\x01" + body

    head = b"assay-case 1\n"

    def case(body):
        return text(head + body + b"end\n")

    return {
        "nothing": b"",
        "text_empty": text(b""),
        "text_header": text(head),
        "text_behind_the_end": case(b"end\nbatch = 2\n"),
        "text_not_a_case": text(b"hello\n"),
        "text_no_equals": case(b"batch\n"),
        "text_unknown_field": case(b"no_such_field = 3\n"),
        "text_twice": case(b"batch = 1\nbatch = 2\n"),
        "text_negative": case(b"batch = -1\n"),
        "text_huge_number": case(b"batch = 99999999999999999999\n"),
        "text_lists": case(b"batch = 3\nseq_lens = 0, 1, 64\n"),
        "text_bad_list": case(b"batch = 2\nseq_lens = 1,,2\n"),
        "text_pages": case(b"placement = explicit\nseq_lens = 2\npage_ids = 5, 0\n"),
        "text_merge": case(b"family = merge_states\nnum_states = 3\nragged = yes\n"),
        "text_cascade": case(b"family = cascade\nnote = a note # with a hash\n"),
        "text_control_characters": case(b"batch = \x00\x1b[31m\xff\n"),
        "text_crlf": text((head + b"batch = 2\nend\n").replace(b"\n", b"\r\n")),
        "text_names": case(b"kernel = k\nproperty = p\ntarget = cuda\nnote = one\nnote = two\n"),
        **{f"bytes_limits_{i}_{f}": bytes([2 * i, 1, f]) + bytes(range(7, 250, 13)) for i in (0, 3) for f in range(4)},
        "bytes_all_ones": b"\x06" + b"\xff" * 80,
    }


def plan():
    """batch - 1, units - 1, fixed?, [splits - 1], workers - 1 (two bytes) or none, tile - 1, lengths"""

    def balanced(batch, units, workers, tile, lens):
        return bytes([batch - 1, units - 1, 0]) + struct.pack("<H", workers - 1) + bytes([tile - 1]) + lens

    def fixed(batch, units, splits, lens):
        return bytes([batch - 1, units - 1, 1, splits - 1, 63]) + lens

    def short(*lens):
        return b"".join(bytes([1, n]) for n in lens)

    def long(*lens):
        return b"".join(bytes([3]) + struct.pack("<I", n)[:3] for n in lens)

    return {
        "nothing": b"",
        "balanced_no_keys": balanced(3, 2, 7, 64, b"\0\0\0"),
        "balanced_one_key_many_workers": balanced(1, 1, 528, 1, short(1)),
        "balanced_one_request": balanced(1, 8, 132, 64, long(1 << 20)),
        "balanced_more_requests_than_workers": balanced(8, 3, 5, 16, short(1, 17, 0, 255, 16, 15, 0, 0)),
        "balanced_empty_at_the_ends": balanced(4, 2, 3, 64, short(0, 200, 100, 0)),
        "balanced_longest": balanced(2, 8, 528, 1, long((1 << 24) - 1, 1)),
        "fixed_one": fixed(2, 2, 1, short(9, 0)),
        "fixed_more_splits_than_keys": fixed(2, 1, 100, short(5, 0)),
        "fixed_seven": fixed(3, 4, 7, short(64, 63, 65)),
        "fixed_longest": fixed(1, 1, 100, long((1 << 24) - 1)),
    }


def problem():
    return {
        "nothing": b"",
        **{f"family_{f}_{i}": bytes([p, 1, f]) + bytes((i * k) % 251 for k in range(1, 60))
           for i, p in ((29, 0), (71, 3)) for f in range(4)},
    }


def bound():
    """0, then dtype, log2(d / 16), n - 1, scale, base, arithmetic, log2(tile / 8), states - 1,
    combine, [stages - 1], maxima, subnormals, noise, seed, [splits - 1]; or 1, family, palettes; then
    three palettes: count - 1, a, b, values; then, for kernels, a case"""

    def palette(a, b, *values):
        return bytes([len(values) - 1, a, b, *values])

    ones, ramp = palette(0, 0, 72), palette(1, 0, 64, 66, 68, 70, 72, 74, 76, 78)
    noise = palette(3, 5, 60, 69, 73, 58, 66, 77, 62)
    mixed = palette(5, 3, 40, 90, 3, 127, 70, 65, 11, 100)
    tiny, largest = palette(3, 1, 128, 160, 192, 224), palette(1, 3, 191, 255, 159, 64)
    powers = palette(1, 2, *(128 + 16 + e for e in (0, 1, 2, 3, 35, 66, 99)))
    values = {
        "ones": (ones, ones, noise),
        "noise": (noise, mixed, mixed),
        "ramp": (ones, ramp, noise),
        "tiny": (noise, tiny, tiny),
        "largest": (ones, noise, largest),
        "large_logits": (mixed, mixed, noise),
        "powers": (noise, powers, powers),
    }
    seeds = {"nothing": b"", "kernels_nothing": b"\1"}
    for number, (name, tensors) in enumerate(values.items()):
        for dtype, arithmetic in ((0, 0), (1, 0), (0, 2), (1, 3)):
            head = bytes([0, dtype, 1, 50 + number, number % 6, number % 2, arithmetic, number % 4])
            shape = bytes([number % 8, 1, number % 2, number % 4, dtype ^ 1, number % 4, number, number % 3])
            seeds[f"emulated_{name}_{dtype}{arithmetic}"] = head + shape + b"".join(tensors)
        for family in (0, 1):
            case = bytes((i * i * 89 + i * 37 + number * 11) % 251 for i in range(90))
            seeds[f"kernels_{name}_{family}"] = bytes([1, family, 1]) + b"".join(tensors) + case
    return seeds


def main():
    root = pathlib.Path(sys.argv[1])
    for make in (rescale, tile, merge, abi, codec, plan, problem, bound):
        folder = root / f"fuzz_{make.__name__}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in make().items():
            (folder / name).write_bytes(data)


main()
