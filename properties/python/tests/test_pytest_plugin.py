# SPDX-License-Identifier: Apache-2.0
"""A user's test file: one test per property, with the smallest case in the failure."""
import pytest
from conftest import HERE

FILE = f"""
import sys
sys.path += [{str(HERE)!r}, {str(HERE.parent / "examples")!r}]
import assay
from right_kernels import MERGE, merge_pair

@assay.kernel(family="merge_state", declaration=MERGE, cases=1, determinism="run_to_run")
def test_right(case):
    merge_pair(case)

@assay.kernel(family="merge_state", declaration=MERGE, cases=1)
def test_wrong(case):
    merge_pair(case)
    if case.num_heads > 1:
        case.o[:, -1] = case.o[:, 0]

@assay.kernel(family="merge_state", declaration=MERGE, cases=1)
def test_not_in_place(case):
    if case.o.ctypes.data in (case.o_a.ctypes.data, case.o_b.ctypes.data):
        raise assay.Unsupported("not in place")
    if case.dtype != "bf16":
        raise assay.Unsupported("bf16 only")
    merge_pair(case)

@assay.kernel(family="merge_state", declaration=MERGE)
def helper(case):
    raise AssertionError("not a test")

@assay.kernel(family="merge_state", declaration=assay.Declaration(mma_block=-1))
def test_refused(case):
    merge_pair(case)

def test_plain():
    pass
"""


@pytest.fixture
def ran(pytester):
    pytester.makepyfile(test_user=FILE)

    def run(*arguments):
        return pytester.runpytest_subprocess("-p", "assay.pytest_plugin", "-v", *arguments)

    return run


def test_each_property_is_a_test(ran):
    result = ran("-k", "right or plain")
    assert result.ret == 0
    for name in ("within_budget", "merge_in_place", "run_to_run", "merge_identity"):
        result.stdout.fnmatch_lines([f"*::test_right?{name}? PASSED*"])
    result.stdout.no_fnmatch_line("*constant_v*")  # of attention
    result.stdout.no_fnmatch_line("*algebra_exact*")  # of exact numbers
    result.stdout.no_fnmatch_line("*helper*")
    result.stdout.fnmatch_lines(["*::test_plain PASSED*"])


def test_a_failure_shows_the_smallest_case(ran):
    result = ran("-k", "wrong")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*::test_wrong?within_budget? FAILED*", "*::test_wrong?merge_in_place? PASSED*"])
    result.stdout.fnmatch_lines(
        ["test_wrong within_budget: row 0 head 1 *", "* cases fail; the smallest:", "rows = 1", "heads = 2", "reproduce: *"]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_property_without_a_case_is_no_pass(ran):
    result = ran("-k", "not_in_place and (merge_in_place or within_budget)", "-rs")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*no case of merge_in_place that the kernel takes: unsupported: not in place"])


def test_one_property_is_run_alone(ran, pytester):
    result = ran("-k", "right and merge_identity", "--assay-cases", "3", "--assay-seed", "5")
    result.assert_outcomes(passed=1)


def test_a_refused_declaration_fails_every_test_of_its_kernel(ran):
    result = ran("-k", "refused and (within_budget or merge_identity)")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*arithmetic.mma_block is -1, expected 0 .. 1024"])


def test_findings_are_kept_in_the_cache_and_tried_first(ran, pytester):
    ran("-k", "wrong and within_budget")
    kept = list(pytester.path.glob(".pytest_cache/d/assay/test_wrong-within_budget-*.case"))
    assert len(kept) == 1
    result = ran("-k", "wrong and within_budget")
    result.stdout.fnmatch_lines(["*test_wrong within_budget: row 0 head 1 *"])
    assert not (pytester.path / "findings").exists()

