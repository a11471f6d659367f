# SPDX-License-Identifier: Apache-2.0
"""The planners of paged and tree attention over the C ABI."""
import torch

from ._abi import PagedParams
from .errors import WorkspaceTooSmall
from .paged_shape import GIVEN, batch_of, no_address, plan_bytes, shape_params
from .prepared import Pool, Prepared, word
from .tensors import check, facts, same_device, unit_rows

_pool = Pool()
_PLAN, _TABLE, _LENS = word(PagedParams, "plan"), word(PagedParams, "kv", "page_table"), word(PagedParams, "kv", "seq_lens")


def plan_into(kernel, page_table, seq_lens, out, dtype, kv_dtype, shape, given):
    """Fills `out`, uint8 [bytes]. shape: sizes and numbers by name, as items; given: the options that the calls have."""
    key = (kernel, facts(page_table), facts(seq_lens), facts(out), dtype, kv_dtype, shape, given)
    call = _pool.take(key)
    if call is None:
        same_device(("seq_lens", seq_lens), page_table=page_table, plan=out)
        batch_of(page_table, seq_lens)
        check("plan", out, torch.uint8, (None,))
        unit_rows("plan", out)
        where, p = shape_params(seq_lens.device, dtype, kv_dtype, *page_table.shape, dict(shape), given)
        # The planner of trees looks whether there is a pool, and not into it.
        p.kv.k = p.kv.v = GIVEN
        p.kv.page_table_stride = page_table.stride(0) if page_table.shape[0] > 1 else page_table.shape[1]
        # All of it: a call would otherwise be the first to say that its scratch is too small.
        needed = plan_bytes(kernel, where, p, seq_lens.device)
        if out.numel() < needed:
            raise WorkspaceTooSmall(f"plan has {out.numel()} bytes, calls of this shape need {needed}")
        p.plan_bytes = out.numel()
        call = Prepared(kernel + "_plan", where, p, seq_lens.device)
    for at, name, tensor in ((_PLAN, "plan", out), (_TABLE, "page_table", page_table), (_LENS, "seq_lens", seq_lens)):
        call.words[at] = tensor.data_ptr() or no_address(("seq_lens", seq_lens), **{"page_table": page_table, name: tensor})
    call.run()
    _pool.give(key, call)
