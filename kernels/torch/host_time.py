# SPDX-License-Identifier: Apache-2.0
"""Host time of calls of paged attention from Python: host_time.py, with assay_torch on PYTHONPATH.

On a GPU with the launch; without one the C call is left out, as the executor would compute in it. A number is the best of 40 means of
500 calls, the queue emptied between them."""
import importlib.util
import time

import torch

import assay_torch
from assay_torch import operators, prepared

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


def best_ns(call, rounds=40, calls=500):
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter_ns() - begin) / calls)
        if CUDA:
            torch.cuda.synchronize()
    return best


def of_flashinfer(q, cache, out):
    """Calls of FlashInfer's decode wrapper, planned, of the same shape; none where it is not installed."""
    if not CUDA or importlib.util.find_spec("flashinfer") is None:
        return {}
    from flashinfer import BatchDecodeWithPagedKVCacheWrapper

    calls = {}
    for cores in ("tensor", "CUDA"):
        wrapper = BatchDecodeWithPagedKVCacheWrapper(torch.zeros(64 << 20, dtype=torch.uint8, device=DEVICE), "NHD", use_tensor_cores=cores == "tensor")
        starts, index, last = (torch.tensor(x, dtype=torch.int32, device=DEVICE) for x in ([0, 1], [0], [1]))
        wrapper.plan(starts, index, last, 32, 8, 128, 16, q_data_type=q.dtype, kv_data_type=q.dtype)
        calls[f"FlashInfer's run, {cores} cores, out given"] = lambda run=wrapper.run: run(q, cache, out=out)
        calls[f"FlashInfer's run, {cores} cores, out made"] = lambda run=wrapper.run: run(q, cache)
    return calls


def main():
    torch.set_num_threads(1)
    k = torch.zeros(1, 16, 8, 128, dtype=torch.float16, device=DEVICE)
    q, table, lens = k.new_zeros(1, 32, 128), torch.zeros(1, 1, dtype=torch.int32, device=DEVICE), torch.ones(1, dtype=torch.int32, device=DEVICE)
    plan = assay_torch.plan(table, lens, num_qo_heads=32, num_kv_heads=8, head_dim=128, page_size=16, dtype=q.dtype)
    out, cache = torch.zeros_like(q), (k, k.clone())
    numbers = (0, 128**-0.5, 0.0, 0, 0, False, False, 1, 0, 0, 0, None, 2)
    arguments = (q, *cache, table, lens, out, None, plan.memory, *(None,) * 7, *numbers)
    operator = torch.ops.assay_torch.paged_attention.default
    calls = {
        "paged_attention, version 1, out given": lambda: assay_torch.paged_attention(q, cache, table, lens, version=1, out=out),
        "paged_attention, version 2, out given": lambda: assay_torch.paged_attention(q, cache, table, lens, out=out),
        "plan.run, out given": lambda: plan.run(q, cache, out=out),
        "plan.run, out made": lambda: plan.run(q, cache),
        "plan.update": plan.update,
        "torch.ops.assay_torch.paged_attention.default": lambda: operator(*arguments),
        "the function below it": lambda: operators.paged_attention(*arguments),
        "torch.add(out=)": lambda: torch.add(q, q, out=out),
        **of_flashinfer(q, cache, out),
    }
    if not CUDA:
        prepared.Prepared.run = lambda self: None
    for name, call in calls.items():
        try:
            best_ns(call, 2)
            print(f"{best_ns(call):8.0f} ns  {name}")
        except Exception as error:
            if not name.startswith("FlashInfer"):  # which may have to be compiled first
                raise
            print(f"       - ns  {name}: {str(error).splitlines()[0][:100]}")


if __name__ == "__main__":
    main()
