# SPDX-License-Identifier: Apache-2.0
"""torch.ops.assay_torch: schemas, what runs for tensors of a device, and for tensors without memory.

Every operator writes into tensors that it is given and returns nothing, but for new_plan. That is what functionalisation,
CUDA graphs and engines with buffers of their own want; the functions of this package make the outputs."""
import functools
import re

import torch

from . import cascade, exchange, merge, paged, paged_shape, planning
from .paged_shape import NUMBERS, TREE, V2, VERSIONS
from .tensors import refuse_gradient, same_device

_CALL = (
    "(Tensor q, Tensor k, Tensor v, Tensor page_table, Tensor seq_lens, Tensor(a!) out, Tensor(b!)? lse, Tensor(c!)? plan, "
    "Tensor? qo_indptr, Tensor? k_scale, Tensor? v_scale, Tensor? alibi_slopes, Tensor? sinks, Tensor? global_lens, Tensor? page_indptr, "
    "int lse_base, float sm_scale, float logits_soft_cap, int window_left, int num_splits, bool enable_pdl, bool even_lengths, "
    "int max_q_len, int dcp_world_size, int dcp_rank, int dcp_interleave, int? max_pages{}) -> ()"
)
_PLAN = (
    "(Tensor page_table, Tensor seq_lens, Tensor? page_indptr, int? max_pages, {}bool tree, ScalarType dtype, ScalarType kv_dtype, "
    "int num_qo_heads, int num_kv_heads, int head_dim, int page_size, int max_q_len, bool ragged, bool alibi_slopes, bool sinks, "
    "float logits_soft_cap, int window_left, int num_splits, int dcp_world_size, int dcp_interleave{}) -> {}"
)
if not hasattr(torch.library, "register_fake"):
    raise ImportError(f"assay_torch needs torch 2.4 or later, this is {torch.__version__}")
_library = torch.library.Library("assay_torch", "DEF")


def _operator(schema, fake=None, elsewhere=()):
    """Defines an operator by its schema and the function below it. `fake` stands for it on tensors without memory: one that
    returns nothing needs none. `elsewhere`: arguments that may be on the host beside tensors of a device."""

    def define(function):
        name, arguments = function.__name__, re.findall(r"(\w+)[,)]", schema.split(" -> ")[0])

        def returns_nothing(*given, **options):
            lists = {n: t if isinstance(t, (list, tuple)) else [t] for n, t in zip(arguments, given) if n not in elsewhere}
            tensors = {n if len(parts) == 1 else f"{n}[{i}]": t for n, parts in lists.items() for i, t in enumerate(parts) if isinstance(t, torch.Tensor)}
            same_device(next(iter(tensors.items())), **tensors)
            refuse_gradient(name, *tensors.values())

        _library.define(name + schema, tags=(torch.Tag.needs_fixed_stride_order,))
        for key in ("CPU", "CUDA"):
            _library.impl(name, function, key)
        torch.library.register_fake(f"assay_torch::{name}", fake or returns_nothing, lib=_library)
        return function

    return define


def _plan_without_memory(page_table, seq_lens, page_indptr, max_pages, *shape):
    kernel, described = _described(*shape, *_lists(page_table, page_indptr))
    bounds = paged_shape.bounds_of(page_table, seq_lens, page_indptr, max_pages)
    if all(isinstance(n, int) for n in bounds):
        size = _bytes.__wrapped__(kernel, page_table.device, bounds, *described)  # sizes may be symbols, which have no hash
    else:
        size = torch.library.get_ctx().new_dynamic_size()
    return page_table.new_empty(size, dtype=torch.uint8)


#: Where the options of a call end and its numbers, behind the plan.
_END, _LAST = len(paged.OPTIONS), len(paged.OPTIONS) + len(NUMBERS)


@_operator(_CALL.format(", int version"))
def paged_attention(q, k, v, page_table, seq_lens, out, lse, plan, *rest):
    paged.attention(VERSIONS[rest[_LAST]], q, k, v, page_table, seq_lens, out, lse, plan, rest[:_END], rest[_END:_LAST])


@_operator(_CALL.format(""))
def tree_attention(q, k, v, page_table, seq_lens, out, lse, plan, *rest):
    paged.attention(TREE, q, k, v, page_table, seq_lens, out, lse, plan, rest[:_END], rest[_END:_LAST])


