# SPDX-License-Identifier: Apache-2.0
"""A key that the mask hides, with a NaN in it, and SDPA of PyTorch: one query, two keys. CPU, fp16.

Exit code 1 where a NaN reaches the output, 0 where none does."""
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


def output(backend, where):
    """One row of O; `where`: the tensor whose hidden first key holds a NaN."""
    q, k, v = (torch.ones(1, 1, n, 64, dtype=torch.float16) for n in (1, 2, 2))
    {"k": k, "v": v}[where][0, 0, 0] = float("nan")
    mask = torch.tensor([[False, True]])
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)[0, 0, 0]


def main():
    print(f"torch {torch.__version__}: the second of two keys is visible, its value is 1")
    wrong = 0
    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
        for where in "kv":
            o = output(backend, where)
            wrong += bool(o.isnan().any())
            print(f"{backend.name}, NaN in the hidden {where}: O[0] is {o[0].item()}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
