# SPDX-License-Identifier: Apache-2.0
"""A plan: the options of paged or tree attention, given once, and who computes which keys of a step; then a call per layer."""
import torch

from . import paged
from .caches import pool_of
from .errors import InvalidArgument, require
from .functions import _base, _operator, _ops, _outputs, _watched, dcp, starts
from .paged_shape import TREE, V2
from .tensors import FP8, check, no_tensor, only_tensors, unit_rows, vector


class Plan:
    """plan = assay_torch.plan(page_table, seq_lens, ...), for all layers of a step; then plan.run(q, kv_cache) is a layer, one launch.

    Options are those of paged_attention, and tree=True: of tree_attention. dtype and kv_dtype are torch's, of q and of the cache (None:
    as q); sinks is True where run() is given them. memory: uint8 [plan_bytes(...)] to plan into, made if None, 16-byte aligned; it
    holds the scratch of calls too, so that calls follow each other. The plan is made on the device, by lengths (and pages, of
    trees) that the host does not look at, and keeps the tensors that it is given, by their addresses. torch.compile takes it, made inside or outside.
    (torch 2.5 compiles a plan of a batch that is a symbol only with torch._dynamo.config.capture_dynamic_output_shape_ops.)
    """

    def __init__(
        self, page_table, seq_lens, *, num_qo_heads, num_kv_heads, head_dim, page_size, dtype, kv_dtype=None, tree=False, qo_indptr=None,
        max_q_len=1, sm_scale=None, window_left=-1, logits_soft_cap=0.0, alibi_slopes=None, sinks=False, kv_layout="NHD", lse_base="e",
        num_splits=0, enable_pdl=False, global_lens=None, dcp_world_size=0, dcp_rank=0, dcp_interleave=1, cu_seqlens_q=None, page_indptr=None,
        max_pages=None, memory=None,
    ):  # fmt: skip
        kv_dtype, qo_indptr = kv_dtype or dtype, starts(qo_indptr, cu_seqlens_q)
        world_size, rank, interleave = dcp(dcp_world_size, dcp_rank, dcp_interleave)
        require(isinstance(sinks, bool), lambda: f"sinks is a {type(sinks).__name__}, expected True where run() is given sinks")
        require(kv_layout in ("NHD", "HND"), lambda: f"kv_layout is {kv_layout!r}, expected NHD or HND")
        self.memory, self.alibi_slopes, self.max_pages = memory, alibi_slopes, max_pages
        #: What paged.planned keeps of the plan's tensors from its first call on.
        self.bound = None
        self.kernel, self._sinks, self._layout, self._fp8 = TREE if tree else V2, sinks, kv_layout, kv_dtype if kv_dtype in FP8 else None
        self._q, self._kv, self._max_q_len = (dtype, num_qo_heads, head_dim), (kv_dtype, page_size, num_kv_heads, head_dim), max_q_len
        scale = (head_dim or 1) ** -0.5 if sm_scale is None else sm_scale
        self.numbers = (
            _base(lse_base), scale, logits_soft_cap, window_left, num_splits, enable_pdl, False, max_q_len, world_size, rank, interleave, max_pages,
        )  # fmt: skip
        self.shape = (
            tree, dtype, kv_dtype, num_qo_heads, num_kv_heads, head_dim, page_size, max_q_len, qo_indptr is not None, alibi_slopes is not None,
            sinks, logits_soft_cap, window_left, num_splits, world_size, interleave,
        )  # fmt: skip
        only_tensors(seq_lens=seq_lens, memory=memory, alibi_slopes=alibi_slopes)
        vector("alibi_slopes", alibi_slopes, num_qo_heads, ("seq_lens", seq_lens))
        self._plan(page_table, seq_lens, qo_indptr, global_lens, page_indptr)

    def update(self, page_table=None, seq_lens=None, *, qo_indptr=None, global_lens=None, page_indptr=None, lengths_only=False):
        """Plans again into the same memory, which a graph may capture: for what the tensors hold now, or for others in their places.

        lengths_only: of the same requests only lengths have grown and pages come behind. A tree then stays, and no page table is read."""
        if page_table is seq_lens is qo_indptr is global_lens is page_indptr is None:
            return self._plan(self.page_table, self.seq_lens, self.qo_indptr, self.global_lens, self.page_indptr, lengths_only)
        for name, tensor in (("qo_indptr", qo_indptr), ("global_lens", global_lens), ("page_indptr", page_indptr)):
            if tensor is not None and getattr(self, name) is None:
                raise InvalidArgument(f"{name} is given, and was not at the plan")
        self._plan(
            self.page_table if page_table is None else page_table, self.seq_lens if seq_lens is None else seq_lens,
            self.qo_indptr if qo_indptr is None else qo_indptr, self.global_lens if global_lens is None else global_lens,
            self.page_indptr if page_indptr is None else page_indptr, lengths_only,
        )  # fmt: skip
        self.bound = None

    def _plan(self, page_table, seq_lens, qo_indptr, global_lens, page_indptr, lengths_only=False):
        only_tensors(page_table=page_table, seq_lens=seq_lens, qo_indptr=qo_indptr, global_lens=global_lens, page_indptr=page_indptr)
        if qo_indptr is not None or global_lens is not None:
            for name, tensor, more in (("qo_indptr", qo_indptr, 1), ("global_lens", global_lens, 0)):
                if tensor is not None:
                    check(name, tensor, torch.int32, (seq_lens.shape[0] + more,))
                    unit_rows(name, tensor)
        if self.memory is None:
            self.memory = _operator("new_plan", seq_lens)(page_table, seq_lens, page_indptr, self.max_pages, *self.shape)
        else:
            _operator("plan_into", seq_lens)(page_table, seq_lens, page_indptr, self.max_pages, self.memory, *self.shape, lengths_only=lengths_only)
        self.page_table, self.seq_lens, self.page_indptr = page_table, seq_lens, page_indptr
        self.qo_indptr, self.global_lens = qo_indptr, global_lens

    def run(self, q, kv_cache, *, out=None, lse=None, return_lse=False, k_scale=None, v_scale=None, sinks=None):
        """A layer's attention: out, or (out, lse) where lse is given or asked for. Its arguments are those of paged_attention; a uint8
        cache holds what the plan's kv_dtype says."""
        k, v = pool_of(kv_cache, self._layout, self._fp8, self._q[2])
        if out is None or return_lse:
            if not isinstance(q, torch.Tensor):
                raise no_tensor(q=q)
            out, lse = _outputs(q, out, lse, return_lse)
        if _watched(q):
            self.look(q, k, v, sinks)
            name, version = ("tree_attention", ()) if self.kernel == TREE else ("paged_attention", (2,))
            options = (self.qo_indptr, k_scale, v_scale, self.alibi_slopes, sinks, self.global_lens, self.page_indptr)
            operator = getattr(_ops, name).default
            operator(q, k, v, self.page_table, self.seq_lens, out, lse, self.memory, *options, *self.numbers, *version)
        else:
            paged.planned(self, q, k, v, out, lse, k_scale, v_scale, sinks)
        return out if lse is None else (out, lse)

    @property
    def tensors(self):
        """What the layers share, by name."""
        return {name: getattr(self, name) for name in paged.SHARED}

    def look(self, q, k, v, sinks):
        """Whether the plan is for such a layer. A call in a shape that was seen does not look again."""
        only_tensors(q=q, k=k, v=v)
        if q.device != self.seq_lens.device:
            raise InvalidArgument(f"q is on {q.device}, expected {self.seq_lens.device} as the plan")
        (dtype, *heads), (kv_dtype, *pages) = self._q, self._kv
        batch, tokens = self.seq_lens.shape[0], () if self._max_q_len == 1 and q.dim() == 3 else (self._max_q_len,)
        check("q", q, dtype, (None, *heads) if self.qo_indptr is not None else (batch, *tokens, *heads))
        check("k", k, kv_dtype, (None, *pages))
        require((sinks is not None) == self._sinks, lambda: f"sinks is {'not ' * self._sinks}given, expected as at the plan: sinks={self._sinks}")


plan = Plan
