# SPDX-License-Identifier: Apache-2.0
"""A user's suite with the fixture assay_judge: it fails what is wrong, and with --assay-report only takes notes."""
import json
import pathlib

import pytest
from conftest import HERE
from test_judge import library_or_skip

FILE = f"""
import sys
sys.path += [{str(HERE)!r}]
import numpy as np
import pytest
from assay import from_float32
from test_judge import Call

def judged(assay_judge, out, lse, call, **options):
    return assay_judge(out, call.q, (call.k, call.v), page_table=call.table, seq_lens=call.lens, cu_seqlens_q=call.cu, lse=lse,
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
