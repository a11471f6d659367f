# SPDX-License-Identifier: Apache-2.0
"""The fixture assay_judge, and --assay-report: what the judge says of each call of an existing suite."""
import json
import math
import pathlib
import sys

import pytest

SHOWN = 10  #: calls in the terminal's summary


class Calls:
    """What was judged in this run: (test id, report), or (test id, why it was not)."""

    def __init__(self, config):
        self.file, self.calls = config.getoption("assay_report"), []

    def rows(self):
        """A dict a call, the largest error beside what is allowed first; what was not judged last."""
        rows = []
        for test, said in self.calls:
            row = {"test": test, "not_judged": said} if isinstance(said, str) else {
                "test": test, "verdict": said.verdict, "ratio": said.ratio, "ratio_lse": said.ratio_lse,
                "budget": said.budget, "like": said.like, "judged": said.claimed, "of": said.elements,
                "not_inside": said.findings, "unexplained": said.unexplained, "order": said.order, "worst": said.worst,
            }  # fmt: skip
            rows.append(row)
        return sorted(rows, key=lambda row: -largest(row))


def largest(row):
    numbers = [row.get(name, math.nan) for name in ("ratio", "ratio_lse")]
    return max((number for number in numbers if not math.isnan(number)), default=-1.0)


def plain(value):
    """A part of a row. JSON has no nan and no infinity: null, and the largest double, as in the program's reports."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else math.copysign(sys.float_info.max, value)


def line(row):
    if "not_judged" in row:
        return f"not judged         {row['test']}: {row['not_judged']}"
    return f"{row['verdict']:9} {largest(row):8.3g} {row['test']} (like {row['like']}, {row['judged']} of {row['of']})"


@pytest.fixture
def assay_judge(request):
    """assay.judge for this test: fails it unless every element is inside; with --assay-report it only takes notes."""
    from . import judging

    calls = request.config.stash[KEY]
    # As findings of kernels are: in pytest's cache, where there is one.
    folder = request.config.cache.mkdir("assay") if hasattr(request.config, "cache") else "findings"

    def judge(*arguments, **options):
        if calls.file is None:
            return judging.assert_attention(*arguments, findings=folder, **options)
        try:
            judging._seconds(options.pop("hint_seconds", None))  # no hints are looked for here
            report = judging.judge(*arguments, **options)
        except (TypeError, ValueError) as error:
            calls.calls.append((request.node.nodeid, str(error)))
            return None
        calls.calls.append((request.node.nodeid, report))
        return report

    return judge


KEY = pytest.StashKey()


def configure(config):
    config.stash[KEY] = Calls(config)


def finish(config, terminal):
    """Writes the file, and the calls nearest to their limit to the terminal."""
    calls = config.stash[KEY]
    if calls.file is None:
        return
    rows = calls.rows()
    text = json.dumps(list(map(plain, rows)), indent=1, allow_nan=False) if calls.file.endswith(".json") else "\n".join(map(line, rows))
    pathlib.Path(calls.file).write_text(text + "\n")
    terminal.section("assay: what the judge says")
    for row in rows[:SHOWN]:
        terminal.line(line(row))
    terminal.line(f"{len(rows)} calls, all in {calls.file}; no verdict of a test was changed")
