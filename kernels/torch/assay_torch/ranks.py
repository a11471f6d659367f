# SPDX-License-Identifier: Apache-2.0
"""Decode over a KV cache that is cut along the sequence: the states of several GPUs as one.

    windows = assay_torch.Windows.symmetric(group, num_heads=32, head_dim=128, dtype=torch.bfloat16, max_rows=64)
    o, lse = assay_torch.paged_attention(q, kv_cache, page_table, local_lens, return_lse=True, global_lens=lens,
                                         dcp_rank=windows.rank, dcp_world_size=windows.num_ranks)
    mine, _ = assay_torch.exchange_states(o, lse, windows)      # this rank's share of the heads, over all keys
"""
import torch

from . import exchange, operators
from .errors import InvalidArgument
from .functions import _base, _operator
from .tensors import only_tensors


class Windows:
    """Memory of each rank that its peers can write: scratch of exchange_states.

    Calls on the same windows have the same dtype, heads, num_heads and head_dim, up to max_rows rows, and come in the same order
    on all ranks, one after the other. `missing()` says which peers a call has waited for in vain; afterwards all ranks must
    `clear()` before the next call.
    """

    def __init__(self, window, addresses, rank, *, num_heads, head_dim, dtype, max_rows, heads="scatter"):
        """window: this rank's, uint8, 256-byte aligned, bytes() long or longer, zeros before any rank's first call. addresses: of
        every rank's window as this rank addresses it, its own among them."""
        self.window, self.addresses, self.rank = window, list(addresses), rank
        self.num_heads, self.head_dim, self.dtype, self.max_rows = num_heads, head_dim, dtype, max_rows
        self.heads = _heads(heads)
        if not 0 <= rank < len(self.addresses) or self.addresses[rank] != window.data_ptr():
            raise InvalidArgument(f"addresses[{rank}] is not that of window, expected this rank's own at its place")
        pinned = window.device.type == "cuda"
        self.status = torch.zeros(1, dtype=torch.int32, pin_memory=pinned)

    @property
    def num_ranks(self):
        return len(self.addresses)

    @property
    def own_heads(self):
        """(first, end) of the heads that this rank gets."""
        return exchange.heads_of(self.num_heads, self.num_ranks, self.rank, self.heads)

    @staticmethod
    def bytes(device, num_ranks, *, num_heads, head_dim, dtype, max_rows, heads="scatter"):
        """How long a window must be."""
        return exchange.window_bytes(torch.device(device), dtype, num_ranks, num_heads, head_dim, max_rows, _heads(heads))

    @classmethod
    def symmetric(cls, group, *, device=None, **sizes):
        """Windows of torch's symmetric memory for the ranks of a process group, each with a GPU of its own (device: the current one
        if None). Waits for all ranks. sizes: those of the constructor, alike on all ranks."""
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as symmetric_memory

        device = torch.device("cuda", torch.cuda.current_device()) if device is None else torch.device(device)
        window = symmetric_memory.empty(
            cls.bytes(device, dist.get_world_size(group), **sizes), dtype=torch.uint8, device=device
        )
        handle = symmetric_memory.rendezvous(window, group)
        windows = cls(window, handle.buffer_ptrs, handle.rank, **sizes)
        windows._handle = handle  # the peers' mappings live as long as it
        windows.clear(lambda: dist.barrier(group))
        return windows

    def clear(self, barrier=None):
        """Fills this rank's window with zeros and forgets who was missing. barrier() waits for all ranks: nobody may write a window
        before it is cleared, nor clear it before everybody has stopped."""
        if barrier is not None:
            barrier()
        self.window.zero_()
        self.status.zero_()
        if self.window.device.type == "cuda":
            torch.cuda.synchronize(self.window.device)
        if barrier is not None:
            barrier()

    def missing(self):
        """Ranks that did not come within a call's timeout, of the calls that have finished."""
        bits = int(self.status[0])
        return [rank for rank in range(self.num_ranks) if bits >> rank & 1]


def _heads(heads):
    if heads not in exchange.HEADS:
        raise InvalidArgument(f"heads is {heads!r}, expected scatter or all")
    return exchange.HEADS[heads]


def exchange_states(o_in, lse_in, windows, *, out=None, lse=None, lse_base="e", enable_pdl=False, timeout=1.0):
    """What the ranks hold of the same rows, merged: (o, lse) of the heads that this rank gets, windows.own_heads.

    o_in [rows, num_heads, head_dim] fp16, bf16 or fp32 and lse_in [rows, num_heads] over this rank's keys, -inf where it has none.
    The bits are those of merge_states over the ranks in their order, the same on every rank. Never in place. One launch a rank; a
    call waits `timeout` seconds at most for its peers on the GPU: Windows.missing says who did not come, and the rows are NaN.
    enable_pdl: as in paged_attention; the kernel in front may be the one that writes o_in and lse_in.
    """
    only_tensors(o_in=o_in, out=out)
    if (o_in.dtype, *o_in.shape[1:]) != (windows.dtype, windows.num_heads, windows.head_dim):
        raise InvalidArgument(
            f"o_in is {o_in.dtype} of {list(o_in.shape)}, expected {windows.dtype} of "
            f"[rows, {windows.num_heads}, {windows.head_dim}], as the windows are for"
        )
    first, end = windows.own_heads
    if out is None:
        out = torch.empty((o_in.shape[0], end - first, o_in.shape[2]), dtype=o_in.dtype, device=o_in.device)
    if lse is None:
        lse = torch.empty(out.shape[:-1], dtype=torch.float32, device=o_in.device)
    _operator("exchange_states", o_in)(
        o_in, lse_in, windows.window, windows.addresses, windows.status, out, lse, windows.heads, windows.rank, windows.max_rows,
        _base(lse_base), enable_pdl, round(timeout * 1e9),
    )  # fmt: skip
    return out, lse
