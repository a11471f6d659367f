# SPDX-License-Identifier: Apache-2.0
"""Test of assay_abi.py on libassay.so: target simt, no GPU, nothing but the standard library.

Usage: assay_abi_test.py LIBASSAY
"""
import ctypes
import math
import pathlib
import random
import struct
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import assay_abi  # noqa: E402

LENGTHS, HEADS, HEAD_DIM, PAGE_SIZE, MAX_PAGES = [5, 0, 9], 2, 64, 4, 3
TABLE = [4, 1, -1, -1, -1, -1, 0, 5, 2]


def halves(values):
    """fp16 values as a ctypes array."""
    return (ctypes.c_uint16 * len(values)).from_buffer_copy(struct.pack(f"{len(values)}e", *values))


def floats(array):
    return struct.unpack(f"{len(array)}e", bytes(array))


def aligned(size):
    """A zeroed buffer whose address is a multiple of 16, as the library asks."""
    raw = ctypes.create_string_buffer(size + 16)
    start = -ctypes.addressof(raw) % 16
    return (ctypes.c_uint8 * size).from_buffer(raw, start)


class Case:
    """Two q heads on one kv head, three requests, fp16."""

    def __init__(self):
        draw = random.Random(1)
        row, pages = HEADS * HEAD_DIM, max(TABLE) + 1
        fp16 = lambda n: halves([draw.gauss(0, 1) for _ in range(n)])  # noqa: E731
        self.q = fp16(len(LENGTHS) * row)
        self.k, self.v = (fp16(pages * PAGE_SIZE * HEAD_DIM) for _ in range(2))
        self.o = halves([math.nan] * (len(LENGTHS) * row))
        self.table = (ctypes.c_int32 * len(TABLE))(*TABLE)
        self.lengths = (ctypes.c_int32 * len(LENGTHS))(*LENGTHS)

    def params(self, cls=assay_abi.PagedParams):
        address = ctypes.addressof
        p = cls(dtype=assay_abi.DTYPES["fp16"], kv_dtype=assay_abi.DTYPES["fp16"])
        p.target, p.batch, p.q_len, p.head_dim = assay_abi.TARGET_SIMT, len(LENGTHS), 1, HEAD_DIM
        p.num_qo_heads, p.num_kv_heads, p.sm_scale, p.window_left = HEADS, 1, HEAD_DIM**-0.5, -1
        p.q, p.out = address(self.q), address(self.o)
        p.q_stride_batch = p.out_stride_batch = HEADS * HEAD_DIM
        p.q_stride_head = p.out_stride_head = HEAD_DIM
        p.kv.k, p.kv.v = address(self.k), address(self.v)
        p.kv.k_stride_page = p.kv.v_stride_page = PAGE_SIZE * HEAD_DIM
        p.kv.k_stride_token = p.kv.v_stride_token = HEAD_DIM
        p.kv.k_stride_head = p.kv.v_stride_head = HEAD_DIM
        p.kv.page_table, p.kv.seq_lens = address(self.table), address(self.lengths)
        p.kv.rows, p.kv.page_size = len(LENGTHS), PAGE_SIZE
        p.kv.max_pages = p.kv.page_table_stride = MAX_PAGES
        return p

    def expected(self):
        """Attention in Python floats."""
        q, k, v = floats(self.q), floats(self.k), floats(self.v)
        result = []
        for row in range(len(LENGTHS) * HEADS):
            request = row // HEADS
            tokens = [
                (TABLE[request * MAX_PAGES + t // PAGE_SIZE] * PAGE_SIZE + t % PAGE_SIZE) * HEAD_DIM
                for t in range(LENGTHS[request])
            ]
            dot = lambda t: sum(q[row * HEAD_DIM + d] * k[t + d] for d in range(HEAD_DIM))  # noqa: E731
            weights = [math.exp(dot(t) * HEAD_DIM**-0.5) for t in tokens]
            for d in range(HEAD_DIM):
                total = sum(w * v[t + d] for w, t in zip(weights, tokens))
                result.append(total / sum(weights) if tokens else 0.0)
        return result

    def worst(self):
        """Largest distance from expected(); nan counts as far away."""
        return distance(floats(self.o), self.expected())

    def cascade_params(self):
        """The same attention as two levels: the first PAGE_SIZE keys of each request, then the others."""
        p, levels = self.params(), (assay_abi.CascadeLevel * 2)()
        self.indptr = (ctypes.c_int32 * (len(LENGTHS) + 1))(*range(len(LENGTHS) + 1))
        first = [min(n, PAGE_SIZE) for n in LENGTHS]
        self.parts = [(ctypes.c_int32 * len(LENGTHS))(*lens) for lens in (first, map(int.__sub__, LENGTHS, first))]
        for i, level in enumerate(levels):
            ctypes.memmove(ctypes.byref(level.kv), ctypes.byref(p.kv), ctypes.sizeof(p.kv))
            level.kv.page_table += i * ctypes.sizeof(ctypes.c_int32)
            level.kv.max_pages = 1 if i == 0 else MAX_PAGES - 1
            level.kv.seq_lens = ctypes.addressof(self.parts[i])
            level.segment_indptr = ctypes.addressof(self.indptr)
        c = assay_abi.CascadeParams(levels=levels, num_levels=len(levels))
        for name, _ in assay_abi.CascadeParams._fields_:
            if hasattr(p, name) and name not in ("struct_size", "reserved", "workspace", "workspace_bytes"):
                setattr(c, name, getattr(p, name))
        return c


def distance(values, expected):
    """The largest; nan counts as far away."""
    return max(abs(o - e) if o == o else math.inf for o, e in zip(values, expected))


class States:
    """`rows` x `states` states of two heads of 8, fp32, as merge_states has them."""

    def __init__(self, rows, states):
        draw, self.rows, self.states = random.Random(2), rows, states
        fp32 = lambda n: (ctypes.c_float * n)(*[draw.gauss(0, 1) for _ in range(n)])  # noqa: E731
        self.o_in, self.lse_in = fp32(rows * states * 16), fp32(rows * states * 2)
        self.o, self.lse = fp32(rows * 16), fp32(rows * 2)

    def fill(self, p):
        p.target, p.dtype, p.lse_base = assay_abi.TARGET_SIMT, assay_abi.DTYPES["fp32"], assay_abi.LSE_BASE_2
        p.num_rows, p.num_heads, p.head_dim = self.rows, 2, 8
        p.out, p.lse = ctypes.addressof(self.o), ctypes.addressof(self.lse)
        p.out_stride_row, p.out_stride_head, p.lse_stride_row, p.lse_stride_head = 16, 8, 2, 1
        return p

    def expected(self):
        result = []
        for row, head in ((r, h) for r in range(self.rows) for h in range(2)):
            at = [(row * self.states + s) * 2 + head for s in range(self.states)]
            weights = [2.0 ** self.lse_in[i] for i in at]
            for d in range(8):
                result.append(sum(w * self.o_in[i * 8 + d] for w, i in zip(weights, at)) / sum(weights))
        return result


class AssayAbiTest(unittest.TestCase):
    library = None

    def run_v2(self, case):
        p = case.params()
        plan = aligned(self.library.paged_attention_v2_plan_size(p))
        p.plan, p.plan_bytes = ctypes.addressof(plan), len(plan)
        self.library.paged_attention_v2_plan(p)
        workspace = aligned(self.library.paged_attention_v2_workspace_size(p))
        p.workspace, p.workspace_bytes = ctypes.addressof(workspace), len(workspace)
        self.library.paged_attention_v2(p)

    def test_v1(self):
        case = Case()
        self.library.paged_attention_v1(case.params())
        self.assertLess(case.worst(), 2e-3)

    def test_v2_with_a_plan(self):
        case = Case()
        self.run_v2(case)
        self.assertLess(case.worst(), 2e-3)

    def test_cascade(self):
        case = Case()
        p = case.cascade_params()
        workspace = aligned(max(self.library.cascade_attention_workspace_size(p), 16))
        p.workspace, p.workspace_bytes = ctypes.addressof(workspace), len(workspace)
        self.library.cascade_attention(p)
        self.assertLess(case.worst(), 2e-3)

    def test_merge_states(self):
        states = States(rows=3, states=4)
        p = states.fill(assay_abi.MergeStatesParams(num_states=4))
        p.o_in, p.lse_in = ctypes.addressof(states.o_in), ctypes.addressof(states.lse_in)
        p.o_in_stride_state, p.o_in_stride_head, p.lse_in_stride_state, p.lse_in_stride_head = 16, 8, 2, 1
        self.library.merge_states(p)
        self.assertLess(distance(states.o, states.expected()), 1e-5)

    def test_merge_state(self):
        states = States(rows=3, states=2)
        p = states.fill(assay_abi.MergeStateParams())
        p.o_a, p.lse_a = ctypes.addressof(states.o_in), ctypes.addressof(states.lse_in)
        p.o_b, p.lse_b = p.o_a + 16 * 4, p.lse_a + 2 * 4
        for field in ("o_a_stride_row", "o_b_stride_row"):
            setattr(p, field, 2 * 16)
        p.lse_a_stride_row = p.lse_b_stride_row = 2 * 2
        p.o_a_stride_head = p.o_b_stride_head = 8
        p.lse_a_stride_head = p.lse_b_stride_head = 1
        self.library.merge_state(p)
        self.assertLess(distance(states.o, states.expected()), 1e-5)

    def test_choice(self):
        p = Case().params()
        self.assertEqual(self.library.paged_attention_choose(p, [100] * p.batch).even_lengths, 1)
        uneven = [100] + [1] * (p.batch - 1)
        self.assertEqual(self.library.paged_attention_choose(p, uneven).even_lengths, 0)

    def test_a_wrong_value_is_seen(self):
        case = Case()
        self.run_v2(case)
        case.v[TABLE[0] * PAGE_SIZE * HEAD_DIM] ^= 0x8000
        self.assertGreater(case.worst(), 2e-2)

    def test_a_wrong_argument_is_refused_by_name(self):
        p = Case().params()
        p.kv.page_size = 0
        with self.assertRaisesRegex(assay_abi.AssayError, "paged_attention_v1: .*page_size is 0"):
            self.library.paged_attention_v1(p)

    def test_a_missing_field_is_refused(self):
        class Short(ctypes.Structure):
            _fields_ = [f for f in assay_abi.PagedParams._fields_ if f[0] != "workspace_bytes"]

        with self.assertRaisesRegex(assay_abi.AssayError, "struct_size is"):
            self.library.paged_attention_v1(Case().params(Short))


if __name__ == "__main__":
    AssayAbiTest.library = assay_abi.Assay(sys.argv.pop())
    unittest.main()
