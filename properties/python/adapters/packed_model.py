# SPDX-License-Identifier: Apache-2.0
"""For `assay judge-callable SOLUTION.py:Model --adapter packed_model.py:attention`: classes as kernelbench.com's hard problem
03 asks for, Model(batch, num_heads, num_kv_heads, head_dim, seq_len, page_size), called with query, one cache whose last
axis is K and V, block_table and seq_lens. A model and its cache stay for all calls of a shape. Classes of other problems are
refused."""
import functools
import inspect

import torch


def attention(model_class):
    try:
        inspect.signature(model_class).bind(*range(6))
    except TypeError:
        raise ValueError(f"assay: {model_class.__name__} is no paged attention: it takes {inspect.signature(model_class)}") from None
    made = functools.cache(lambda device, *numbers: model_class(*numbers).to(device).eval())
    caches = functools.cache(lambda device, dtype, *sizes: torch.empty(sizes, dtype=dtype, device=device))

    @torch.no_grad()
    def call(q, k_cache, v_cache, page_table, seq_lens, max_seq_len):
        pages, slots, kv_heads, dim = k_cache.shape
        kv_cache = caches(q.device, q.dtype, pages, slots, kv_heads, 2 * dim)
        torch.cat((k_cache, v_cache), -1, out=kv_cache)
        return made(q.device, *q.shape[:2], kv_heads, dim, max_seq_len, slots)(q, kv_cache, page_table, seq_lens)

    return call
