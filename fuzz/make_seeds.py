#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the hand made seeds: make_seeds.py corpus/seeds. Field by field, as the targets read them."""
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "paths"), str(HERE / "cases")]
from case_seeds import cascade, paged, schedule  # noqa: E402
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


def json():
    kernel = (
        b'"mma_block": 16, "mma_fraction_bits": 24, "sum_depth": 16, "q_abs_error": 0, "exp2_rel_error": 1e-7, '
        b'"log2_abs_error": 1e-7, "rcp_rel_error": 1e-7, "tanh_abs_error": 0, "tile_tokens": 64, '
        b'"max_parallel_states": 1, "max_splits": 0, "merge_stages": 0'
    )
    words = b'"p_format": "call", "sum_format": "fp32", "exponential": "base2"'
    numbers = b'"p_format": 1, "sum_format": 0, "exponential": 1'
    declared = (
        b'{"kernels": [{"name": "k", "target": "simt", "declaration": {' + kernel + b", " + words +
        b', "determinism": "run_to_run", "batch_invariance": "fixed", "nan_contract": "all"}}]}'
    )
    hello = (
        b'{"abi": [1, 0], "name": "w", "kernels": [{"name": "k", "family": 2, "determinism": 1, "batch_invariance": 1, '
        b'"nan_contract": 3, "arithmetic": {' + kernel + b", " + numbers + b"}}]}"
    )
    cell = b'{"name": "c", "batch": 1, "seq": 4096, "lengths": "equal", "num_qo_heads": 32, "num_kv_heads": 8, '
    cells = b'{"cells": [' + cell + b'"head_dim": 128, "page_size": 16, "kv_dtype": "bf16"}]}'
    merge = b'{"merge": [{"name": "m", "op": "merge_states", "rows": 64, "states": 16, "num_heads": 32, "head_dim": 128}]}'
    project = b'[build]\ncommand = "make"\nlibrary = "a.so"\n[gate]\nbudget = "5m"\nkernels = ["k"]\n[kernels]\nk = ["k.cu"]\n'
    log = (
        b"#2048 INITED cov: 10 ft: 20\nVIOLATION: off by 3\nTest unit written to ./crash-1\n"
        b"stat::number_of_executed_units: 4096\n"
    )
    return {
        "cells": b"\x00" + cells,
        "cells_merge": b"\x00" + merge,
        "cells_none": b"\x00{\n\"cells\": []}",
        "cells_number": b"\x00" + cells.replace(b"4096", b"1e300"),
        "cells_negative": b"\x00" + cells.replace(b"32", b"-32"),
        "declared": b"\x01" + declared,
        "declared_other": b"\x01" + declared.replace(b'"k"', b'"j"'),
        "declared_number": b"\x01" + declared.replace(b"64", b"1e300"),
        "declared_entry": b'\x01{"kernels": [5]}',
        "declared_name": b'\x01{"kernels": [{"name": 5, "target": []}]}',
        "declared_nested": b"\x01" + b"[" * 200 + b"]" * 200,
        "hello": b"\x02" + hello,
        "hello_version": b"\x02" + hello.replace(b"[1, 0]", b"[9, 9]"),
        "hello_infinite": b"\x02" + hello.replace(b"1e-7", b'"inf"'),
        "hello_surplus": b"\x02" + hello.replace(b'"name": "w"', b'"name": "w", "more": 1'),
        "hello_control": b"\x02" + hello.replace(b'"abi": [1, 0]', b'"abi": "\\u001b[2J"'),
        "project": b"\x03" + project,
        "project_type": b"\x03" + project.replace(b'"make"', b"[1]"),
        "project_unknown": b"\x03" + project + b'[other]\n"\\u001b[2J" = 1\n',
        "project_broken": b"\x03[build\n",
        "log": b"\x04" + log,
        "log_silent": b"\x04" + log.replace(b"VIOLATION", b"word"),
        "reply_empty": b"\x05",
        "reply_counts": b"\x05" + b"\x00" * 8 + b"\xff" * 16,
    }


