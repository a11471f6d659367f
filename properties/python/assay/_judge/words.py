# SPDX-License-Identifier: Apache-2.0
"""What parts of a call that fail have in common, in words; of a Survey alone."""
import math

from . import parts
from .call import ATTENTION

NAMED = {"log2 e": 1 / math.log(2), "ln 2": math.log(2)}


def spans(numbers):
    """0, 1, 2, 5 in words: "0 to 2, 5"."""
    numbers, runs = sorted(numbers), []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a} to {b}" if b > a + 1 else f"{a}, {b}" for a, b in runs)


def _some(noun, failing, looked):
    """The numbers that fail, of those that were looked at."""
    if len(failing) == len(looked):
        return f"every {noun}"
    if len(looked) > 4 and len(failing) == len(looked) - 1:
        return f"every {noun} but {noun} {(set(looked) - set(failing)).pop()}"
    if len(failing) > 2 and sorted(failing) == [n for n in looked if n % 2 == min(failing) % 2]:
        return f"the {('even', 'odd')[min(failing) % 2]} {noun}s"
    return f"{noun}{'s' if len(failing) > 1 else ''} {spans(failing)} alone"


def where(call, survey):
    """Which rows, heads and dims fail, of those that were looked at; O or the LSE."""
    said = _rows_in_words(call, survey) if len(survey.rows) > 1 else []
    bad_o = {pair for pair, count in survey.outputs.items() if count}
    bad_lse = {pair for pair, bad in survey.lses.items() if bad}
    heads = _heads_in_words(call, survey, bad_o | bad_lse)
    rows = sorted({row for row, _ in survey.outputs})
    if heads and len(rows) < sum(survey.rows.values()):
        heads = f"{heads} (of row{'s' if len(rows) > 1 else ''} {spans(rows)} looked at)"
    said.append(heads)
    if survey.lses and not bad_lse:
        said.append("O alone, the LSE is inside")
    elif bad_lse and not bad_o:
        said.append("the LSE alone, O is inside")
    elif bad_lse:
        said.append("O and the LSE")
    if survey.whole:
        said.append("whole rows, of which no element alone is outside" if survey.whole == bad_o else "some of them as whole rows alone")
    if survey.dims:
        said.append(_dims_in_words(survey, parts.dims_of(call), len(bad_o)))
    return [words for words in said if words]


def _rows_in_words(call, survey):
    looked, failing = list(survey.rows), [row for row, bad in survey.rows.items() if bad]
    count = call.tensors["out"].shape[0]
    part = "" if len(looked) == count else f" (of {len(looked)} rows looked at, of {count})"
    if call.kind != ATTENTION or len(failing) == len(looked):
        return [_some("row", failing, looked) + part]
    of = {row: call.request_of(row)[0] for row in looked}
    requests = sorted({of[row] for row in failing})
    whole = all(survey.rows[row] for row in looked if of[row] in requests)
    if whole and len(looked) > len(set(of.values())):
        said = [_some("request", requests, sorted(set(of.values()))) + part]
    else:
        said = [_some("row", failing, looked) + part]
    keys = {row: parts.keys_of(call, row) for row in looked}
    bad, good = [keys[row] for row in failing], [keys[row] for row in looked if not survey.rows[row]]
    if min(bad) > max(good):
        said.append(f"requests of at least {min(bad)} keys fail, those of at most {max(good)} are inside")
    elif max(bad) < min(good):
        said.append(f"requests of at most {max(bad)} keys fail, those of at least {min(good)} are inside")
    return said


