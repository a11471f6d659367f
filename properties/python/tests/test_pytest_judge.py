# SPDX-License-Identifier: Apache-2.0
"""A user's suite with the fixture assay_judge: it fails what is wrong, and with --assay-report only takes notes."""
import json
import pathlib
import sys
import types

import numpy as np
import pytest
from assay import pytest_judge
from assay._judge.report import AttentionError, JudgeReport
from conftest import HERE
from test_judge import Call, library_or_skip

FILE = f"""
import sys
sys.path += [{str(HERE)!r}]
import numpy as np
import pytest
from assay import from_float32
from test_judge import Call

def judged(assay_judge, out, lse, call, **options):
    return assay_judge(out, call.q, (call.k, call.v), page_table=call.table, seq_lens=call.lens, qo_indptr=call.cu, lse=lse,
                       like="fa2", **options)

def test_right(assay_judge):
    call = Call()
    judged(assay_judge, *call.run(), call)

@pytest.mark.parametrize("shift", [1, 2])
def test_wrong(assay_judge, shift):
    call = Call()
    out, lse = call.run()
    judged(assay_judge, np.roll(out, shift, axis=1), lse, call)

def test_misfit(assay_judge):
    call = Call()
    out, lse = call.run()
    judged(assay_judge, out, lse, call, lse_base=7)
"""


@pytest.fixture
def suite(pytester):
    library_or_skip()
    pytester.makepyfile(test_user=FILE)
    return lambda *options: pytester.runpytest_subprocess("-p", "assay.pytest_plugin", "-p", "no:cacheprovider", *options)


def test_a_finding_fails_its_test_with_the_element(suite):
    ran = suite()
    ran.assert_outcomes(passed=1, failed=3)
    ran.stdout.fnmatch_lines(["*AttentionError: outside: row * (request * query 0) head *", "*lse_base is 7*"])


@pytest.mark.parametrize("name", ["notes.txt", "notes.json"])
def test_a_report_takes_notes_and_changes_no_verdict(suite, name):
    ran = suite("--assay-report", name)
    ran.assert_outcomes(passed=4)
    ran.stdout.fnmatch_lines(["*assay: what the judge says*", "outside *test_wrong*", "4 calls, all in *; no verdict*"])
    text = pathlib.Path(name).read_text()
    if name.endswith(".txt"):
        first, second, third, last = text.splitlines()
        assert first.startswith("outside") and second.startswith("outside") and third.startswith("inside"), text
        assert last.startswith("not judged") and "lse_base is 7" in last
    else:
        rows = json.loads(text)
        assert [row.get("verdict") for row in rows] == ["outside", "outside", "inside", None]
        assert rows[0]["ratio"] >= rows[1]["ratio"] > 1 > rows[2]["ratio"] and rows[0]["worst"]["ratio"] == rows[0]["ratio"]


def said(**fields):
    """A report, each number of which is another."""
    plain = dict(verdict="inside", like="flash", worst={"row": 3}, ratio=0.5, ratio_lse=0.25, budget=0.125, elements=9, claimed=8, findings=7, rows=6, rows_judged=5)
    return JudgeReport(**{**plain, **fields})


def calls_of(file, *told, **config):
    """Calls of a run that writes this file, with (test, report or why there is none) of each."""
    calls = pytest_judge.Calls(types.SimpleNamespace(getoption={"assay_report": file}.__getitem__, **config))
    calls.calls += told
    return calls


NAN = float("nan")
TOLD = [("a", said()), ("b", "no table"), ("c", said(verdict="outside", ratio=NAN, ratio_lse=2.0)), ("d", said(ratio=NAN, ratio_lse=NAN)), ("e", said(ratio=0.125))]


def test_a_row_has_what_its_report_has_the_largest_first():
    rows = calls_of("x", *TOLD).rows()
    assert [row["test"] for row in rows] == ["c", "a", "e", "b", "d"]
    assert rows[1] == {
        "test": "a", "verdict": "inside", "ratio": 0.5, "ratio_lse": 0.25, "budget": 0.125, "like": "flash", "judged": 8, "of": 9, "not_inside": 7,
        "unexplained": 0, "order": "", "worst": {"row": 3},
    }  # fmt: skip
    assert rows[3] == {"test": "b", "not_judged": "no table"} and [pytest_judge.largest(row) for row in rows] == [2, 0.5, 0.25, -1, -1]
    assert [pytest_judge.line(row) for row in (rows[0], rows[3])] == ["outside          2 c (like flash, 8 of 9)", "not judged         b: no table"]


