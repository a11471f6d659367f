# SPDX-License-Identifier: Apache-2.0
"""The planners of paged and tree attention over the C ABI."""
import torch

from ._abi import PagedParams
from .errors import WorkspaceTooSmall
from .paged_shape import GIVEN, no_address, plan_bytes, shape_params, tables_of
from .prepared import Pool, Prepared, word
from .tensors import check, facts, same_device, unit_rows

_pool = Pool()
_PLAN = word(PagedParams, "plan")
_TABLE, _LENS, _INDPTR = (word(PagedParams, "kv", name) for name in ("page_table", "seq_lens", "page_indptr"))


def plan_into(planner, page_table, seq_lens, page_indptr, max_pages, out, dtype, kv_dtype, shape, given):
    """Fills `out`, uint8 [bytes]. shape: sizes and numbers by name, as items; given: the options that the calls have."""
    indptr = None if page_indptr is None else facts(page_indptr)
    key = (planner, facts(page_table), facts(seq_lens), indptr, max_pages, facts(out), dtype, kv_dtype, shape, given)
    call = _pool.take(key)
    if call is None:
        same_device(("seq_lens", seq_lens), page_table=page_table, page_indptr=page_indptr, plan=out)
        sizes = dict(shape)
        rows, most, *strides = tables_of(page_table, seq_lens, page_indptr, max_pages, sizes["num_kv_heads"])
        check("plan", out, torch.uint8, (None,))
        unit_rows("plan", out)
        where, p = shape_params(seq_lens.device, dtype, kv_dtype, rows, most, sizes, given)
        # The planner of trees looks whether there is a pool, and not into it.
        p.kv.k = p.kv.v = GIVEN
        p.kv.page_table_stride, p.kv.page_table_stride_head = strides
        # All of it: a call would otherwise be the first to say that its scratch is too small.
        needed = plan_bytes(planner.split("_plan")[0], where, p, seq_lens.device)
        if out.numel() < needed:
            raise WorkspaceTooSmall(f"plan has {out.numel()} bytes, calls of this shape need {needed}")
        p.plan_bytes = out.numel()
        call = Prepared(planner, where, p, seq_lens.device)
    for at, name, tensor in ((_PLAN, "plan", out), (_TABLE, "page_table", page_table), (_LENS, "seq_lens", seq_lens)):
        call.words[at] = tensor.data_ptr() or no_address(("seq_lens", seq_lens), **{"page_table": page_table, name: tensor})
    if page_indptr is not None:
        call.words[_INDPTR] = page_indptr.data_ptr() or no_address(("seq_lens", seq_lens), page_indptr=page_indptr)
    call.run()
    _pool.give(key, call)