def plan():
    """Split plans: 0, batch - 1, units - 1, fixed?, [splits - 1], workers - 1 (two bytes) or none, tile - 1, lengths.
    Trees: 1, batch - 2, q_len - 1, rows - 1, kv heads - 1, head_dim, kv_bytes - 1, page size, blocks - 1, fixed?, [splits - 1],
    few states?, [states - 1 (two bytes)], then of each request whose pages it begins with + 1, how many, own pages, unused tokens"""

    def balanced(batch, units, workers, tile, lens):
        return bytes([0, batch - 1, units - 1, 0]) + struct.pack("<H", workers - 1) + bytes([tile - 1]) + lens

    def fixed(batch, units, splits, lens):
        return bytes([0, batch - 1, units - 1, 1, splits - 1, 63]) + lens

    def tree(requests, q_len=1, rows=4, heads=2, head_dim=1, kv_bytes=2, page_size=1, blocks=4, splits=0, states=0):
        shape = [1, len(requests) - 2, q_len - 1, rows - 1, heads - 1, head_dim, kv_bytes - 1, page_size, blocks - 1]
        shape += [1, splits - 1] if splits else [0]
        few = bytes([1]) + struct.pack("<H", states - 1) if states else b"\0"
        return bytes(shape) + few + bytes(byte for request in requests for byte in request)

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
        "balanced_one_worker_each": balanced(3, 1, 3, 64, short(255, 64, 1)),
        "balanced_empty_at_the_ends": balanced(4, 2, 3, 64, short(0, 200, 100, 0)),
        "balanced_longest": balanced(2, 8, 528, 1, long((1 << 24) - 1, 1)),
        "fixed_one": fixed(2, 2, 1, short(9, 0)),
        "fixed_more_splits_than_keys": fixed(2, 1, 100, short(5, 0)),
        "fixed_seven": fixed(3, 4, 7, short(64, 63, 65)),
        "fixed_longest": fixed(1, 1, 100, long((1 << 24) - 1)),
        # A prefix of all, one of each half, one of some of those; page size 16.
        "tree_levels": tree([(0, 0, 40, 0), (1, 30, 9, 3), (1, 20, 20, 0), (3, 30, 2, 15), (1, 30, 9, 0), (4, 25, 8, 1)] * 2, splits=3),
        "tree_one_level_too_many": tree([(0, 0, 60, 0)] + [(1, 60 - 8 * i, 60, 0) for i in range(1, 7)], splits=1),
        "tree_nothing_shared": tree([(0, 0, 12, 0), (0, 0, 12, 5), (0, 0, 0, 0)], splits=2),
        "tree_equal_requests": tree([(0, 0, 33, 7), (1, 255, 0, 3), (1, 255, 0, 9)], q_len=8, splits=5),
        "tree_page_at_two_places": tree([(0, 0, 5, 1), (1, 3, 2, 1), (0, 0, 6, 0), (3, 4, 2, 0)], page_size=3, splits=1),
        "tree_few_states": tree([(0, 0, 64, 0), (1, 64, 0, 0), (1, 40, 3, 0)], splits=60, states=48),
        "tree_no_states": tree([(0, 0, 64, 0), (1, 64, 0, 0)], splits=2, states=3),
        "tree_pays": tree([(0, 0, 64, 0)] + [(1, 64, 1, 9)] * 30, heads=8, page_size=5, blocks=132),
        "tree_pays_fp8": tree([(0, 0, 64, 0)] + [(1, 60, 8, 9)] * 30, heads=8, kv_bytes=1, page_size=5, blocks=132),
        "tree_most_items": tree([(0, 0, 8, 0), (1, 8, 0, 0)] + [
            request for i in range(1, 12) for request in ((0, 0, 8, 0), (2 * i + 1, 8, 0, 0))], rows=1, heads=8, page_size=5, splits=64),
        "tree_many_rows": tree([(0, 0, 20, 0)] + [(1, 20, 1, 0)] * 38 + [(0, 0, 30, 0)], q_len=8, rows=9, splits=2),
        "tree_rows_of_one_request": tree([(0, 0, 20, 0), (1, 20, 1, 0), (0, 0, 30, 0)], q_len=8, rows=9, splits=2),
        "tree_one_token_pages": tree([(0, 0, 64, 0), (1, 64, 64, 0), (2, 128, 64, 0), (3, 192, 64, 0), (3, 70, 1, 0)], page_size=0, splits=2),
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


