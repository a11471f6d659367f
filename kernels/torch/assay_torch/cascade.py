# SPDX-License-Identifier: Apache-2.0
"""cascade_attention over the C ABI."""
import torch

from ._abi import CascadeLevel, CascadeParams
from .errors import require
from .library import library, target_of
from .paged_shape import no_address, set_numbers, tables_of
from .prepared import Pool, Prepared, word, workspace
from .tensors import check, dtype_number, facts, no_tensor, refuse_gradient, same_device, strides, unit_rows

_NAME = "cascade_attention"
_pool = Pool()
_Q, _O, _LSE, _WORKSPACE = (word(CascadeParams, name) for name in ("q", "out", "lse", "workspace"))
_CACHE = ("k", "v", "page_table", "seq_lens")
_NAMES = (*_CACHE, "segment_indptr")
_INDPTR = word(CascadeLevel, "kv", "page_indptr")
_LEVEL = (*(word(CascadeLevel, "kv", name) for name in _CACHE), word(CascadeLevel, "segment_indptr"))


def cascade(q, levels, out, lse, lists, sm_scale, num_splits, lse_base):
    """levels: (k, v, page_table, seq_lens, segment_indptr) each. lists: (page_indptr or None, max_pages or -1) each, or nothing."""
    try:
        refuse_gradient(_NAME, q, *(tensor for level in levels for tensor in level[:2]))
        listed = lists and tuple((facts(page_indptr), most) for page_indptr, most in lists)
        key = (sm_scale, num_splits, lse_base, listed, facts(q), facts(out), facts(lse), *(facts(t) for level in levels for t in level))
    except AttributeError:
        of_levels = {f"levels[{i}].{name}": tensor for i, level in enumerate(levels) for name, tensor in zip(_NAMES, level)}
        of_levels.update({f"levels[{i}].page_indptr": page_indptr for i, (page_indptr, _) in enumerate(lists)})
        raise no_tensor(q=q, out=out, lse=lse, **of_levels) from None
    call = _pool.take(key) or _prepare(q, levels, out, lse, lists, sm_scale, num_splits, lse_base)
    words, (_, level_words) = call.words, call.keep
    words[_Q], words[_O] = q.data_ptr(), out.data_ptr()
    if lse is not None:
        words[_LSE] = lse.data_ptr() or no_address(("q", q), lse=lse)
    _fill_addresses(level_words, levels, lists, q)
    if call.workspace_bytes:
        scratch = workspace(call.workspace_bytes, q.device)
        words[_WORKSPACE] = scratch.data_ptr()
    call.run()
    _pool.give(key, call)


def _fill_addresses(words, levels, lists, q):
    for i, (of_level, level) in enumerate(zip(words, levels)):
        for at, name, tensor in zip(_LEVEL, _NAMES, level):
            of_level[at] = tensor.data_ptr() or no_address(("q", q), **{f"levels[{i}].{name}": tensor})
    if lists:
        for i, (of_level, (page_indptr, _)) in enumerate(zip(words, lists)):
            if page_indptr is not None:
                of_level[_INDPTR] = page_indptr.data_ptr() or no_address(("q", q), **{f"levels[{i}].page_indptr": page_indptr})


def _prepare(q, levels, out, lse, lists, sm_scale, num_splits, lse_base):
    check("q", q, q.dtype, (None, None, None))
    check("out", out, q.dtype, q.shape)
    same_device(("q", q), out=out, lse=lse)
    for name, tensor in (("q", q), ("out", out)):
        unit_rows(name, tensor)
    batch, num_qo_heads, head_dim = q.shape
    require(len(levels) > 0, lambda: "levels is empty, expected at least one")
    require(len(lists) in (0, len(levels)), lambda: f"page_indptr has {len(lists)} parts, expected one for each of {len(levels)} levels")
    num_kv_heads = levels[0][0].shape[2] if levels[0][0].dim() == 4 else None
    array = (CascadeLevel * len(levels))()
    for i, (level, (page_indptr, most)) in enumerate(zip(levels, lists or ((None, -1),) * len(levels))):
        _fill_level(array[i], f"levels[{i}]", q, num_kv_heads, *level, page_indptr, None if most == -1 else most)
    p, where = CascadeParams(), library(target_of(q.device.type))
    p.target, p.dtype, p.levels = where.target, dtype_number("q", q.dtype), array
    set_numbers(p, lse_base=lse_base, batch=batch, num_qo_heads=num_qo_heads, num_kv_heads=num_kv_heads, head_dim=head_dim)
    set_numbers(p, sm_scale=sm_scale, num_levels=len(levels), num_splits=num_splits)
    p.q_stride_batch, p.q_stride_head, _ = strides(q, head_dim)
    p.out_stride_batch, p.out_stride_head, _ = strides(out, head_dim)
    if lse is not None:
        check("lse", lse, torch.float32, q.shape[:-1])
        p.lse_stride_batch, p.lse_stride_head = strides(lse, 1)
    words = [memoryview(level).cast("B").cast("Q") for level in array]
    # The size of a cascade's scratch needs its levels in order, pointers too.
    _fill_addresses(words, levels, lists, q)
    p.workspace_bytes = where.size(_NAME + "_workspace_size", p, q.device)
    return Prepared(_NAME, where, p, q.device, p.workspace_bytes, keep=(array, words))


def _fill_level(filled, name, q, num_kv_heads, k, v, page_table, seq_lens, segment_indptr, page_indptr, max_pages):
    fields = zip(_NAMES, (k, v, page_table, seq_lens, segment_indptr))
    same_device(("q", q), **{f"{name}.{field}": tensor for field, tensor in fields})
    same_device(("q", q), **{f"{name}.page_indptr": page_indptr})
    rows, most, *table_strides = tables_of(page_table, seq_lens, page_indptr, max_pages, num_kv_heads, name + ".")
    check(f"{name}.k", k, q.dtype, (None, None, num_kv_heads, q.shape[-1]))
    check(f"{name}.v", v, q.dtype, k.shape)
    check(f"{name}.segment_indptr", segment_indptr, torch.int32, (rows + 1,))
    for field, tensor in (("k", k), ("v", v), ("segment_indptr", segment_indptr)):
        unit_rows(f"{name}.{field}", tensor)
    kv, head_dim = filled.kv, q.shape[-1]
    set_numbers(kv, rows=rows, max_pages=most, page_size=k.shape[1])
    kv.page_table_stride, kv.page_table_stride_head = table_strides
    kv.k_stride_page, kv.k_stride_token, kv.k_stride_head, _ = strides(k, head_dim)
    kv.v_stride_page, kv.v_stride_token, kv.v_stride_head, _ = strides(v, head_dim)
