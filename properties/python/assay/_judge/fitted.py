# SPDX-License-Identifier: Apache-2.0
"""What a failing row says of its own mistake: the window, scale or cap with which plain attention comes nearest to its
outputs, or the keys without which it does. Whether it is right then is the judge's to say."""
import math

import numpy as np

from .. import elements
from . import parts
from .excerpt import cut, excerpt

_FEATURES = ("q_scale", "k_scale", "v_scale", "o_scale", "alibi_slopes", "sinks", "mask")
_UNITS = {"fp16": 2.0**-11, "bf16": 2.0**-8, "fp32": 2.0**-20}  #: relative, of a rounded output
_BETTER = 8  #: so much less than the error as it is
_MOST_KEYS = 1 << 12  #: a search then takes a tenth of a second
_STEPS = 160  #: of a search, over a factor of 2^8 in either direction
_DIGITS = (1, 2, 3, 4, 6)


def numbers(call, row, head):
    """[(name, value)] to try, of a call without features."""
    one = _row(call, parts.changed(call, {"window_left": -1}), row, head)
    with np.errstate(all="ignore"):
        return list(one.numbers()) if one else []


def lost_keys(call, row, head):
    """Keys, a range, without which plain attention comes far nearer to the outputs: a key or a page; None: there are none."""
    one = _row(call, call, row, head)
    with np.errstate(all="ignore"):
        return one.lost(call.tensors["k"].shape[1]) if one and cut(call, row)[2].start == 0 else None


def _row(call, whole, row, head):
    """One head of a row of a call without features and with as many keys as a search has time for, else None."""
    if any(call.tensors[name] is not None for name in _FEATURES) or any(call.tensors[n].dtype not in _UNITS for n in ("out", "q", "k", "v")):
        return None
    keys = len(cut(whole, row)[2])
    with np.errstate(all="ignore"):
        return _Row(call, excerpt(whole, row), head, keys) if 4 <= keys <= _MOST_KEYS else None


class _Row:
    """One head of one row, in double precision."""

    def __init__(self, call, part, head, keys):
        part = parts.one_head(part, head)
        values = {name: elements.to_float32(part.tensors[name].numpy(), part.tensors[name].dtype).astype(np.float64) for name in ("out", "q", "k", "v")}
        self.out, seen = values["out"][0, 0], slice(0, keys)
        self.scores = values["k"].reshape(-1, values["k"].shape[-1])[seen] @ values["q"][0, 0]
        self.values = values["v"].reshape(-1, values["v"].shape[-1])[seen]
        self.scale, self.cap, self.left = (call.scalars[name] for name in ("sm_scale", "logits_soft_cap", "window_left"))
        self.unit = _UNITS[part.tensors["out"].dtype] * np.abs(self.out).max()
        self.right = call.scalars["window_right"] < 0 or call.scalars["causal"]

    def numbers(self):
        if not np.all(np.isfinite(self.out)) or not np.all(np.isfinite(self.scores)):
            return
        now = self._error(self.scale, self.cap, self.left)
        left, least = self._window() if self.right else (self.left, now)
        scale = self._search(self.scale, lambda value: self._error(value, self.cap, self.left))
        cap = self._search(self.cap or 4.0, lambda value: self._error(self.scale, value, self.left))
        for name, value, error in (
            ("window_left", left, least), ("sm_scale", scale, self._error(scale, self.cap, self.left)),
            ("logits_soft_cap", cap, self._error(self.scale, cap, self.left)),
        ):  # fmt: skip
            if error < now / _BETTER:
                yield name, value

    def lost(self, slots):
        """The key or page of so many slots whose loss explains most of the error, at least half."""
        if not np.all(np.isfinite(self.out)) or not np.all(np.isfinite(self.scores)):
            return None
        logits = self._logits(self.scale, self.cap)
        weights = np.exp(logits - logits.max())
        weights /= weights.sum()
        exact = weights @ self.values
        error, best, found = self.out - exact, None, None
        for size in {1, slots} if slots < len(weights) else {1}:
            starts = np.arange(0, len(weights), size)
            mass = np.add.reduceat(weights, starts)
            moved = (np.add.reduceat(weights[:, None] * self.values, starts) - mass[:, None] * exact) / np.maximum(1 - mass, 1e-9)[:, None]
            rest = np.linalg.norm(error + moved, axis=1)
            at = int(rest.argmin())
            if rest[at] < np.linalg.norm(error) / 2 and (best is None or rest[at] < best):
                best, found = rest[at], range(at * size, min((at + 1) * size, len(weights)))
        return found

    def _logits(self, scale, cap):
        logits = self.scores * scale
        return cap * np.tanh(logits / cap) if cap > 0 else logits

    def _error(self, scale, cap, left):
        logits = self._logits(scale, cap)[-(left + 1) :] if left >= 0 else self._logits(scale, cap)
        weights = np.exp(logits - logits.max())
        return np.abs(weights @ self.values[-len(weights) :] / weights.sum() - self.out).max()

    def _window(self):
        """Of sums over the newest keys, the nearest one: (window_left, its error)."""
        logits = self._logits(self.scale, self.cap)[::-1]
        weights = np.exp(logits - logits.max())
        sums = np.cumsum(weights[:, None] * self.values[::-1], 0) / np.maximum(np.cumsum(weights), 1e-300)[:, None]
        errors = np.abs(sums - self.out).max(1)
        return int(errors.argmin()), errors.min()

    def _search(self, around, error):
        """The value with the least error, in as few digits as fit as well."""
        grid = around * 2.0 ** np.linspace(-8, 8, _STEPS)
        at = int(np.argmin([error(value) for value in grid]))
        low, high = math.log(grid[max(at - 1, 0)]), math.log(grid[min(at + 1, _STEPS - 1)])
        for _ in range(60):
            third = (high - low) / 3
            if error(math.exp(low + third)) < error(math.exp(high - third)):
                high -= third
            else:
                low += third
        best = math.exp((low + high) / 2)
        enough = 1.2 * error(best) + self.unit
        return next((value for value in (float(f"{best:.{digits}g}") for digits in _DIGITS) if error(value) <= enough), best)
