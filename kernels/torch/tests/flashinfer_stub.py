# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's trace_apply and its decode wrapper, as far as our door uses them, where FlashInfer is not installed."""
import types


class BatchDecodeWithPagedKVCacheWrapper:
    is_cuda_graph_enabled = property(lambda self: getattr(self, "_use_cuda_graph", False))

    def plan(self, indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, *more, **named):
        raise NotImplementedError

    def run(self, q, paged_kv_cache, *more, out=None, lse=None, return_lse=False, **named):
        raise NotImplementedError


Wrapper, applied = BatchDecodeWithPagedKVCacheWrapper, []


def enable_apply(functions):
    """Of 0.7.2: a run whose shape has a name that is here calls the function with what its template says."""
    own = Wrapper.run

    def run(self, q, paged_kv_cache, *more, out=None, lse=None, return_lse=False, **named):
        k, v = paged_kv_cache
        function = functions.get(f"gqa_paged_decode_h{q.shape[1]}_kv{k.shape[2]}_d{q.shape[2]}_ps{k.shape[1]}")
        if function is None:
            return own(self, q, paged_kv_cache, *more, out=out, lse=lse, return_lse=return_lse, **named)
        made = function(q=q, k_cache=k, v_cache=v, kv_indptr=self._paged_kv_indptr_buf, kv_indices=self._paged_kv_indices_buf, sm_scale=self._sm_scale, return_lse=return_lse)
        for given, result in zip((out, lse), made if return_lse else (made,)):
            if given is not None:
                given.copy_(result)
        return made

    applied.append(own)
    Wrapper.run = run


def disable_apply():
    Wrapper.run = applied.pop()


def modules():
    """What stands for FlashInfer in sys.modules."""
    made = {name: types.ModuleType(name) for name in ("flashinfer", "flashinfer.trace_apply", "flashinfer.decode")}
    made["flashinfer.decode"].BatchDecodeWithPagedKVCacheWrapper = Wrapper
    door = made["flashinfer"].trace_apply = made["flashinfer.trace_apply"]
    door.enable_apply, door.disable_apply, door.is_enabled = enable_apply, disable_apply, lambda: bool(applied)
    return made
