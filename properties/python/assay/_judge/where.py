# SPDX-License-Identifier: Apache-2.0
"""What the elements that are not inside have in common: rows, heads, dims, a factor. Every word comes from the judge.

The judge's report has one element. Here it decides parts of the same call, each by itself, and the words below say what
the parts that fail share. Large calls are looked at in part, and the words say so."""
import dataclasses

from . import parts
from .excerpt import excerpt
from .report import ROW
from .whatif import suppositions
from .words import what, where

ROWS = 32  #: looked at, at most
ROWS_INSIDE = 3  #: of those that fail, whose heads are looked at
PAIRS = 2  #: of (row, head), whose dims are looked at
PARTS = 16  #: of a head's dims that are judged to find which of them fail
SAMPLE = 8  #: dims of a head, and heads, whose values are looked at
WORK = 1 << 27  #: products that each of four steps may cost: about a second of one core
SECONDS = 2.0  #: of processor time that suppositions may take


@dataclasses.dataclass(frozen=True)
class Element:
    row: int
    head: int
    dim: int  #: -1: the LSE
    got: float
    exact: float
    allowed: float
    bad: bool


@dataclasses.dataclass
class Survey:
    """What was looked at, and how it was judged."""

    rows: dict = dataclasses.field(default_factory=dict)  #: row: whether something in it fails
    outputs: dict = dataclasses.field(default_factory=dict)  #: (row, head): how many elements of O fail
    lses: dict = dataclasses.field(default_factory=dict)  #: (row, head): whether the LSE fails; empty: none is given
    whole: set = dataclasses.field(default_factory=set)  #: (row, head) that fail as one, none of whose elements does
    dims: dict = dataclasses.field(default_factory=dict)  #: (row, head): which dims fail; None: too many parts of them
    elements: list = dataclasses.field(default_factory=list)  #: of O, some dims of a few (row, head)
    lse_elements: list = dataclasses.field(default_factory=list)  #: some LSEs that fail


def notes(call, report, shift=0, seconds=None):
    """Lines about a call that failed; none where it is too large to be looked at again. `shift` is added to rows that are
    named: of a call that was cut out of a larger one. `seconds` of processor time may go into suppositions (SECONDS)."""
    worst = report.worst["row"]
    if parts.cost_of(call, worst) > WORK:
        return []
    survey = look(call, worst)
    seconds = SECONDS if seconds is None else seconds
    work = parts.Work(8 * WORK * max(1, seconds / SECONDS), seconds)  # which is the limit that counts
    supposed = suppositions(call, _failing_rows(survey, worst), report.worst["head"], list(survey.rows), work, shift)
    common = "; ".join(where(call, survey))
    return [f"  {said}" for said in [*([f"where: {common}"] if common else []), *what(survey), *supposed]]


def look(call, worst):
    """Rows, heads of some that fail, dims of some heads that fail: as far as the work of each step reaches."""
    survey = Survey()
    _as_far_as_it_reaches(_look_at_rows, [(call, worst)], survey)
    survey.rows = dict(sorted({**survey.rows, worst: True}.items()))
    _as_far_as_it_reaches(_look_at_heads, [(call, row) for row in _rows_inside(survey, worst)], survey)
    failing = [pair for pair, count in survey.outputs.items() if count and pair not in survey.whole]
    _as_far_as_it_reaches(_look_at_dims, [(call, *pair) for pair in _ends(failing, PAIRS)], survey)
    return survey


def _as_far_as_it_reaches(look_at, places, survey):
    work = parts.Work(WORK)
    try:
        for place in places:
            look_at(*place, survey, work)
    except parts.Spent:
        pass  # what was looked at stands in the survey


def _look_at_rows(call, worst, survey, work):
    count = call.tensors["out"].shape[0]
    if call.scalars["max_rows"] == 1:
        return
    most = min(ROWS, count, max(1, work.left // parts.cost_of(call, worst)))
    for i in range(most):
        row = i * (count - 1) // max(most - 1, 1)
        survey.rows[row] = not work.judge(excerpt(call, row)).passed


def _rows_inside(survey, worst):
    """The rows that fail, the worst first: some of them."""
    return _failing_rows(survey, worst)[:ROWS_INSIDE]


def _failing_rows(survey, worst):
    return [worst] + [row for row, bad in survey.rows.items() if bad and row != worst]


def _ends(pairs, most):
    """So many of a list, from both ends."""
    return pairs if len(pairs) <= most else pairs[: most // 2] + pairs[-(most // 2) :]


def _element(report, row, head, dim):
    worst = report.worst
    return Element(row, head, dim, worst["got"], worst["exact"], worst["allowed"], not report.passed)


def _look_at_heads(call, row, survey, work):
    call, outputs, lses, whole = excerpt(call, row), {}, {}, set()
    if parts.heads_of(call) * parts.cost_of(parts.one_head(call, 0)) > work.left:
        raise parts.Spent
    for head in range(parts.heads_of(call)):
        part = parts.one_head(call, head)
        report = work.judge(part)
        outputs[row, head] = failing = report.findings
        whole |= {(row, head)} if report.worst["dim"] == ROW else set()
        if call.tensors["lse"] is not None:
            outputs[row, head] = work.judge(parts.output_alone(part)).findings if failing else 0
            lses[row, head] = failing > outputs[row, head]
    survey.outputs.update(outputs)  # all heads of a row, or none
    survey.lses.update(lses)
    survey.whole |= whole
    for _, head in _ends([pair for pair, bad in lses.items() if bad], SAMPLE):
        survey.lse_elements.append(_element(work.judge(parts.lse_alone(parts.one_head(call, head))), row, head, -1))


def _look_at_dims(call, row, head, survey, work):
    part, dims, count = parts.one_head(excerpt(call, row), head), parts.dims_of(call), survey.outputs[row, head]
    if not parts.has_dims(part):
        return
    judged = lambda some: work.judge(parts.some_dims(part, some))  # noqa: E731
    even = judged(slice(0, dims, 2)).findings if 0 < count < dims else 0
    if count == (dims + 1) // 2 == even or count == dims // 2 and even == 0:
        survey.dims[row, head] = range(0 if even else 1, dims, 2)
    else:
        survey.dims[row, head] = _failing(judged, count, dims)
    for i in range(min(SAMPLE, dims)):
        dim = i * (dims - 1) // max(min(SAMPLE, dims) - 1, 1)
        survey.elements.append(_element(judged(slice(dim, dim + 1)), row, head, dim))


def _failing(judged, count, dims):
    """Which of the dims fail, by halves; None where that takes more than PARTS."""
    found, left, parts_left = [], [(0, dims, count)], PARTS
    while left:
        begin, end, failing = left.pop()
        if failing == end - begin:
            found += range(begin, end)
        elif failing:
            parts_left -= 1
            if parts_left < 0:
                return None
            middle = (begin + end) // 2
            first = judged(slice(begin, middle)).findings
            left += [(begin, middle, first), (middle, end, failing - first)]
    return found
