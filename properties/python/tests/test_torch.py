# SPDX-License-Identifier: Apache-2.0
"""case.torch(): tensors of torch over the memory of the case. Torch is optional: where it is not, nothing of this runs."""
import numpy as np
import pytest

import assay
from assay.case import Case
from right_kernels import MERGE


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@assay.kernel(family="merge_state", declaration=MERGE, determinism="run_to_run", nan_contract="all")
def merge_in_torch(case):
    import torch

    t = case.torch()
    exp, log = (torch.exp, torch.log) if case.lse_base == "e" else (torch.exp2, torch.log2)
    o_a, o_b, lse_a, lse_b = (x.clone() for x in (t.o_a, t.o_b, t.lse_a, t.lse_b))
    a_empty, b_empty = torch.isneginf(lse_a), torch.isneginf(lse_b)
    top = torch.maximum(lse_a, lse_b)
    top = torch.where(torch.isneginf(top), torch.zeros_like(top), top)
    weight_a, weight_b = exp(lse_a - top), exp(lse_b - top)
    total = weight_a + weight_b
    merged = (weight_a[..., None] * o_a.float() + weight_b[..., None] * o_b.float()) / total[..., None]
    largest = torch.finfo(t.out.dtype).max
    merged = merged.clamp(-largest, largest).to(t.out.dtype)
    merged = torch.where(b_empty[..., None], o_a, merged)
    merged = torch.where(a_empty[..., None], o_b, merged)
    t.out.copy_(torch.where((a_empty & b_empty)[..., None], torch.zeros_like(merged), merged))
    if t.lse is not None:
        lse = torch.where(b_empty, lse_a, top + log(total))
        t.lse.copy_(torch.where(a_empty, lse_b, lse))


def test_a_right_kernel_passes(torch):
    result = assay.check(merge_in_torch, cases=2).raise_for_findings()
    assert result.report["kernels"][0]["outputs"] > 1000


def test_tensors_share_the_memory(torch):
    memory = np.zeros(256, np.uint8)

    def tensor(dtype, offset, output=False):
        return {"dtype": dtype, "shape": [2, 3], "strides": [4, 1], "offset": offset, "output": output}

    call = {"dtype": "bf16", "out": tensor("bf16", 0, True), "q": tensor("fp16", 64), "lse": None, "head_dim": 3}
    call["levels"] = [{"k_cache": tensor("e5m2", 128), "page_size": 4}]
    case = Case(call, memory, memory.ctypes.data)
    t = case.torch()
    assert t.out.dtype == torch.bfloat16 and t.out.stride() == (4, 1) and t.q.dtype == torch.float16
    assert t.lse is None and t.head_dim == 3 and t.levels[0].page_size == 4
    t.out[1, 2] = 1.0
    assert case.out[1, 2] == 0x3F80
    memory[128] = 0x3C
    assert t.levels[0].k_cache.float()[0, 0] == (1.0 if hasattr(torch, "float8_e5m2") else 0x3C)