def _described(
    tree, dtype, kv_dtype, num_qo_heads, num_kv_heads, head_dim, page_size, q_len, ragged, alibi_slopes, sinks,
    logits_soft_cap, window_left, num_splits, dcp_world_size, dcp_interleave, page_indptr, list_per_head,
):  # fmt: skip
    """(kernel, (dtype, kv_dtype, shape, given)) as planning.plan_into takes them."""
    shape = (
        ("num_qo_heads", num_qo_heads), ("num_kv_heads", num_kv_heads), ("head_dim", head_dim), ("page_size", page_size),
        ("q_len", q_len), ("logits_soft_cap", logits_soft_cap), ("window_left", window_left), ("num_splits", num_splits),
        ("dcp_world_size", dcp_world_size), ("dcp_interleave", dcp_interleave),
    )  # fmt: skip
    options = (("qo_indptr", ragged), ("alibi_slopes", alibi_slopes), ("sinks", sinks), ("global_lens", dcp_world_size))
    given = tuple(name for name, there in options if there)
    if page_indptr:
        given += ("page_indptr", "page_table_stride_head") if list_per_head and num_kv_heads > 1 else ("page_indptr",)
    return TREE if tree else V2, (dtype, kv_dtype, shape, given)


def _lists(page_table, page_indptr):
    """The last two arguments of _described."""
    return (True, paged_shape.list_per_head(page_table)) if page_indptr is not None else (False, False)


@functools.lru_cache(4096)
def _bytes(kernel, device, bounds, dtype, kv_dtype, shape, given):
    """Bytes of a plan for page tables of a shape; the library is asked once."""
    return paged_shape.plan_bytes(kernel, *paged_shape.shape_params(device, dtype, kv_dtype, *bounds, dict(shape), given), device)


@_operator(_PLAN.format("Tensor(a!) out, ", ", *, bool lengths_only=False", "()"))
def plan_into(page_table, seq_lens, page_indptr, max_pages, out, *shape, lengths_only=False):
    kernel, described = _described(*shape, *_lists(page_table, page_indptr))
    planner = "_plan_lengths" if lengths_only and kernel == TREE else "_plan"
    planning.plan_into(kernel + planner, page_table, seq_lens, page_indptr, max_pages, out, *described)


@_operator(_PLAN.format("", "", "Tensor"), _plan_without_memory)
def new_plan(page_table, seq_lens, page_indptr, max_pages, *shape):
    kernel, described = _described(*shape, *_lists(page_table, page_indptr))
    size = _bytes(kernel, page_table.device, paged_shape.bounds_of(page_table, seq_lens, page_indptr, max_pages), *described)
    # Not empty: the planner leaves room unwritten, and the same call is to give the same bytes.
    out = page_table.new_zeros(size, dtype=torch.uint8)
    planning.plan_into(kernel + "_plan", page_table, seq_lens, page_indptr, max_pages, out, *described)
    return out


@_operator(
    "(Tensor q, Tensor[] k, Tensor[] v, Tensor[] page_table, Tensor[] seq_lens, Tensor[] segment_indptr, Tensor(a!) out, "
    "Tensor(b!)? lse, Tensor?[] page_indptr, int[] max_pages, int lse_base, float sm_scale, int num_splits) -> ()"
)
def cascade_attention(q, k, v, page_table, seq_lens, segment_indptr, out, lse, page_indptr, max_pages, lse_base, sm_scale, num_splits):
    lists = tuple(zip(page_indptr, max_pages)) if page_indptr else ()
    cascade.cascade(q, list(zip(k, v, page_table, seq_lens, segment_indptr)), out, lse, lists, sm_scale, num_splits, lse_base)


@_operator(
    "(Tensor o_a, Tensor lse_a, Tensor o_b, Tensor lse_b, Tensor(a!) out, Tensor(b!)? lse, int lse_base) -> ()"
)
def merge_state(o_a, lse_a, o_b, lse_b, out, lse, lse_base):
    merge.merge_pair(o_a, lse_a, o_b, lse_b, out, lse, lse_base)


@_operator(
    "(Tensor o_in, Tensor lse_in, Tensor? indptr, Tensor(a!) out, Tensor(b!)? lse, int num_states, int lse_base) -> ()"
)
def merge_states(o_in, lse_in, indptr, out, lse, num_states, lse_base):
    merge.merge_many(o_in, lse_in, indptr, out, lse, num_states, lse_base)


@_operator(
    "(Tensor o_in, Tensor lse_in, Tensor(c!) window, int[] windows, Tensor(d!) status, Tensor(a!) out, Tensor(b!)? lse, int heads, "
    "int rank, int max_rows, int lse_base, bool enable_pdl, int timeout_ns) -> ()",
    elsewhere=("status",),
)
def exchange_states(
    o_in, lse_in, window, windows, status, out, lse, heads, rank, max_rows, lse_base, enable_pdl, timeout_ns
):  # fmt: skip
    exchange.exchange(o_in, lse_in, window, windows, status, out, lse, heads, rank, max_rows, lse_base, enable_pdl, timeout_ns)
