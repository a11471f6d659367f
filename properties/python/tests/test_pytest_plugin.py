# SPDX-License-Identifier: Apache-2.0
"""A user's test file: one test per property, with the smallest case in the failure."""
import types

import pytest
from assay import declaration, program, pytest_plugin, result, spec
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
        case.out[:, -1] = case.out[:, 0]

@assay.kernel(family="merge_state", declaration=MERGE, cases=1)
def test_not_in_place(case):
    if case.out.ctypes.data in (case.o_a.ctypes.data, case.o_b.ctypes.data):
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


def made(family="paged", nan_contract="none", determinism="none", cases=None, budget=None, **declared):
    """A run of a kernel that declares so."""
    of = spec.Spec(family, declaration.Declaration(**declared), "k", determinism, nan_contract=nan_contract, cases=cases, budget=budget)
    return pytest_plugin.KernelRun(made, of)


@pytest.mark.parametrize("need, fields", [
    ("exact numbers", None), ("a declared order", None), ("splits", dict(max_splits=2)), ("declared determinism", dict(determinism="run_to_run")),
    ("declared NaN", dict(nan_contract="all")), ("exact weights", dict(exponential="base2")), ("anything else", {}),
])  # fmt: skip
def test_a_property_is_a_test_of_kernels_that_have_what_it_needs(need, fields):
    says = lambda families, needs, **fields: pytest_plugin.says_something({"families": families, "needs": needs}, made(**fields).spec)  # noqa: E731
    assert says(["paged"], [], **(fields or {}))
    assert says(["paged"], [need], **(fields or {})) == (fields is not None) and says(["paged"], [need]) == (fields == {})
    assert not says(["paged"], [need, "exact numbers"], **(fields or {})) and not says(["cascade"], [], **(fields or {}))
    assert not says(["paged"], ["splits"], max_splits=1)
    for family in ("paged_v1", "paged_v2"):
        assert says(["paged"], [], family=family) and not says(["merge_state"], [], family=family)


def session(*items, cache=True, **options):
    given = {"assay_cases": None, "assay_budget": None, "assay_seed": 1, **options}
    folder = types.SimpleNamespace(mkdir=lambda name: f"cache/{name}")
    return types.SimpleNamespace(items=items, config=types.SimpleNamespace(getoption=given.__getitem__, **({"cache": folder} if cache else {})))


def item(run, prop):
    """A test of a property, without a collector."""
    one = object.__new__(pytest_plugin.PropertyItem)
    one.run, one.prop, one.name = run, prop, f"k[{prop}]"
    return one


@pytest.mark.parametrize("own, options, cases, budget", [
    ({}, {}, 10, None), (dict(cases=3), {}, 3, None), (dict(budget="9s"), {}, None, "9s"), (dict(cases=3), dict(assay_cases=5), 5, None),
    (dict(budget="9s"), dict(assay_cases=5), 5, None), (dict(cases=3), dict(assay_budget="7s"), None, "7s"),
])  # fmt: skip
def test_the_command_line_counts_more_than_the_kernel(own, options, cases, budget):
    run, other = made(**own), made()
    arguments = run._arguments(session(item(run, "a"), item(other, "b"), object(), **options))
    assert arguments == {"cases": cases, "budget": budget, "seed": 1, "property": "a", "out": "cache/assay"}
    several = run._arguments(session(item(run, "a"), item(run, "b"), cache=False, assay_seed=8, **options))
    assert (several["property"], several["out"], several["seed"]) == (None, None, 8)


def test_a_kernel_is_checked_once(monkeypatch):
    seen = []
    monkeypatch.setattr(pytest_plugin.checking, "check", lambda function, **arguments: seen.append((function, arguments["cases"])) or "result")
    run = made(cases=2)
    assert [run.finish(session()) for _ in range(2)] == ["result"] * 2 and seen == [(made, 2)]
    monkeypatch.setattr(pytest_plugin.checking, "check", lambda function, **arguments: seen.append(1) or 1 / 0)
    run = made()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            run.finish(session())
    assert seen[1:] == [1]


PROVEN = dict(property="a", error="", hollow=False, undecided=0, missing=[], cases=4, discarded=3, last_discard="too wide")


@pytest.mark.parametrize("changed, words", [
    ({}, ""), (dict(error="lost"), "lost"), (dict(hollow=True), "no case was decided (3 discarded; too wide)"), (dict(undecided=2), "2 cases are undecided"),
    (dict(missing=["x", "y"]), "fewer than two cases of class x, y"), (dict(error="lost", hollow=True, undecided=1), "lost"),
])  # fmt: skip
def test_why_a_property_is_not_proven(changed, words):
    assert pytest_plugin.why_unproven({**PROVEN, **changed}) == words


class Unjudged(Exception):
    """pytest.skip in a test of a test."""


@pytest.mark.parametrize("code, runs, found, error, words", [
    (0, [{}], [], None, ""), (1, [{}], ["b"], None, ""), (1, [{}], ["a", "b"], result.FindingsError, "k a: off"), (0, [], [], Unjudged, "a says nothing about"),
    (4, [dict(undecided=2)], [], result.UnprovenError, "a: 2 cases are undecided"), (0, [dict(cases=0)], [], Unjudged, "no case of a that the kernel takes: too wide"),
    (4, [{}], [], result.UnprovenError, "the text"), (4, [{}, dict(property="b", undecided=1)], [], None, ""),
    (0, [dict(property="b", undecided=1)], [], Unjudged, "a says nothing about"),
])  # fmt: skip
def test_each_test_shows_its_part_of_the_run(monkeypatch, code, runs, found, error, words):
    report = {"groups": [], "found": [], "replayed": {"results": []}, "cases": 1, "runs": [{**PROVEN, **run} for run in runs]}
    run = made()
    run.result = result.Result(code, report, "the text")
    run.result.findings = [result.Finding("k", name, "off") for name in found]
    monkeypatch.setattr(pytest_plugin.pytest, "skip", lambda reason: (_ for _ in ()).throw(Unjudged(reason)))
    one = item(run, "a")
    one.session = None
    if error is None:
        one.runtest()
        return
    with pytest.raises(error, match=words) as raised:
        one.runtest()
    if error is not Unjudged:
        assert one.repr_failure(raised) == str(raised.value)
    file, line, name = one.reportinfo()
    assert file == __file__ and name == "k[a]" and open(file).read().splitlines()[line].startswith("def made(")


@pytest.mark.parametrize("error", [result.FindingsError("a\nb"), result.UnprovenError("a\nb"), program.ProgramError("a\nb", 2), program.NoProgramError("a\nb")])
def test_what_the_program_says_is_shown_without_where_it_was_raised(error):
    item = object.__new__(pytest_plugin.PropertyItem)
    assert pytest_plugin.PropertyItem.repr_failure(item, types.SimpleNamespace(value=error)) == "a\nb"
