# SPDX-License-Identifier: Apache-2.0
"""With which other inputs outputs that fail would be inside: the last key left out, another scale, another kv head.

Each supposition is the same row with something changed, and the judge decides it. What is said is that alone: a kernel
that made another mistake may fit it, too."""
import math

import numpy as np

from . import judge_parts as parts
from .judge_call import ATTENTION
from .judge_excerpt import cut, excerpt
from .judge_inputs import host
from .judge_words import spans

MOST = 4  #: suppositions that are said
ALIKE = 8  #: heads of a row that are tried so
LOG2E = 1 / math.log(2)


def suppositions(call, rows, heads, others, work, shift=0):
    """Sentences: under which every one of `rows` is inside, or heads of the first of them. `heads` fail in that one;
    `others` are rows that its outputs are tried on. Ends where no work is left."""
    said, whole = [], {row: excerpt(call, row) for row in rows}
    try:
        for sentence in _sentences(call, whole, heads, others, work, shift):
            said.append(sentence)
            if len(said) == MOST:
                break
    except parts.Spent:
        pass
    return said


def _sentences(call, whole, heads, others, work, shift):
    rows = list(whole)
    name = f"row{'s' if len(rows) > 1 else ''} {spans(row + shift for row in rows)}"
    for words, change in _changes(call, whole):
        if all(_right(change, whole[row], row, work) for row in rows):
            yield f"{name} would be inside if {words}"
    if call.kind == ATTENTION and heads:
        yield from _of_other_heads(whole[rows[0]], rows[0] + shift, heads, work)
    yield from _of_other_rows(call, whole[rows[0]], rows[0], others, work)


def _right(change, part, row, work):
    """Whether the changed row is inside, and as much is said about it as about the row itself."""
    try:
        changed = change(row)
        if changed is None:
            return False
        # What is claimed is compared between calls of the same form.
        as_it_is = changed.tensors["out"].shape[0] != 1
        report = work.judge(changed, as_it_is)
    except ValueError:  # the judge takes no such call
        return False
    return report.passed and report.claimed >= work.judge(part, as_it_is).claimed > 0


