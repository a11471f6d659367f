# SPDX-License-Identifier: Apache-2.0
"""Who sees the twelve wrong functions: the committed table is what the checkers say."""
import csv
import subprocess
import sys

import callables
import pytest
from conftest import ROOT

torch = pytest.importorskip("torch")
import proposed_check  # noqa: E402
import tolerance_check  # noqa: E402
import who_sees  # noqa: E402

SEEN = {row["name"]: row for row in csv.DictReader(open(ROOT / "corpus/functions/who_sees.csv"))}


def test_the_table_has_the_twelve_and_right_ones_that_nobody_blames():
    assert set(SEEN) == set(who_sees.FUNCTIONS) and len(callables.WRONG) == 12
    right = [row for row in SEEN.values() if who_sees.FUNCTIONS[row["name"]] not in callables.WRONG]
    assert len(right) == 2 and all((row["tolerance"], row["proposal"], row["assay"]) == ("passes", "passes", "pass") for row in right)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", who_sees.FUNCTIONS)
def test_the_proposed_check_sees_what_the_table_says(name):
    assert (", ".join(who_sees.by_proposal(who_sees.FUNCTIONS[name])) or "passes") == SEEN[name]["proposal"]


@pytest.mark.parametrize("name", ["loses_the_last_page", "zeros_for_small_queries", "cached_by_pointer"])
def test_the_tolerance_sees_what_the_table_says(name):
    error, fails = who_sees.by_tolerance(who_sees.FUNCTIONS[name])
    assert SEEN[name]["tolerance"] == (f"fails: {', '.join(fails)}" if fails else "passes")
    assert abs(error - float(SEEN[name]["error"])) <= 0.011


def test_large_scores_of_the_proposal_need_no_more_than_its_reference():
    inputs = tolerance_check.drawn(2, 4, 2, 16, 40, 8)
    assert proposed_check.seen(tolerance_check.reference, tolerance_check.reference, inputs) == []
    assert [name for name, _ in proposed_check.cases(*inputs)] == ["ragged", "last key"]


def test_the_command_names_what_it_does_not_know():
    ran = subprocess.run([sys.executable, "-B", who_sees.__file__, "none"], text=True, capture_output=True)
    assert ran.returncode == 2 and "'none', expected some of plain" in ran.stderr
