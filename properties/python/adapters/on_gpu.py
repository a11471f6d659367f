# SPDX-License-Identifier: Apache-2.0
"""Between a case, which lies in host memory, and a kernel of torch tensors on a GPU.

Torch is imported when it is needed: what an adapter takes can be asked where there is none.
"""
import functools
import math
import os
import sys
import types

import assay
import numpy as np

LOG2E = math.log2(math.e)
#: Tensor cores of Hopper: products that one 16-bit MMA of k16 sums, and the bits it keeps below the largest
#: (kernels/arch/tests measures both).
TENSOR_CORES = dict(mma_block=16, mma_fraction_bits=25)
_WORKSPACE_BYTES = 128 << 20


def torch_dtype(name):
    """Torch's type of fp16, bf16, fp32, e4m3, e5m2 or int32."""
    import torch

    return {
        "fp16": torch.float16,
        "bf16": torch.bfloat16,
        "fp32": torch.float32,
        "e4m3": torch.float8_e4m3fn,
        "e5m2": torch.float8_e5m2,
        "int32": torch.int32,
    }[name]


def put(array, dtype):
    """A tensor of a case, or a part of it, as a contiguous copy on the GPU, of torch's own type."""
    import torch

    host = np.array(array, order="C")  # a copy: torch warns of arrays that cannot be written
    if dtype == "bf16":
        host = host.view(np.int16)
    return torch.from_numpy(host).cuda().view(torch_dtype(dtype))


def take(tensor, out):
    """Writes a tensor of the GPU into an output of a case, bit for bit; both hold as many elements.

    ValueError where the tensor has another type of memory than the output.
    """
    import torch

    host = tensor.detach().contiguous().cpu()
    host = (host.view(torch.int16) if host.dtype == torch.bfloat16 else host).numpy()
    if host.dtype.itemsize != out.dtype.itemsize:
        raise ValueError(f"adapter: the kernel returned {tensor.dtype}, the output is {out.dtype}")
    out[...] = host.view(out.dtype).reshape(out.shape)


def take_lse(case, lse, base):
    """Writes fp32 LSE of `base` ("e" or 2), if the case wants any; another base costs one rounding."""
    if case.lse is None:
        return
    values = lse.detach().cpu().double().numpy().reshape(case.lse.shape)
    if base != case.lse_base:
        values = values * LOG2E if case.lse_base == 2 else values / LOG2E
    case.lse[...] = values


def gather(k_cache, v_cache, page_table, seq_lens, page_size, dtype):
    """The live pages of a cache alone, for its addresses are not all memory.

    Returns k, v [pages, page_size, num_kv_heads, head_dim] on the GPU and rows, the page ids of each row in
    them (int32 arrays). The last page of both is NaN and belongs to no row.
    """
    live = [page_table[r, : -(-int(n) // page_size)] for r, n in enumerate(seq_lens)]
    ids, places = np.unique(np.concatenate(live or [np.zeros(0, np.int32)]), return_inverse=True)
    ends = np.cumsum([len(pages) for pages in live], dtype=np.int64)
    rows = [part.astype(np.int32) for part in np.split(places.reshape(-1), ends[:-1])] if live else []

    def copied(cache):
        pages = np.empty((len(ids) + 1, *cache.shape[1:]), cache.dtype)
        if len(ids):
            pages[:-1] = cache[ids]
        pages[-1:].view(np.uint8)[...] = 0xFF
        return put(pages, dtype)

    return types.SimpleNamespace(k=copied(k_cache), v=copied(v_cache), rows=rows)


def csr(rows, seq_lens, page_size):
    """indptr [rows + 1], page ids [all] and last_page_len [rows] of rows of pages, int32 on the host."""
    indptr = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int32)
    ids = np.concatenate([*rows, np.zeros(0, np.int32)]).astype(np.int32)
    last = np.array([(int(n) - 1) % page_size + 1 if n else 0 for n in seq_lens], np.int32)
    return indptr, ids, last


@functools.cache
def workspace():
    """The one scratch buffer of this process, zero at first: uint8 on the GPU."""
    import torch

    return torch.zeros(_WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")


def one_key(*, dtype, kv_dtype, head_dim, window=False, softcap=False, page_size=16, group=1):
    """A paged call of one request with one key, all zeros: what compiles a kernel for its shape."""
    from assay.elements import STORED

    def zeros(name, *shape):
        return np.zeros(shape, STORED[name])

    return types.SimpleNamespace(
        family="paged", dtype=dtype, kv_dtype=kv_dtype, lse_base=2, batch=1, q_len=1, num_qo_heads=group,
        num_kv_heads=1, head_dim=head_dim, page_size=page_size, max_pages=1, sm_scale=0.125, enable_pdl=False,
        logits_soft_cap=30.0 if softcap else 0.0, window_left=7 if window else -1, num_splits=0, even_lengths=False,
        q=zeros(dtype, 1, 1, group, head_dim), out=zeros(dtype, 1, 1, group, head_dim), lse=None,
        k_cache=zeros(kv_dtype, 1, page_size, 1, head_dim), v_cache=zeros(kv_dtype, 1, page_size, 1, head_dim),
        page_table=np.zeros((1, 1), np.int32), seq_lens=np.ones(1, np.int32),
        k_scale=None, v_scale=None, alibi_slopes=None, sinks=None,
    )  # fmt: skip


def refuse(condition, reason):
    """Raises assay.Unsupported with the reason where the condition holds."""
    if condition:
        raise assay.Unsupported(reason)


def plain_decode(case, *, q_len=False, window=False, softcap=False, sinks=False, fp8=False, lse=True):
    """Refuses what of a paged call a kernel does not have; the flags name what it has."""
    refuse(case.q_len > 1 and not q_len, "one query token per request only")
    refuse(case.window_left >= 0 and not window, "no sliding window")
    refuse(case.logits_soft_cap and not softcap, "no softcap")
    refuse(case.alibi_slopes is not None, "no ALiBi slopes of the caller's own")
    refuse(case.sinks is not None and not sinks, "no sinks")
    refuse(case.kv_dtype != case.dtype and not fp8, "no fp8 cache")
    refuse(case.lse is not None and not lse, "returns no LSE")


def built(builds, **wanted):
    """Refuses a call whose compiled module is not among `builds`, so that no case waits minutes for nvcc.

    builds: a list of dictionaries of the same names. With ASSAY_ADAPTERS_BUILD=all nothing is refused.
    """
    if os.environ.get("ASSAY_ADAPTERS_BUILD") != "all" and wanted not in builds:
        words = ", ".join(f"{name} {value}" for name, value in wanted.items())
        raise assay.Unsupported(f"not compiled for these checks: {words}")


def on_gpu(function):
    """Ends the process after an error of CUDA: nothing runs in its context any more, the next case gets another."""

    @functools.wraps(function)
    def guarded(case):
        import torch

        try:
            function(case)
            torch.cuda.synchronize()
        except RuntimeError as error:
            try:
                torch.cuda.synchronize()
            except RuntimeError:
                print(f"adapter: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                os._exit(70)
            raise

    return guarded
