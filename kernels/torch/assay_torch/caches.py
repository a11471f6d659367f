# SPDX-License-Identifier: Apache-2.0
"""KV caches as engines hold them: two tensors or one, token-major or head-major, fp8 as such or as bytes."""
import torch

from .errors import InvalidArgument, require
from .tensors import no_tensor

_FP8 = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


def fp8_of(kv_dtype):
    """The element type of a word for what uint8 holds; None of None."""
    require(kv_dtype is None or kv_dtype in _FP8, lambda: f"kv_dtype is {kv_dtype!r}, expected e4m3 or e5m2")
    return _FP8.get(kv_dtype)


def pool_of(kv_cache, layout, fp8, head_dim):
    """(k, v), each a view [pages, page_size, num_kv_heads, head_dim] of its elements' own dtype. Nothing is copied.

    kv_cache is (k, v); or one tensor [pages, 2, ...] (FlashInfer), [2, pages, ...] (vLLM's FlashAttention backend before 0.20), or
    four axes with k and v side by side in the last (vLLM since). `...` is page_size, num_kv_heads, head_dim with layout NHD, and
    num_kv_heads, page_size, head_dim with HND. fp8: what uint8 holds, or None.
    """
    k, v = kv_cache if isinstance(kv_cache, (tuple, list)) else _halves(kv_cache, head_dim)
    if (fp8 is not None or layout == "HND") and not (isinstance(k, torch.Tensor) and isinstance(v, torch.Tensor)):
        raise no_tensor(k=k, v=v)
    if fp8 is not None:
        k, v = (t.view(fp8) if t.dtype == torch.uint8 else t for t in (k, v))
    if layout == "HND":
        require(k.dim() == v.dim() == 4, lambda: f"k is {list(k.shape)}, expected [pages, num_kv_heads, page_size, head_dim]")
        return k.transpose(1, 2), v.transpose(1, 2)
    if layout != "NHD":
        raise InvalidArgument(f"kv_layout is {layout!r}, expected NHD or HND")
    return k, v


def _halves(cache, head_dim):
    if not isinstance(cache, torch.Tensor):
        raise no_tensor(kv_cache=cache)
    if cache.dim() == 4 and cache.shape[3] == 2 * head_dim:
        return cache[..., :head_dim], cache[..., head_dim:]
    # One comparison a time: torch.compile decides each where the number of pages is a symbol.
    if cache.dim() == 5:
        if cache.shape[1] == 2:
            if cache.shape[0] != 2:
                return cache[:, 0], cache[:, 1]
        elif cache.shape[0] == 2:
            return cache[0], cache[1]
    raise InvalidArgument(
        f"kv_cache is {list(cache.shape)}, expected (k, v), five axes of which one of the first two is 2, or four with "
        f"2 * head_dim {2 * head_dim} in the last; where both could be, give (k, v)"
    )
