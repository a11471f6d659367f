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
        rows = [_Row(values[head, query], length, dims // 2, head) for head in range(heads)]
        for head, row in enumerate(rows):
            off = row.says_counts and _off([row], length)
            if off and off.any():
                # Another head's codes tell keys apart, where the kernel made the same mistake there.
                beside = rows[head ^ 1] if head ^ 1 < heads and rows[head ^ 1].says_counts else None
                both = _off([row, beside], length) if beside and (there := _off([beside], length)) and there.any() else None
                return _in(head, both and both.in_words() or off.in_words())
            if off and (behind := _behind(values[head, query], length)):
                return _in(head, f"{behind} behind its last key counted")
    return ""


def _in(head, said):
    return f"{said} in kv head {head}" if said else ""


class _Row:
    """O of a head as counts of codes, in the two halves of its dims, and the codes of each key."""

    def __init__(self, row, length, half, head):
        self.says_counts = half > 0 and np.isfinite(row).all() and bool(row[: 2 * half].any())
        if self.says_counts:
            self.parts, self.codes = row[: 2 * half].reshape(2, half), codes_of(np.arange(length), half, head)


def _behind(row, length):
    """How many rows of V without a code counted: their values are 0, and the others' weights add up to less than 1."""
    extra = length / (row.sum() / 2) - length
    return round(extra) if extra > max(0.5, 2.0**-7 * length) else 0


class _Off:
    """What is off: keys of which a code did not count at all, which did not count for certain; and of the others by how much
    each code counts more often than it should, with the code of each key (for `lost` ones a code of their own)."""

    def __init__(self, lost, wrong):
        self.lost, self.wrong = lost, wrong

    def any(self):
        return self.lost.any() or any(wrong.any() for wrong, _ in self.wrong)

    def in_words(self):
        """Empty where several mistakes would give these counts."""
        (fewer, sure_fewer), (more, sure_more) = (self._named(sign) for sign in (-1, 1))
        if sure_fewer and sure_more:
            without = np.union1d(np.flatnonzero(self.lost), fewer)
            return "; ".join(f"key{'s' if len(keys) > 1 else ''} {spans(keys)} {words}"
                             for keys, words in ((without, "did not count"), (more, "counted twice")) if len(keys))  # fmt: skip
        return f"keys {spans(np.flatnonzero(self.lost))} did not count; others are off, too" if self.lost.any() else ""

    def _named(self, sign):
        """(keys that counted less or more often, whether they explain every count)."""
        total = max(int(wrong[wrong * sign > 0].sum() * sign) for wrong, _ in self.wrong)
        keys = _keys([(wrong * sign, code) for wrong, code in self.wrong]) if total else np.zeros(0, int)
        return keys, len(keys) == total


def _off(rows, length):
    """An _Off of rows of which the same keys are off; None where a row holds no counts of keys."""
    lost = np.any([part[code] == 0 for row in rows for part, code in zip(row.parts, row.codes)], axis=0)
    wrong = []
    for row in rows:
        of_row = _wrong(row, ~lost)
        if of_row is None:
            return None
        wrong += [(np.append(one, 0), np.where(lost, len(one), code)) for one, code in zip(of_row, row.codes)]
    return _Off(lost, wrong)


def _wrong(row, there):
    """By how much each code counts more often than once for each key `there`; None where the row holds no such counts.

    O may have been divided by any number of keys: the one that leaves whole numbers and the smallest differences counts.
    Where a quarter of the keys are off, other numbers fit as well, and nothing is said."""
    keys, half = int(there.sum()), row.parts.shape[1]
    expected = np.array([np.bincount(code[there], minlength=half) for code in row.codes])
    counted = (expected > 0) & (row.parts > 0)
    if not counted.any():
        return None
    divisors, best = np.unique(np.append(keys, np.rint(expected[counted] / row.parts[counted]))), None
    for divisor in divisors[:: -(-len(divisors) // _DIVISORS)]:
        counts = row.parts * divisor
        whole = np.rint(counts)
        if np.all(np.abs(counts - whole) <= _NEAR + 2.0**-8 * np.abs(counts)):
            wrong = (whole - expected).astype(int)
            best = wrong if best is None or np.abs(wrong).sum() < np.abs(best).sum() else best
    return None if best is None or np.abs(best).sum() > keys / 2 else best


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