def _changes(call, whole):
    """(words, function of a row that gives the changed call or None)."""
    if call.kind != ATTENTION:
        yield from _changes_of_merges(call, whole)
        return
    for words, left_out in (("the last key", lambda seen, _: seen[-1:]), ("the first key", lambda seen, _: seen[:1]),
                            ("the keys of its last page", lambda seen, slots: seen[seen // slots == seen[-1] // slots])):  # fmt: skip
        if "page" not in words or call.tensors["k"].shape[1] > 1:
            yield f"{words} did not count", lambda row, left_out=left_out: _without(call, whole[row], row, left_out)
    yield "a key behind the last one counted", lambda row: _one_more(call, row)
    yield from _other_positions(call)
    scale = call.scalars["sm_scale"]
    for words, value in (("", 1.0), (", times log2 e", scale * LOG2E), (", times ln 2", scale / LOG2E), (", its square", scale * scale)):
        if not math.isclose(value, scale, rel_tol=1e-6):
            yield f"sm_scale were {value:.6g}{words}", lambda row, value=value: parts.changed(whole[row], {"sm_scale": value})
    if call.scalars["softcap"]:
        yield "there were no softcap", lambda row: parts.changed(whole[row], {"softcap": 0.0})
    for name, neutral in (("sinks", -np.inf), ("alibi_slopes", 0), ("k_scale", 1), ("v_scale", 1)):
        if call.tensors[name] is not None:
            yield f"there were no {name}", lambda row, name=name, neutral=neutral: parts.filled(whole[row], name, neutral)
    if call.tensors["lse"] is not None:
        yield _other_base(call), lambda row: parts.changed(whole[row], {"lse_base": 1 - call.scalars["lse_base"]})
    yield from _other_pages(call)


def _other_base(call):
    return f"the LSE were asked for in base {('2', 'e')[call.scalars['lse_base']]}"


def _changes_of_merges(call, whole):
    states = call.tensors["o"].shape[0]
    for state in range(states if 1 < states <= 16 else 0):
        kept = [s for s in range(states) if s != state]
        yield f"state {state} did not count", lambda row, kept=kept: parts.changed(
            whole[row], **{name: whole[row].tensors[name].numpy()[kept] for name in ("o", "lse_in")})
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


def _one_more(call, row):
    """With one key more than the request has, where the cache has a place for it."""
    request, lengths = call.request_of(row)[0], host(call.tensors["seq_lens"]).copy()
    page, slots = int(lengths[request]) // call.tensors["k"].shape[1], call.tensors["k"].shape[0]
    table, indptr = call.tensors["page_table"], call.tensors["page_indptr"]
    if call.scalars["window_left"] >= 0 or call.tensors["mask"] is not None or call.tensors["v_page_table"] is not None:
        return None  # a window and a mask would move, too; V's pages may end before K's
    if table is None:
        there = page == 0
    elif indptr is not None:
        at = int(host(indptr)[request]) + page
        there = at < table.shape[0] and 0 <= host(table)[at] < slots
    else:
        there = page < table.shape[1] and 0 <= host(table)[request][page] < slots
    lengths[request] += 1
    return excerpt(parts.changed(call, seq_lens=lengths), row) if there else None


def _other_positions(call):
    """Causal order and windows, in other places or not there."""
    if call.tensors["mask"] is not None:
        return
    left = call.scalars["window_left"]
    if call.scalars["causal"]:
        yield "there were no causal order", lambda row: _moved(call, row, {"causal": 0})
        yield "causal order began at the first key", lambda row: _from_the_first(call, row)
    elif call.scalars["window_right"] < 0:
        yield "there were causal order", lambda row: _moved(call, row, {"causal": 1})
    for words, value in (("there were no window", -1), (f"the window were {left - 1}", left - 1), (f"the window were {left + 1}", left + 1)):
        if left >= 0 and value >= -1:
            yield words, lambda row, value=value: _moved(call, row, {"window_left": value})


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
    """Pages of another request, of a table with a line a request."""
    table = call.tensors["page_table"]
    if table is None or any(call.tensors[name] is not None for name in ("page_indptr", "v_page_table")) or not 1 < table.shape[0] <= 32:
        return
    lines, lengths = host(table), host(call.tensors["seq_lens"])
    slots = call.tensors["k"].shape[1]
    for other in range(table.shape[0]):
        def change(row, other=other):
            request = call.request_of(row)[0]
            pages = lines[other][: -(-int(lengths[request]) // slots)]
            if other == request or np.any(pages < 0) or np.any(pages >= call.tensors["k"].shape[0]):
                return None
            moved = lines.copy()
            moved[request] = lines[other]
            return excerpt(parts.changed(call, page_table=moved), row)

        yield f"it had the pages of request {other}", change


def _put(part, source, names=("out", "lse")):
    """A part with the outputs of another one."""
    return parts.changed(part, **{name: source.tensors[name].numpy() for name in names if source.tensors[name] is not None})


def _of_other_rows(call, here, row, others, work):
    """A row for which the outputs of this one are right, or with whose query they are."""
    for words, names in (("as", ("out", "lse")), ("with the query of", ("q",))):
        if "q" in names and call.kind != ATTENTION:
            continue
        for other in others:
            there = excerpt(call, other)
            if other == row or there.tensors["out"].shape != here.tensors["out"].shape:
                continue
            put = _put(there, here, names) if "out" in names else _put(here, there, names)
            if _right(lambda _, put=put: put, here, row, work):
                yield f"row {row} would be inside {words} row {other}"
                break


def _of_other_heads(part, row, heads, work):
    """Heads for which the outputs of those that fail are right; heads and kv heads with whose inputs they are."""
    count, group = parts.heads_of(part), parts.group_of(part)
    alone = {head: parts.one_head(part, head) for head in range(count)}

    def sentence(words, of, others, put):
        """Where each of the heads that fail has one of the others with which it is right."""
        chosen = {}
        for head in heads[:ALIKE]:
            fits = next((o for o in others if o != of(head) and _right(lambda _, o=o: put(head, o), alone[head], row, work)), None)
            if fits is None:
                return
            chosen.setdefault(fits, []).append(head)
        each = [f"head{'s' if len(alike) > 1 else ''} {spans(alike)} {words} head {fits}" for fits, alike in chosen.items()]
        yield f"of row {row} would be inside: " + ", ".join(each)

    kv_heads, all_heads = range(count // group), range(count)
    for names, words in ((("k", "v"), "with K and V of kv"), (("k",), "with K of kv"), (("v",), "with V of kv")):
        yield from sentence(words, lambda head: head // group, kv_heads, lambda head, o, names=names: _put(alone[head], alone[o * group], names))
    for names in (("out", "lse"), ("out",)):
        if names == ("out", "lse") or part.tensors["lse"] is not None:
            yield from sentence("as", lambda head: head, all_heads, lambda head, o, names=names: _put(alone[o], alone[head], names))
    yield from sentence("with the query of", lambda head: head, all_heads, lambda head, o: _put(alone[head], alone[o], ("q",)))
