# SPDX-License-Identifier: Apache-2.0
"""Merges of attention states: assay through the C ABI, and FlashInfer. Needs PyTorch."""
import zlib

import torch

from assay_abi import DTYPES, LSE_BASE_2, TARGET_CUDA, MergeStateParams, MergeStatesParams
from peer_kernels.inputs import spread_rows
from peer_kernels.timing import Kind, page_sets


class MergeData:
    """`sets` times the states of a merge cell: O is N(0,1) in bf16, LSE N(0,1) to base 2, as FlashInfer's are.

    merge_states has o [sets, rows, states, heads, head_dim] and lse [sets, rows, states, heads], merge_state the
    states in front of the rows; a set's O lie together, then its LSE."""

    def __init__(self, cell, device, l2_bytes):
        torch.manual_seed(zlib.crc32(cell["name"].encode()))
        self.cell, self.device, self.flops = cell, device, 0
        self.rows, self.states = cell["rows"], cell["states"]
        self.heads, self.head_dim = cell["num_heads"], cell["head_dim"]
        self.pairs = cell["kind"] != "merge_states"
        o_bytes = self.rows * self.states * self.heads * self.head_dim * torch.bfloat16.itemsize
        self.read_bytes = o_bytes + o_bytes // self.head_dim * 2
        self.bytes = self.read_bytes + self.read_bytes // self.states
        self.sets = page_sets(self.bytes, l2_bytes)
        self.pool = torch.empty(self.sets, self.read_bytes, dtype=torch.uint8, device=device)
        lead = (self.states, self.rows) if self.pairs else (self.rows, self.states)
        self.o, self.lse = [], []
        for s in range(self.sets):
            self.o.append(self.pool[s, :o_bytes].view(torch.bfloat16).view(*lead, self.heads, self.head_dim))
            self.lse.append(self.pool[s, o_bytes:].view(torch.float32).view(*lead, self.heads))
            self.o[s].normal_()
            self.lse[s].normal_()

    def outputs(self):
        """O and LSE of every set."""
        o_shape, lse_shape = (self.rows, self.heads, self.head_dim), (self.rows, self.heads)
        return [
            (
                torch.empty(o_shape, dtype=torch.bfloat16, device=self.device),
                torch.empty(lse_shape, dtype=torch.float32, device=self.device),
            )
            for _ in range(self.sets)
        ]

    def copies(self):
        """The first states of every set, for merges in place: a set is merged into again by every replay."""
        return [(o[0].clone(), lse[0].clone()) for o, lse in zip(self.o, self.lse)]


def reference(data):
    """The merge of the sampled rows of set 0 in float64: {row: [heads, head_dim]}."""
    result = {}
    for r in spread_rows(data.rows):
        o, lse = (x[0][:, r] if data.pairs else x[0][r] for x in (data.o, data.lse))
        weights = torch.softmax(lse.double() * torch.log(torch.tensor(2.0, dtype=torch.float64)).item(), dim=0)
        result[r] = (weights[..., None] * o.double()).sum(0)
    return result


def fill(p, data, o, lse):
    """What the parameters of both merges have in common, with `o` and `lse` as outputs."""
    p.target, p.dtype, p.lse_base = TARGET_CUDA, DTYPES["bf16"], LSE_BASE_2
    p.num_rows, p.num_heads, p.head_dim = data.rows, data.heads, data.head_dim
    p.out, p.lse = o.data_ptr(), lse.data_ptr()
    p.out_stride_row, p.out_stride_head, _ = o.stride()
    p.lse_stride_row, p.lse_stride_head = lse.stride()
    p.stream = torch.cuda.current_stream().cuda_stream
    return p


def merge_state_params(data, a, b, out):
    """assay_merge_state_params of states `a` and `b` into `out`, each O and LSE."""
    p = fill(MergeStateParams(), data, *out)
    p.o_a, p.lse_a, p.o_b, p.lse_b = (x.data_ptr() for x in (*a, *b))
    p.o_a_stride_row, p.o_a_stride_head, _ = a[0].stride()
    p.lse_a_stride_row, p.lse_a_stride_head = a[1].stride()
    p.o_b_stride_row, p.o_b_stride_head, _ = b[0].stride()
    p.lse_b_stride_row, p.lse_b_stride_head = b[1].stride()
    return p


def assay_merge_state(library, data, in_place=False):
    outputs = data.copies() if in_place else data.outputs()

    def run(s):
        first = outputs[s] if in_place else (data.o[s][0], data.lse[s][0])
        library.merge_state(merge_state_params(data, first, (data.o[s][1], data.lse[s][1]), outputs[s]))
        return outputs[s][0]

    return run


def assay_merge_state_in_place(library, data):
    return assay_merge_state(library, data, in_place=True)


def assay_merge_states(library, data):
    outputs = data.outputs()

    def run(s):
        p = fill(MergeStatesParams(num_states=data.states), data, *outputs[s])
        p.o_in, p.lse_in = data.o[s].data_ptr(), data.lse[s].data_ptr()
        _, p.o_in_stride_state, p.o_in_stride_head, _ = data.o[s].stride()
        _, p.lse_in_stride_state, p.lse_in_stride_head = data.lse[s].stride()
        library.merge_states(p)
        return outputs[s][0]

    return run


def flashinfer_merge_state(data):
    """It allocates its output: every set's is kept, so that none is written over while it is in the L2."""
    from flashinfer.cascade import merge_state

    kept = [None] * data.sets

    def run(s):
        kept[s] = merge_state(data.o[s][0], data.lse[s][0], data.o[s][1], data.lse[s][1])
        return kept[s][0]

    return run


def flashinfer_merge_state_in_place(data):
    from flashinfer.cascade import merge_state_in_place

    firsts = data.copies()

    def run(s):
        merge_state_in_place(*firsts[s], data.o[s][1], data.lse[s][1])
        return firsts[s][0]

    return run


def flashinfer_merge_states(data):
    from flashinfer.cascade import merge_states

    kept = [None] * data.sets

    def run(s):
        kept[s] = merge_states(data.o[s], data.lse[s])
        return kept[s][0]

    return run


KINDS = {
    "merge_state": Kind(
        MergeData, reference, {"merge_state": assay_merge_state}, {"FlashInfer merge_state": flashinfer_merge_state}
    ),
    "merge_state in place": Kind(
        MergeData,
        reference,
        {"merge_state in place": assay_merge_state_in_place},
        {"FlashInfer merge_state_in_place": flashinfer_merge_state_in_place},
    ),
    "merge_states": Kind(
        MergeData, reference, {"merge_states": assay_merge_states}, {"FlashInfer merge_states": flashinfer_merge_states}
    ),
}
