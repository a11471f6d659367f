# SPDX-License-Identifier: Apache-2.0
"""Mistakes that a serving engine makes, put between its tensors and the judge: what is judged is then not what the kernel read.

Each takes the arguments of assay.judge as vllm_calls makes them, with NumPy arrays, and returns what to change; None where a
call has nothing to get wrong in this way."""
import numpy as np
from assay._judge.tensors import Tensor


def as_numpy(arguments):
    """The same arguments without torch."""
    changed = {name: Tensor(name, arguments[name]).numpy().copy() for name in ("q", "out")}
    return dict(arguments, kv_cache=tuple(np.array(cache) for cache in arguments["kv_cache"]), **changed)


def _longest(a):
    return int(np.argmax(a["seq_lens"]))


def _slots(a):
    return a["kv_cache"][0].shape[1]


def _changed(array, index, value):
    array = np.array(array)
    array[index] = value
    return array


def page_off_by_one(a):
    pages = len(a["kv_cache"][0])
    r = _longest(a)
    return None if pages == 1 else dict(page_table=_changed(a["page_table"], (r, 0), (a["page_table"][r, 0] + 1) % pages))


def last_key_dropped(a):
    return dict(seq_lens=a["seq_lens"] - 1)


def stale_slot(a):
    """The newest key and value of a request are those of the slot before it."""
    r = _longest(a)
    n = int(a["seq_lens"][r])
    if n < 2:
        return None
    at = [(a["page_table"][r, t // _slots(a)], t % _slots(a)) for t in (n - 1, n - 2)]
    return dict(kv_cache=tuple(_changed(cache, at[0], cache[at[1]]) for cache in a["kv_cache"]))


def stale_page(a):
    """A page still holds what another one holds."""
    if len(a["kv_cache"][0]) == 1:
        return None
    page = a["page_table"][_longest(a), 0]
    return dict(kv_cache=tuple(_changed(cache, page, cache[page - 1]) for cache in a["kv_cache"]))


def kv_head_of_the_neighbour(a):
    return None if a["kv_cache"][0].shape[2] == 1 else dict(kv_cache=tuple(np.roll(cache, 1, axis=2) for cache in a["kv_cache"]))


def scale_left_out(a):
    return dict(sm_scale=1.0)


def window_off_by_one(a):
    """One key too few is seen by the last row of the longest request."""
    left = a["window_left"] if a["window_left"] >= 0 else int(a["seq_lens"][_longest(a)]) - 1
    return None if left < 1 or left >= a["seq_lens"][_longest(a)] else dict(window_left=left - 1)


def two_requests_exchanged(a):
    same = [r for r in range(1, len(a["seq_lens"])) if a["seq_lens"][r] > 0]
    if not same:
        return None
    order = np.arange(len(a["seq_lens"]))
    order[[0, same[0]]] = order[[same[0], 0]]
    return dict(page_table=a["page_table"][order], seq_lens=a["seq_lens"][order])


def query_of_the_row_before(a):
    return None if len(a["q"]) == 1 else dict(q=np.roll(a["q"], 1, axis=0))


def not_causal(a):
    return None if (np.diff(a["qo_indptr"]) < 2).all() else dict(causal=False)


def keys_and_values_exchanged(a):
    return dict(kv_cache=a["kv_cache"][::-1])


def two_heads_exchanged(a):
    heads = np.arange(a["out"].shape[1])
    heads[:2] = heads[1::-1]
    return dict(out=a["out"][:, heads])


MISTAKES = [
    page_off_by_one, last_key_dropped, stale_slot, stale_page, kv_head_of_the_neighbour, scale_left_out, window_off_by_one,
    two_requests_exchanged, query_of_the_row_before, not_causal, keys_and_values_exchanged, two_heads_exchanged,
]  # fmt: skip
