# SPDX-License-Identifier: Apache-2.0
"""What a check found, in words: findings of a report, and what is raised of them."""
import pytest
from assay import result


def test_a_finding_in_words():
    found = result.Finding("k", "p", "is off", detail="1\n2\n3\n4", case="rows = 1\n", file="f", reproduce="assay replay f", failing_cases=2, cases=9, also_seen_by=("q", "r"))
    assert str(found).splitlines() == [
        "k p: is off", "1", "2", "3", "(1 lines more in detail)", "2 of 9 cases fail; the smallest:", "rows = 1", "also seen by: q, r", "reproduce: assay replay f"
    ]  # fmt: skip
    assert str(result.Finding("k", "p", "is off")) == "k p: is off"


def reported(groups=(), found=(), replayed=()):
    return {"groups": list(groups), "found": list(found), "replayed": {"results": list(replayed)}, "cases": 7}


def test_findings_of_a_report():
    """One for each group, by its sharpest property, and one for each kept file that fails and is no group's."""
    found = [{"kernel": "k", "property": p, "message": f"{p} fails", "cases": 5, "new": 1} for p in ("a", "b", "c")]
    kept = [dict(kernel="k", property="d", message=m, file=f"{m}.case", verdict=v, **more) for m, v, more in (("x", "FAIL", {}), ("y", "pass", {}), ("z", "FAIL", {"same_as": "x.case"}))]
    made = result.Result(1, reported([{"found": 1, "properties": ["a", "b"]}, {"found": 2, "properties": ["c"]}], found, kept), "text")
    assert [(f.property, f.message, f.also_seen_by, f.file, f.cases) for f in made.findings] == [
        ("b", "b fails", ("a",), "", 5), ("c", "c fails", (), "", 5), ("d", "x", (), "x.case", 1)
    ]  # fmt: skip
    with pytest.raises(result.FindingsError) as raised:
        made.raise_for_findings()
    assert str(raised.value) == "\n\n".join(map(str, made.findings)) and repr(made) == "<assay.Result: FAIL, 7 cases, 3 findings>"


@pytest.mark.parametrize("code, error", [(0, None), (1, result.FindingsError), (4, result.UnprovenError)])
def test_a_result_without_findings(code, error):
    made = result.Result(code, reported(), "said")
    assert made.cases == 7 and made.passed == (code == 0) and repr(made).startswith(f"<assay.Result: {'pass' if code == 0 else 'FAIL'}, 7 cases, 0 ")
    if error is None:
        assert made.raise_for_findings() is made
    else:
        with pytest.raises(error, match="said" if code == 4 else "^$"):
            made.raise_for_findings()
