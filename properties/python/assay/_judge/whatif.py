# SPDX-License-Identifier: Apache-2.0
"""With which other inputs outputs that fail would be inside: the last key left out, another scale, another kv head.

Each supposition is the same row with something changed, and the judge decides it. What is said is that alone: a kernel
that made another mistake may fit it, too."""
import functools
import itertools
import math

import numpy as np

from . import fitted, parts
from .call import ATTENTION
from .excerpt import cut, excerpt, repeated
from .heads import judged_right, of_other_heads, put
from .inputs import host
from .words import spans

MOST = 4  #: suppositions that are said
PAIRS = 4  #: of rows that one of them names
LOG2E = 1 / math.log(2)
_SCALES = ("q_scale", "k_scale", "v_scale", "o_scale")


def suppositions(call, rows, head, others, work, shift=0):
    """Sentences, each of which fits all of `rows`: under which they are inside. `head` fails in the first of them; `others`
    are rows that outputs are tried on. Ends where no work is left."""
    said, whole = [], {row: excerpt(call, row) for row in rows}
    try:
        for sentence in _sentences(call, whole, head, others, work, shift):
            said += [sentence] if sentence not in said else []
            if len(said) == MOST:
                break
    except parts.Spent:
        pass
    return said


def _sentences(call, whole, head, others, work, shift):
    rows = list(whole)
    name = f"row{'s' if len(rows) > 1 else ''} {spans(row + shift for row in rows)}"
    for words, change in _changes(call, whole, head):
        if _right(change, whole[rows[0]], rows[0], work, head) and all(_right(change, whole[row], row, work) for row in rows):
            yield f"{name} would be inside if {words}"
    if call.kind == ATTENTION and parts.heads_of(call) > 1:
        for words in of_other_heads(list(whole.values()), work):
            yield f"of {name} would be inside: {words}"
    yield from _of_other_rows(call, whole, others, work)


def _right(change, part, row, work, head=None):
    """Whether the changed row is inside, and as much is said about it as about the row itself; or one head of both, which
    costs less."""
    try:
        changed = change(row)
    except ValueError:  # the judge takes no such call
        return False
    if changed is not None and head is not None:
        changed, part = parts.one_head(changed, head), parts.one_head(part, head)
    return changed is not None and judged_right(changed, part, work)