@pytest.mark.parametrize("file", ["rows.json", "rows.txt", None])
def test_a_run_ends_with_its_rows(file):
    told, printed = [*TOLD, *(("more", said()) for _ in range(7))], []
    calls = calls_of(file, *told)
    terminal = types.SimpleNamespace(section=printed.append, line=printed.append)
    pytest_judge.finish(types.SimpleNamespace(stash={pytest_judge.KEY: calls}), terminal)
    if file is None:
        assert not printed
        return
    lines = [pytest_judge.line(row) for row in calls.rows()]
    assert printed == ["assay: what the judge says", *lines[:10], f"12 calls, all in {file}; no verdict of a test was changed"]
    text = pathlib.Path(file).read_text()
    assert text == "\n".join(lines) + "\n" if file.endswith("txt") else len(json.loads(text)) == 12 and text.endswith("]\n")


def test_a_number_that_json_lacks_is_null_or_the_largest():
    report = said(ratio_lse=NAN, worst={"row": 3, "got": float("-inf"), "exact": float("inf"), "budget": {"merge": NAN, "flush": 0.5}})
    calls = calls_of("rows.json", ("a", report))
    pytest_judge.finish(types.SimpleNamespace(stash={pytest_judge.KEY: calls}), types.SimpleNamespace(section=print, line=print))
    (row,) = json.loads(pathlib.Path("rows.json").read_text(), parse_constant=pytest.fail)
    assert row["ratio_lse"] is None and row["worst"] == {"row": 3, "got": -sys.float_info.max, "exact": sys.float_info.max, "budget": {"merge": None, "flush": 0.5}}
    assert row["ratio"] == 0.5


def test_the_fixture_fails_a_test_or_takes_a_note(tmp_path):
    library_or_skip()
    call = Call()
    out, lse = call.run()
    told = dict(page_table=call.table, seq_lens=call.lens, qo_indptr=call.cu, lse=lse, like="fa2", hint_seconds=0)
    for config, folder in ((dict(cache=types.SimpleNamespace(mkdir=lambda name: tmp_path / name)), tmp_path / "assay"), ({}, pathlib.Path("findings"))):
        calls = calls_of(None)
        request = types.SimpleNamespace(config=types.SimpleNamespace(stash={pytest_judge.KEY: calls}, **config))
        judge = pytest_judge.assay_judge.__pytest_wrapped__.obj(request)
        assert judge(out, call.q, (call.k, call.v), **told).passed and not folder.exists()
        with pytest.raises(AttentionError):
            judge(np.roll(out, 1, axis=1), call.q, (call.k, call.v), **told)
        assert len(list(folder.iterdir())) == 1 and calls.calls == []
    calls = calls_of("notes.txt")
    request = types.SimpleNamespace(config=types.SimpleNamespace(stash={pytest_judge.KEY: calls}), node=types.SimpleNamespace(nodeid="here"))
    judge = pytest_judge.assay_judge.__pytest_wrapped__.obj(request)
    report = judge(np.roll(out, 1, axis=1), call.q, (call.k, call.v), **told)
    misfits = {"lse_base is 7": dict(lse_base=7), "max_rows is 'all'": dict(max_rows="all"), "window_left is '3'": dict(window_left="3"), "hint_seconds is 'long'": dict(hint_seconds="long")}
    for misfit in misfits.values():
        assert judge(out, call.q, (call.k, call.v), **{**told, **misfit}) is None
    assert judge(out, call.q, 3, **told) is None
    assert report.verdict == "outside" and calls.calls[0] == ("here", report)
    assert len(calls.calls) == 6 and all(words in said for words, (_, said) in zip([*misfits, "kv_cache has shape"], calls.calls[1:]))


def test_a_session_begins_without_calls():
    config = types.SimpleNamespace(stash={}, getoption={"assay_report": None}.__getitem__)
    pytest_judge.configure(config)
    assert config.stash[pytest_judge.KEY].calls == []
