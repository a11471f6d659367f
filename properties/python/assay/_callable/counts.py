# SPDX-License-Identifier: Apache-2.0
"""How often each key counted, read off an output: q is 0, so that weights are equal, and V says which key a row is."""
import numpy as np

from ..elements import to_float32

_NEAR = 0.2  #: of a whole number, that a count may be away from it
_MOST = 4  #: requests that are said


def spans(numbers):
    """"3", "3 to 5", "3, 5 to 7 and 40 more"."""
    runs = np.split(np.array(numbers), np.flatnonzero(np.diff(numbers) > 1) + 1) if len(numbers) else []
    words = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs[:_MOST]]
    left = sum(map(len, runs[_MOST:]))
    return ", ".join(words) + (f" and {left} more" if left else "")


def found(inputs, out):
    """Sentences about keys that counted another number of times than once; none where all did, or where O says no counts."""
    shape, sentences = inputs.shape, []
    values = to_float32(out, shape.dtype) if out.dtype == np.uint16 else out.astype(np.float32)
    values = values.reshape(shape.batch, shape.q_len, shape.num_kv_heads, -1, shape.head_dim)[:, -1]
    for request, length in enumerate(inputs.seq_lens):
        said = _of_request(values[request], int(length), shape.head_dim)
        if said:
            sentences.append(f"request {request} of {length} keys: {said}")
        if len(sentences) == _MOST:
            return sentences
    return sentences


def _of_request(values, length, dims):
    """Of its first kv head and query head that differ: [kv_heads, group, dims]."""
    codes = [np.arange(length) % dims, np.arange(length) // dims % dims]
    for head in range(values.shape[0]):
        for query in range(values.shape[1]):
            wrong = _off(values[head, query], codes[head % 2], dims)
            if wrong is None:
                continue
            if not wrong.any():
                behind = _behind(values[head, query], length)
                if behind:
                    return f"{behind} behind its last key counted in kv head {head}"
                continue
            beside = head ^ 1
            other = _off(values[beside, query], codes[beside % 2], dims) if beside < values.shape[0] else None
            return _in_words(wrong, other, codes[head % 2], codes[1 - head % 2], head)
    return ""


def _behind(row, length):
    """How many rows of V without a code counted: their values are 0, and weights add up to less than 1."""
    extra = length / row.sum() - length
    return round(extra) if extra > max(0.5, 2.0**-7 * length) else 0


def _off(row, code, dims):
    """By how much each code counts more often than it should; None where the row holds no counts."""
    expected = np.bincount(code, minlength=dims)
    there = (expected > 0) & np.isfinite(row) & (row > 0)
    if not there.any() or not np.isfinite(row).all():
        return None
    counts = row * np.median(expected[there] / row[there])  # most codes are right: that is what they are divided by
    whole = np.rint(counts)
    return (whole - expected).astype(int) if np.all(np.abs(counts - whole) <= _NEAR + 2.0**-8 * np.abs(counts)) else None


def _in_words(wrong, other, code, other_code, head):
    parts = []
    for sign, words in ((-1, "did not count"), (1, "counted twice")):
        keys, total = np.flatnonzero(wrong[code] * sign > 0), int(np.abs(wrong[wrong * sign > 0]).sum())
        both = keys[other[other_code[keys]] * sign > 0] if other is not None else []
        keys = both if len(both) else keys
        if len(keys) == total > 0:
            parts.append(f"key{'s' if total > 1 else ''} {spans(keys)} {words}")
        elif total:
            parts.append(f"{total} of keys {spans(keys)} {words.replace('twice', 'too often')}")
    return "; ".join(parts) + f" in kv head {head}"