def judge():
    """rows, heads, dim, batch, pages, slots, kv_heads, ...: as judge_checks.cpp reads them. Zeros behind the end are plain."""
    shapes = {"nothing": b"", "no_rows": bytes([0, 1, 3, 0, 1, 1, 0, 1, 1]), "one": bytes([1, 0, 7, 1, 2, 3, 0, 1, 1]),
              "decode": bytes([4, 3, 7, 2, 4, 3, 1, 0, 1]), "heads": bytes([2, 2, 3, 2, 3, 1, 1, 1, 1])}
    seeds = dict(shapes)
    for number in range(40):
        stream, state = [], number * 7919 + 1
        for _ in range(60 + 7 * number):
            state = (state * 1103515245 + 12345) % 2**31
            stream.append(state >> 16 & 255)
        # Every other one keeps to plain arrays: few bytes say "otherwise".
        if number % 2:
            stream = [byte & 0xFE for byte in stream]
        head = list(shapes["decode" if number % 3 else "one"])
        seeds[f"stream_{number}"] = bytes(head + stream)
    seeds["masked"] = judge_call(mask=True)
    seeds["fp8_out"] = judge_call(fp8_out=[1, 0])
    seeds["fp8_out_scaled"] = judge_call(fp8_out=[1, 1] + [1] + numbers(1))
    for name, narrow, blocks in (("token_scales", 0, 0), ("token_scales_int8", 1, 0), ("block_scales", 0, 2), ("block_scales_int8", 1, 4)):
        axes = 4 if blocks else 3
        seeds[name] = judge_call(fp8_out=[0], scales=[1, narrow, blocks] + numbers(4) * 2 + numbers(axes) * 2)
        seeds[f"{name}_masked"] = judge_call(mask=True, fp8_out=[0], scales=[1, narrow, blocks] + numbers(4) * 2 + numbers(axes) * 2)
    return seeds


def numbers(axes, fill=37):
    """A plain array of judge_checks.cpp: its type, its axes and strides, its dims, what it holds."""
    return [0] * (2 * axes + 2) + [fill]


def judge_call(mask=False, fp8_out=(0,), scales=(0,)):
    """Two requests of 4 and 3 keys with a query each, one head of 4 elements, two pages of 4 slots, and what the call adds."""
    rows, requests = 2, 2
    head = [rows, 0, 3, requests, 2, 3, 0, 1, 1]  # heads, dim, slots and kv_heads count from 1
    lengths = [0] + [0] + [0] * 4 + [0] + [0, 4, 0, 3]
    table = [1, 1] + [0] + [0] * 6 + [0] + [0, 0, 0, 1]
    given = [0] * 3 + numbers(3) * 2 + numbers(4) * 2 + [0] * 5 + [0, 0] + [0] * 7
    masks = [1, 7] + numbers(1) if mask else [0]
    return bytes(head + lengths + table + given + masks + [0] + [0] + list(fp8_out) + list(scales))


def main():
    root = pathlib.Path(sys.argv[1])
    for make in (rescale, tile, merge, abi, codec, json, plan, problem, bound, judge, paged, cascade, schedule):
        folder = root / f"fuzz_{make.__name__}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in make().items():
            (folder / name).write_bytes(data)


main()
