# SPDX-License-Identifier: Apache-2.0
"""paged_attention and tree_attention over the C ABI: what runs when torch has chosen an operator for a device."""
import torch

from ._abi import PagedParams
from .errors import WorkspaceTooSmall, require
from .library import library, target_of
from .paged_shape import GIVEN, NUMBERS, V1, fill_shape, no_address, option_path, plan_bytes, scratch_at, set_option, tables_of
from .prepared import Pool, Prepared, word, workspace
from .tensors import check, facts, no_tensor, refuse_gradient, same_device, scale_stride, strides, unit_rows, vector

_pool = Pool()
_Q, _O, _LSE, _PLAN, _WORKSPACE = (word(PagedParams, name) for name in ("q", "out", "lse", "plan", "workspace"))
_K, _V, _TABLE, _LENS = (word(PagedParams, "kv", name) for name in ("k", "v", "page_table", "seq_lens"))
OPTIONS = ("qo_indptr", "k_scale", "v_scale", "alibi_slopes", "sinks", "global_lens", "page_indptr")
_OPTIONS = tuple(word(PagedParams, *option_path(name)) for name in OPTIONS)
_NO_OPTIONS = (None,) * len(OPTIONS)
#: Tensors of a plan that its layers share, and where they lie.
SHARED = ("memory", "page_table", "seq_lens", "qo_indptr", "alibi_slopes", "global_lens", "page_indptr")
_SHARED = (_PLAN, _TABLE, _LENS, *(word(PagedParams, *option_path(name)) for name in SHARED[3:]))
_LAYER = tuple(word(PagedParams, name) for name in ("k_scale", "v_scale", "sinks"))


def attention(kernel, q, k, v, page_table, seq_lens, out, lse, plan, options, numbers):
    """Runs `kernel`. options: OPTIONS; numbers: NUMBERS."""
    try:
        given = None if options == _NO_OPTIONS else tuple(map(facts, options))
        # The usual call without a call: every tenth of a microsecond counts here.
        if given is not None or q.requires_grad or k.requires_grad or v.requires_grad:
            refuse_gradient(kernel, q, k, v, *options)
        # fmt: off
        key = (
            kernel, numbers, given,
            q.shape, q.stride(), q.dtype, q.get_device(), k.shape, k.stride(), k.dtype, k.get_device(),
            v.shape, v.stride(), v.dtype, v.get_device(), out.shape, out.stride(), out.dtype, out.get_device(),
            page_table.shape, page_table.stride(), page_table.dtype, page_table.get_device(),
            seq_lens.shape, seq_lens.stride(), seq_lens.dtype, seq_lens.get_device(),
            None if lse is None else facts(lse),
            None if plan is None else (plan.shape, plan.stride(), plan.dtype, plan.get_device()),
        )
        # fmt: on
    except AttributeError:
        tensors = dict(q=q, k=k, v=v, page_table=page_table, seq_lens=seq_lens, out=out, lse=lse, plan=plan)
        raise no_tensor(**tensors, **dict(zip(OPTIONS, options))) from None
    call = _pool.take(key) or _prepare(kernel, q, k, v, page_table, seq_lens, out, lse, plan, options, numbers)
    words = call.words
    words[_Q], words[_O] = q.data_ptr(), out.data_ptr()
    words[_K], words[_V] = k.data_ptr() or no_address(("q", q), k=k), v.data_ptr() or no_address(("q", q), v=v)
    if lse is not None:
        words[_LSE] = lse.data_ptr() or no_address(("q", q), lse=lse)
    words[_TABLE], words[_LENS] = page_table.data_ptr() or no_address(("q", q), page_table=page_table), seq_lens.data_ptr()
    if given is not None:
        for at, name, tensor in zip(_OPTIONS, OPTIONS, options):
            if tensor is not None:
                words[at] = tensor.data_ptr() or no_address(("q", q), **{name: tensor})
    if plan is not None:
        at = plan.data_ptr() or no_address(("q", q), plan=plan)
        words[_PLAN], words[_WORKSPACE] = at, at + call.keep
    elif call.workspace_bytes:
        scratch = workspace(call.workspace_bytes, q.device)
        words[_WORKSPACE] = scratch.data_ptr()
    call.run()
    _pool.give(key, call)


