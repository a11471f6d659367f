# SPDX-License-Identifier: Apache-2.0
"""Arguments by names that the judge does not have: what it calls them."""
import inspect

#: What FlashInfer, FlashAttention, vLLM and torch call arguments of the judge.
OTHERS = {
    "window": "window_left and window_right", "window_size": "window_left and window_right",
    "sliding_window": "window_left, which does not count the own key", "softcap": "logits_soft_cap",
    "softmax_scale": "sm_scale", "scale": "sm_scale", "scaling": "sm_scale", "is_causal": "causal", "attn_mask": "mask",
    "custom_mask": "mask", "packed_custom_mask": "packed_mask", "block_table": "page_table", "block_tables": "page_table",
    "paged_kv_indices": "page_table", "paged_kv_indptr": "page_indptr", "paged_kv_last_page_len": "last_page_len",
    "cache_seqlens": "seq_lens, or seq_lens_before where the call appends keys", "context_lens": "seq_lens",
    "query_start_loc": "qo_indptr", "s_aux": "sinks", "learnable_sink": "sinks",
    "k_descale": "k_scale", "v_descale": "v_scale", "q_descale": "q_scale", "kv": "kv_cache", "paged_kv_cache": "kv_cache",
    "k_cache": "kv_cache: (k, v)", "v_cache": "kv_cache: (k, v)", "output": "out", "query": "q", "softmax_lse": "lse", "rows": "max_rows",
    "states": "o_in", "v": "o_in", "s": "lse_in", "layout": "kv_layout", "arithmetic": "like", "declaration": "like",
}  # fmt: skip


def ours(name):
    """The argument that another name stands for, the first where there are two; "" for unknown names."""
    return OTHERS.get(name, "").partition(",")[0].partition(":")[0].split(" and ")[0]


def called(function, described, arguments, options):
    """described(*arguments, **options), of which an error says `function`, the name that its caller used. `options` may be
    wrong, by name or by number: TypeError."""
    signature = inspect.signature(described)
    for name in options:
        if name not in signature.parameters:
            here = f": it is {OTHERS[name]}" if ours(name) in signature.parameters else ""
            raise TypeError(f"assay: {function} has no argument {name}{here}")
    try:
        signature.bind(*arguments, **options)
    except TypeError as error:
        raise TypeError(f"assay: {function}: {error}") from None
    return described(*arguments, **options)