def _changes(call, whole, head):
    """(words, function of a row that gives the changed call or None)."""
    if call.kind != ATTENTION:
        yield from _changes_of_merges(call, whole)
        yield from _other_layouts(call, whole)
        return
    for words, left_out in (("the last key", lambda seen, _: seen[-1:]), ("the first key", lambda seen, _: seen[:1]),
                            ("the keys of its last page", lambda seen, slots: seen[seen // slots == seen[-1] // slots])):  # fmt: skip
        if "page" not in words or call.tensors["k"].shape[1] > 1:
            yield f"{words} did not count", lambda row, left_out=left_out: _without(call, whole[row], row, left_out)
    lost = fitted.lost_keys(call, next(iter(whole)), head)
    if lost is not None:
        many = f"keys {lost[0]} to {lost[-1]}" if len(lost) > 1 else f"key {lost[0]}"
        yield f"{many} did not count", lambda row: _without(call, whole[row], row, lambda *_: np.array(lost))
    yield "a key behind the last one counted", lambda row: _longer(call, row, lambda length, slots: length + 1)
    if call.tensors["k"].shape[1] > 1:
        yield "every slot of its last page counted", lambda row: _longer(call, row, lambda length, slots: -(-length // slots) * slots)
        yield "a whole page behind the last key counted", lambda row: _longer(call, row, lambda length, slots: length + slots)
    yield from _other_positions(call)
    scale = call.scalars["sm_scale"]
    for words, value in (("", 1.0), (", times log2 e", scale * LOG2E), (", times ln 2", scale / LOG2E), (", its square", scale * scale)):
        if not math.isclose(value, scale, rel_tol=1e-6):
            yield f"sm_scale were {value:.6g}{words}", lambda row, value=value: parts.changed(whole[row], {"sm_scale": value})
    if call.scalars["logits_soft_cap"]:
        yield "there were no logits_soft_cap", lambda row: parts.changed(whole[row], {"logits_soft_cap": 0.0})
    for name, neutral in (("sinks", -np.inf), ("alibi_slopes", 0)):
        if call.tensors[name] is not None:
            yield f"there were no {name}", lambda row, name=name, neutral=neutral: parts.filled(whole[row], name, neutral)
    given = [name for name in _SCALES if call.tensors[name] is not None]
    for names in (some for count in range(1, len(given) + 1) for some in itertools.combinations(given, count)):
        yield f"there were no {' and '.join(names)}", lambda row, names=names: functools.reduce(lambda part, n: parts.filled(part, n, 1), names, whole[row])
    if call.tensors["lse"] is not None:
        yield _other_base(call), lambda row: parts.changed(whole[row], {"lse_base": 1 - call.scalars["lse_base"]})
    yield from _other_layouts(call, whole)
    if call.tensors["k"].shape == call.tensors["v"].shape and call.tensors["k_scale"] is call.tensors["v_scale"] is None:
        yield "k and v were exchanged", lambda row: parts.changed(
            whole[row], **{name: whole[row].tensors[other].numpy() for name, other in (("k", "v"), ("v", "k"))})
    yield from _other_pages(call)
    for name, value in fitted.numbers(call, next(iter(whole)), head):
        yield f"{name} were {value:.6g}", lambda row, name=name, value=value: _moved(call, row, {name: value}) if name == "window_left" else \
            parts.changed(whole[row], {name: value})


def _other_base(call):
    return f"the LSE were asked for in base {('2', 'e')[call.scalars['lse_base']]}"


def _other_layouts(call, whole):
    """The LSE in another order of its axes than it was said to have."""
    if call.tensors["lse"] is None or min(call.tensors["lse"].shape) < 2:
        return
    lse = call.tensors["lse"].numpy()
    rows, heads = lse.shape
    read = {"TH": lse.T.reshape(rows, heads), "HT": lse.reshape(heads, rows).T}
    batch = call.tensors["seq_lens"].shape[0] if call.kind == ATTENTION else 1
    if batch > 1 and all(call.queries_of(r) * batch == rows for r in range(batch)):
        read["BQH"] = lse.reshape(batch, -1, heads).swapaxes(1, 2).reshape(rows, heads)
        read["BHQ"] = lse.reshape(batch, heads, -1).swapaxes(1, 2).reshape(rows, heads)
    for layout, other in read.items():
        yield f"lse_layout were {layout!r}", lambda row, other=other: parts.changed(
            whole[row], lse=repeated(other[row : row + 1], whole[row].tensors["lse"].shape[0]))


def _changes_of_merges(call, whole):
    states = call.tensors["o_in"].shape[0]
    for state in range(states if 1 < states <= 16 else 0):
        kept = [s for s in range(states) if s != state]
        yield f"state {state} did not count", lambda row, kept=kept: parts.changed(
            whole[row], **{name: whole[row].tensors[name].numpy()[kept] for name in ("o_in", "lse_in")})
    for words, factor in (("2", 1 / LOG2E), ("e", LOG2E)):
        if call.scalars["lse_base"] == (words == "e"):
            yield f"the LSE of the states were in base {words}", lambda row, factor=factor: parts.changed(
                whole[row], lse_in=(whole[row].tensors["lse_in"].numpy() * np.float32(factor)).astype(np.float32))
    if call.tensors["lse"] is not None:
        yield _other_base(call), lambda row: parts.changed(whole[row], {"lse_base": 1 - call.scalars["lse_base"]})


def _masked(part, seen, length):
    """The row with those keys alone."""
    mask = np.zeros(length, np.uint8)
    mask[seen] = 1
    once = {name: part.tensors[name].numpy()[:1] for name in ("out", "q", "lse") if part.tensors[name] is not None}
    if part.tensors["q_scale"] is not None and len(part.tensors["q_scale"].shape) == 2:
        once["q_scale"] = part.tensors["q_scale"].numpy()[:1]
    return parts.changed(part, {"causal": 0, "window_left": -1, "window_right": -1}, mask=mask, **once)


def _without(call, part, row, left_out):
    length, _, keys = cut(call, row)
    seen = np.arange(keys.start, keys.stop)
    if part.tensors["mask"] is not None:
        length = part.tensors["mask"].shape[0]
        seen = np.flatnonzero(part.tensors["mask"].numpy())
    if len(seen) < 2:
        return None
    gone = left_out(seen, call.tensors["k"].shape[1])
    return _masked(part, np.setdiff1d(seen, gone), length) if len(gone) < len(seen) else None


def _longer(call, row, longer):
    """With more keys than the request has, where the cache has places for them."""
    request, lengths, slots = call.request_of(row)[0], host(call.tensors["seq_lens"]).copy(), call.tensors["k"].shape[1]
    if call.scalars["window_left"] >= 0 or call.tensors["mask"] is not None or call.tensors["v_page_table"] is not None:
        return None  # a window and a mask would move, too; V's pages may end before K's
    length = lengths[request]
    lengths[request] = longer(length, slots)
    if lengths[request] == length:
        return None
    pages = _pages_of(call, request)[length // slots : -(-lengths[request] // slots)]
    there = len(pages) == -(-lengths[request] // slots) - length // slots and np.all((0 <= pages) & (pages < call.tensors["k"].shape[0]))
    return excerpt(parts.changed(call, seq_lens=lengths), row) if there else None


def _pages_of(call, request):
    """All entries of a request's table, those behind its keys too; of a dense cache the request's own line."""
    table, indptr = call.tensors["page_table"], call.tensors["page_indptr"]
    if table is None:
        return np.array([request])
    return host(table)[request] if indptr is None else host(table)[host(indptr)[request] :]


def _other_positions(call):
    """Causal order and windows, in other places or not there."""
    left, right = call.scalars["window_left"], call.scalars["window_right"]
    if call.tensors["mask"] is not None:
        for words, causal in (("causal order stood in the place of the mask", 1), ("there were no mask", 0)):
            yield words, lambda row, causal=causal: excerpt(parts.changed(call, {"causal": causal}, mask=None, mask_indptr=None), row)
        return
    if call.scalars["causal"]:
        yield "there were no causal order", lambda row: _moved(call, row, {"causal": 0})
        yield "causal order began at the first key", lambda row: _from_the_first(call, row)
    elif right < 0:
        yield "there were causal order", lambda row: _moved(call, row, {"causal": 1})
    if left >= 0:
        yield "there were no window", lambda row: _moved(call, row, {"window_left": -1})
    for more in (-1, 1):
        left_side = {"window_left": left + more} if left >= 0 else {}
        right_side = {"window_right": right + more} if right >= 0 and not call.scalars["causal"] else {}
        both = [{**left_side, **right_side}] if left_side and right_side else []
        for sides in filter(None, [left_side, right_side, *both]):
            yield " and ".join(f"{name} were {keys}" for name, keys in sides.items()), lambda row, sides=sides: _moved(call, row, sides)


def _moved(call, row, scalars):
    moved = parts.changed(call, scalars)
    return excerpt(moved, row) if cut(moved, row)[2] != cut(call, row)[2] else None


def _from_the_first(call, row):
    request, query, queries = call.request_of(row)
    length = int(host(call.tensors["seq_lens"])[request])
    if queries == length or query >= length:
        return None
    part = excerpt(parts.changed(call, {"causal": 0, "window_left": -1}), row)
    return _masked(part, np.arange(query + 1), length)


def _other_pages(call):
    """Pages, or a dense cache, of another request."""
    batch, slots = call.tensors["seq_lens"].shape[0], call.tensors["k"].shape[1]
    if call.tensors["v_page_table"] is not None or not 1 < batch <= 32:
        return
    lines, lengths = [_pages_of(call, r) for r in range(batch)], host(call.tensors["seq_lens"])
    what = "cache" if call.tensors["page_table"] is None else "pages"
    for other in range(batch):
        def change(row, other=other):
            request = call.request_of(row)[0]
            used = [-(-int(n) // slots) for n in lengths]
            pages = lines[other][: used[request]]
            if other == request or len(pages) < used[request] or np.any(pages < 0) or np.any(pages >= call.tensors["k"].shape[0]):
                return None
            own = [pages if r == request else lines[r][:n] for r, n in enumerate(used)]
            moved = dict(page_table=np.concatenate(own), page_indptr=np.concatenate([[0], np.cumsum([len(p) for p in own])]))
            return excerpt(parts.changed(call, **moved), row)

        yield f"it had the {what} of request {other}", change


def _of_other_rows(call, whole, others, work):
    """For each row another one for which its outputs are right, or with whose query they are."""
    for words, names in (("as", ("out", "lse")), ("with the query of", ("q",))):
        if "q" in names and call.kind != ATTENTION:
            continue
        pairs = {}
        for row, here in whole.items():
            for other in others:
                there = excerpt(call, other)
                if other == row or there.tensors["out"].shape != here.tensors["out"].shape:
                    continue
                if judged_right(put(there, here, names) if "out" in names else put(here, there, names), here, work):
                    pairs[row] = other
                    break
            if row not in pairs:
                break
        if len(pairs) == len(whole):
            each = [f"row {row}{' would be inside' * (i == 0)} {words} row {pairs[row]}" for i, row in enumerate(sorted(pairs))]
            yield ", ".join(each[:PAIRS]) + (f" and {len(each) - PAIRS} more rows so" if len(each) > PAIRS else "")