def planned(plan, q, k, v, out, lse, k_scale, v_scale, sinks):
    """attention() of a plans.Plan: what its layers share is looked at once, and calls of plans of one kind are prepared together."""
    try:
        layer = None if k_scale is None and v_scale is None and sinks is None else (facts(k_scale), facts(v_scale), facts(sinks))
        if layer is not None or plan.alibi_slopes is not None or q.requires_grad or k.requires_grad or v.requires_grad:
            refuse_gradient(plan.kernel, q, k, v, k_scale, v_scale, plan.alibi_slopes, sinks)
        # fmt: off
        key = (
            layer, q.shape, q.stride(), q.dtype, q.get_device(), k.shape, k.stride(), k.dtype, k.get_device(),
            v.shape, v.stride(), v.dtype, v.get_device(), out.shape, out.stride(), out.dtype, out.get_device(),
            None if lse is None else facts(lse),
        )
        # fmt: on
        bound = plan.bound or _bind(plan)
    except AttributeError:
        raise no_tensor(q=q, k=k, v=v, out=out, lse=lse, k_scale=k_scale, v_scale=v_scale, sinks=sinks, **plan.tensors) from None
    pool, memory, shared = bound
    call = pool.take(key)
    if call is None:
        plan.look(q, k, v, sinks)
        options = (plan.qo_indptr, k_scale, v_scale, plan.alibi_slopes, sinks, plan.global_lens, plan.page_indptr)
        call = _prepare(plan.kernel, q, k, v, plan.page_table, plan.seq_lens, out, lse, plan.memory, options, plan.numbers)
    words = call.words
    words[_Q], words[_O] = q.data_ptr(), out.data_ptr()
    words[_K], words[_V] = k.data_ptr() or no_address(("q", q), k=k), v.data_ptr() or no_address(("q", q), v=v)
    if lse is not None:
        words[_LSE] = lse.data_ptr() or no_address(("q", q), lse=lse)
    for at, address in shared:
        words[at] = address
    words[_WORKSPACE] = memory + call.keep
    if layer is not None:
        for at, name, tensor in zip(_LAYER, ("k_scale", "v_scale", "sinks"), (k_scale, v_scale, sinks)):
            if tensor is not None:
                words[at] = tensor.data_ptr() or no_address(("q", q), **{name: tensor})
    call.run()
    pool.give(key, call)


def _bind(plan):
    """(pool of calls of such plans, address of the plan, [(word, address)] of the tensors that its layers share)."""
    tensors = plan.tensors
    pool = _pool.part((plan.kernel, plan.numbers, plan.shape, *map(facts, tensors.values())))
    there = [(at, name, tensor) for at, (name, tensor) in zip(_SHARED, tensors.items()) if tensor is not None]
    shared = [(at, tensor.data_ptr() or no_address(("seq_lens", plan.seq_lens), **{name: tensor})) for at, name, tensor in there]
    plan.bound = pool, plan.memory.data_ptr(), shared
    return plan.bound


