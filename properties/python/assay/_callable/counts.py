# SPDX-License-Identifier: Apache-2.0
"""How often each key counted, read off an output: q is 0, so that weights are equal, and V says which key a row is.

A key has a 1 in each half of a kv head's dims, at places that are codes of its number. O times the number of keys is then
how often each code counted; keys whose codes are all off by as much are named."""
import numpy as np

from ..elements import to_float32

_NEAR = 0.02  #: of a whole number, that a count may be away from it
_DIVISORS = 64  #: that are tried, at most
_MOST = 4  #: requests, and runs of keys, that are said


def codes_of(keys, half, head):
    """Two codes below `half` of each key, for the halves of a kv head's dims; odd heads have others than even ones."""
    if head % 2 == 0:
        return keys % half, keys // half % half
    return keys * 0x9E3779B1 % 2**32 // 2**13 % half, keys * 0x85EBCA77 % 2**32 // 2**17 % half


def found(inputs, out):
    """Sentences about keys that counted another number of times than once; none where all did, or where O says no counts."""
    shape, sentences = inputs.shape, []
    values = to_float32(out, shape.dtype) if out.dtype == np.uint16 else out.astype(np.float32)
    values = values.reshape(shape.batch, shape.q_len, shape.num_kv_heads, -1, shape.head_dim)[:, -1]
    for request, length in enumerate(inputs.seq_lens):
        said = _of_request(values[request], int(length))
        if said:
            sentences.append(f"request {request} of {length} keys: {said}")
        if len(sentences) == _MOST:
            return sentences
    return sentences


def _of_request(values, length):
    """Of its first query head that is off: [kv_heads, group, dims]."""
    heads, group, dims = values.shape
    for query in range(group):
        off = [_off(values[head, query], length, dims // 2, head) for head in range(heads)]
        for head, own in enumerate(off):
            if own is None:
                continue
            if any(wrong.any() for wrong, _ in own):
                # Another head's codes tell keys apart, where the kernel made the same mistake there.
                beside = off[head ^ 1] if head ^ 1 < heads else None
                return _in_words(own + (beside if beside and any(wrong.any() for wrong, _ in beside) else [])) + f" in kv head {head}"
            behind = _behind(values[head, query], length)
            if behind:
                return f"{behind} behind its last key counted in kv head {head}"
    return ""


def _behind(row, length):
    """How many rows of V without a code counted: their values are 0, and the others' weights add up to less than 1."""
    extra = length / (row.sum() / 2) - length
    return round(extra) if extra > max(0.5, 2.0**-7 * length) else 0


def _off(row, length, half, head):
    """[(by how much each code counts more often than it should, the code of each key)]; None where the row holds no counts.

    O may have been divided by any number of keys: the one that leaves whole numbers and the smallest differences counts.
    Where a quarter of the keys are off, other numbers fit as well, and nothing is said."""
    if half == 0:
        return None
    codes = codes_of(np.arange(length), half, head)
    parts, expected = row[: 2 * half].reshape(2, half), np.array([np.bincount(code, minlength=half) for code in codes])
    there = (expected > 0) & (parts > 0)
    if not there.any() or not np.isfinite(row).all():
        return None
    divisors, best = np.unique(np.append(length, np.rint(expected[there] / parts[there]))), None
    for divisor in divisors[:: -(-len(divisors) // _DIVISORS)]:
        counts = parts * divisor
        whole = np.rint(counts)
        if np.all(np.abs(counts - whole) <= _NEAR + 2.0**-8 * np.abs(counts)):
            wrong = (whole - expected).astype(int)
            best = wrong if best is None or np.abs(wrong).sum() < np.abs(best).sum() else best
    return None if best is None or np.abs(best).sum() > length / 2 else list(zip(best, codes))


def _in_words(off):
    parts = []
    for sign, words in ((-1, "did not count"), (1, "counted twice")):
        total = max(int(wrong[wrong * sign > 0].sum() * sign) for wrong, _ in off)
        keys = _keys([(wrong * sign, code) for wrong, code in off]) if total else []
        if len(keys) == total > 0:
            parts.append(f"key{'s' if total > 1 else ''} {spans(keys)} {words}")
        elif total:
            among = f" of keys {spans(keys)}" if len(keys) > total else " keys"
            parts.append(f"{total}{among} {words.replace('twice', 'too often')}")
    return "; ".join(parts)


def _keys(off):
    """Keys all of whose codes are too many; of those, while that decides some, the ones that a code cannot do without."""
    left, sure = [(wrong.copy(), code) for wrong, code in off], np.zeros(0, int)
    keys = np.flatnonzero(np.all([wrong[code] > 0 for wrong, code in left], axis=0))
    while len(keys):
        needed = [np.bincount(code[keys], minlength=len(wrong))[code[keys]] <= wrong[code[keys]] for wrong, code in left]
        forced = keys[np.any(needed, axis=0)]
        if not len(forced):
            return np.sort(np.concatenate([sure, keys]))
        sure = np.concatenate([sure, forced])
        for wrong, code in left:
            np.subtract.at(wrong, code[forced], 1)
        keys = np.setdiff1d(keys, forced)
        keys = keys[np.all([wrong[code[keys]] > 0 for wrong, code in left], axis=0)]
    return np.sort(sure)


def spans(numbers):
    """Such as "3 to 5, 7, 12 to 40 and 9 more"."""
    runs = np.split(np.array(numbers), np.flatnonzero(np.diff(numbers) > 1) + 1) if len(numbers) else []
    words = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs[:_MOST]]
    left = sum(map(len, runs[_MOST:]))
    return ", ".join(words) + (f" and {left} more" if left else "")
