# SPDX-License-Identifier: Apache-2.0
"""assay's kernels as torch operators: CUDA tensors on the GPU, CPU tensors on the executor that runs the same kernels.

    out = assay_torch.paged_attention(q, (k_cache, v_cache), page_table, seq_lens)

Needs torch 2.4 or later and none of its ABI: the operators are Python, and the kernels are behind the C ABI of
libassay_cuda.so and libassay_simt.so."""
from .errors import (
    AssayError,
    CapacityExceeded,
    Hazard,
    InvalidArgument,
    LaunchFailed,
    Unsupported,
    WorkspaceTooSmall,
)
from .functions import cascade_attention, merge_state, merge_states, paged_attention, tree_attention
from .plans import Plan, plan
from .ranks import Windows, exchange_states
from .sizes import choose, plan_bytes

__all__ = [
    "AssayError",
    "CapacityExceeded",
    "Hazard",
    "InvalidArgument",
    "LaunchFailed",
    "Plan",
    "Unsupported",
    "Windows",
    "WorkspaceTooSmall",
    "cascade_attention",
    "choose",
    "exchange_states",
    "merge_state",
    "merge_states",
    "paged_attention",
    "plan",
    "plan_bytes",
    "tree_attention",
]