def _prepare(kernel, q, k, v, page_table, seq_lens, out, lse, plan, options, numbers):
    qo_indptr, k_scale, v_scale, alibi_slopes, sinks, global_lens, page_indptr = options
    here = ("q", q)
    same_device(here, k=k, v=v, page_table=page_table, seq_lens=seq_lens, out=out, lse=lse, plan=plan)
    same_device(here, qo_indptr=qo_indptr, global_lens=global_lens, page_indptr=page_indptr)
    named = dict(zip(NUMBERS, numbers))
    require(k.dim() == 4, lambda: f"k is {list(k.shape)}, expected [pages, page_size, num_kv_heads, head_dim]")
    _, page_size, num_kv_heads, head_dim = k.shape
    batch, max_pages, *table_strides = tables_of(page_table, seq_lens, page_indptr, named.pop("max_pages"), num_kv_heads)
    if global_lens is not None:
        check("global_lens", global_lens, torch.int32, (batch,))
        unit_rows("global_lens", global_lens)
    rows = _query_shape(q, batch, qo_indptr)
    if rows != "ragged":
        named["q_len"] = q.shape[1] if rows == "many" else 1
    check("v", v, k.dtype, k.shape)
    require(q.shape[-1] == head_dim, lambda: f"q has head_dim {q.shape[-1]}, expected {head_dim} as k")
    check("out", out, q.dtype, q.shape)
    for name, tensor in (("q", q), ("k", k), ("v", v), ("out", out)):
        unit_rows(name, tensor)
    p, where = PagedParams(), library(target_of(q.device.type))
    named.update(num_qo_heads=q.shape[-2], num_kv_heads=num_kv_heads, head_dim=head_dim, page_size=page_size)
    fill_shape(p, where, q.dtype, k.dtype, batch, max_pages, **named)
    p.kv.page_table_stride, p.kv.page_table_stride_head = table_strides
    p.kv.k_stride_page, p.kv.k_stride_token, p.kv.k_stride_head, _ = strides(k, head_dim)
    p.kv.v_stride_page, p.kv.v_stride_token, p.kv.v_stride_head, _ = strides(v, head_dim)
    p.q_stride_batch, p.q_stride_token, p.q_stride_head = _row_strides(strides(q, head_dim)[:-1], rows)
    p.out_stride_batch, p.out_stride_token, p.out_stride_head = _row_strides(strides(out, head_dim)[:-1], rows)
    if lse is not None:
        check("lse", lse, torch.float32, q.shape[:-1])
        p.lse_stride_batch, p.lse_stride_token, p.lse_stride_head = _row_strides(strides(lse, 1), rows)
    p.k_scale_stride = scale_stride("k_scale", k_scale, num_kv_heads, here)
    p.v_scale_stride = scale_stride("v_scale", v_scale, num_kv_heads, here)
    vector("alibi_slopes", alibi_slopes, q.shape[-2], here)
    vector("sinks", sinks, q.shape[-2], here)
    for name, tensor in zip(OPTIONS, options):
        set_option(p, name, None if tensor is None else GIVEN)
    return _with_scratch(kernel, where, p, plan, q.device)


def _with_scratch(kernel, where, p, plan, device):
    """A plan holds the scratch of its calls behind itself: who may share the one may share the other."""
    if plan is None:
        p.workspace_bytes = 0 if kernel == V1 else where.size(kernel + "_workspace_size", p, device)
        return Prepared(kernel, where, p, device, p.workspace_bytes)
    require(kernel != V1, lambda: "plan is given, version 1 has none")
    check("plan", plan, torch.uint8, (None,))
    unit_rows("plan", plan)
    behind, needed = scratch_at(where.size(kernel + "_plan_size", p, device)), plan_bytes(kernel, where, p, device)
    if plan.numel() < needed:
        raise WorkspaceTooSmall(f"plan has {plan.numel()} bytes, this call needs {needed}")
    p.plan_bytes, p.workspace_bytes = behind, plan.numel() - behind
    return Prepared(kernel, where, p, device, keep=behind)


def _query_shape(q, batch, qo_indptr):
    """Which axes of q are there: "ragged" [tokens, ...], "one" [batch, ...] or "many" [batch, tokens, ...]."""
    if qo_indptr is not None:
        check("qo_indptr", qo_indptr, torch.int32, (batch + 1,))
        unit_rows("qo_indptr", qo_indptr)
        check("q", q, q.dtype, (None, None, None))
        return "ragged"
    require(
        q.dim() in (3, 4) and q.shape[0] == batch,
        lambda: f"q is {list(q.shape)}, expected [{batch}, num_qo_heads, head_dim] or [{batch}, q_len, num_qo_heads, head_dim]",
    )
    return "one" if q.dim() == 3 else "many"


def _row_strides(given, rows):
    """(batch, token, head) of the axes that a tensor has."""
    return {"one": lambda b, h: (b, 0, h), "ragged": lambda t, h: (0, t, h), "many": lambda *bth: bth}[rows](*given)