def _heads_in_words(call, survey, bad):
    heads, group = list(range(parts.heads_of(call))), parts.group_of(call)
    sets = {frozenset(h for r, h in bad if r == row) for row in {row for row, _ in survey.outputs}}
    if len(heads) == 1 or not bad:
        return ""
    if len(sets) > 1:
        return f"{_some('head', sorted(frozenset.union(*sets)), heads)}, not the same in every row"
    failing = sorted(sets.pop())
    kv_heads = sorted({head // group for head in failing})
    if group > 1 and len(failing) == group * len(kv_heads) < len(heads):
        return f"{_some('head', failing, heads)}: those of kv head{'s' if len(kv_heads) > 1 else ''} {spans(kv_heads)}"
    return _some("head", failing, heads)


def _dims_in_words(survey, dims, failing_heads):
    part = f" in {len(survey.dims)} heads looked at" if len(survey.dims) < failing_heads else ""
    sets = {None if failing is None else tuple(sorted(failing)) for failing in survey.dims.values()}
    if len(sets) > 1 or None in sets:
        counts = sorted(survey.outputs[pair] for pair in survey.dims)
        return f"{counts[0]} to {counts[-1]} of {dims} dims{part}" if counts[0] < counts[-1] else f"{counts[0]} of {dims} dims{part}"
    return _some("dim", sets.pop(), list(range(dims))) + part


def what(survey):
    """What the values that fail have in common."""
    outputs, pairs = [e for e in survey.elements if e.bad], {}
    for element in survey.elements:
        pairs.setdefault((element.row, element.head), []).append(element)
    if outputs:
        yield from _alike("O", outputs) or _multiples([multiple(of) for of in pairs.values()])
    if survey.lse_elements:
        yield from _alike("LSE", survey.lse_elements) or _lse_in_words(survey.lse_elements)


def _alike(name, failing):
    """Where all that fail are the same special value."""
    for words, holds in (("NaN", math.isnan), ("infinite", math.isinf), ("0", lambda got: got == 0)):
        if all(holds(element.got) for element in failing):
            return [f"all {len(failing)} values of {name} looked at that fail are {words}" if len(failing) > 1 else f"the {name} is {words}"]
    return []


def multiple(elements):
    """(factor, its relative uncertainty) where every got is that many times its exact value; else None."""
    strong = [e for e in elements if math.isfinite(e.got) and abs(e.exact) > 8 * e.allowed > 0]
    if len(strong) < 2 or not all(math.isfinite(e.got) and math.isfinite(e.exact) for e in elements):
        return None
    factor = sum(e.got * e.exact for e in strong) / sum(e.exact**2 for e in strong)
    unsure = min(e.allowed / abs(e.exact) for e in strong)
    fits = all(abs(e.got - factor * e.exact) <= 2 * e.allowed * max(1, abs(factor)) for e in elements)
    return (factor, unsure) if fits and abs(factor - 1) > unsure else None


def _digits(value, unsure):
    """A number with as many digits as are sure."""
    return f"{value:.{min(max(math.ceil(-math.log10(unsure)), 1), 6) if unsure > 0 else 6}g}"


def _named(value, unsure):
    names = [name for name, known in NAMED.items() if abs(abs(value) - known) <= 2 * unsure * known]
    return f" ({names[0]})" if names else ""


def _multiples(factors):
    if not factors or None in factors:
        return []
    low, high = min(factors)[0], max(factors)[0]
    unsure = max(unsure for _, unsure in factors)
    if high - low <= 2 * unsure * max(abs(low), abs(high)):
        return [f"O is {_digits(low, unsure)} times the exact one{_named(low, unsure)} in every element looked at"]
    return [f"O is a multiple of the exact one in each head looked at: {_digits(low, unsure)} to {_digits(high, unsure)} times"]


def _lse_in_words(failing):
    found = multiple(failing)
    if found:
        return [f"each LSE looked at that fails is {_digits(*found)} times the exact one{_named(*found)}"]
    finite = [e for e in failing if math.isfinite(e.got) and math.isfinite(e.exact)]
    if len(finite) < 2 or len(finite) < len(failing):
        return []
    offs, allowed = [e.got - e.exact for e in finite], max(e.allowed for e in finite)
    if max(offs) - min(offs) > 2 * allowed:
        return []
    off = sum(offs) / len(offs)
    return [f"each LSE looked at that fails is {_digits(abs(off), allowed)}{_named(off, allowed)} {'above' if off > 0 else 'below'} the exact one"]
