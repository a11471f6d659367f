# SPDX-License-Identifier: Apache-2.0
"""JUnit XML and SARIF of check and gate keep the rules of their formats; the rules refuse what does not."""
import copy
import json

import junit_rules
import pytest
import sarif_rules
from conftest import samples


def test_junit(xml):
    assert junit_rules.violations(xml.read_text()) == []


def test_sarif(sarif):
    assert sarif_rules.violations(json.loads(sarif.read_text())) == []


def test_the_samples_hold_what_they_are_for():
    text = {path.name: path.read_text() for extension in ("xml", "sarif") for path in samples(extension)}
    assert "<failure " in text["check-findings.xml"] and "alert(1)" in text["check-findings.xml"]
    assert '"startLine": 1' in text["check-findings.sarif"]
    places = [result["locations"][0]["physicalLocation"] for run in json.loads(text["check-hazard.sarif"])["runs"]
              for result in run["results"]]
    assert any("kernels/" in place["artifactLocation"]["uri"] and place["region"]["startLine"] > 1 for place in places)
    assert json.loads(text["check-pass.sarif"])["runs"][0]["results"] == []
    states = {result["baselineState"] for run in json.loads(text["gate-hostile.sarif"])["runs"] for result in run["results"]}
    assert states == {"new", "unchanged", "absent"}
    assert "new-finding" in text["gate-blocked.xml"] and "<failure" not in text["gate-pass.xml"]


GOOD_JUNIT = """<?xml version="1.0"?><testsuites name="a" tests="2" failures="1" errors="0" time="0.5">
<testsuite name="k" tests="2" failures="1" errors="0" skipped="0" time="0.500"><testcase name="p" classname="k" time="0"/>
<testcase name="q" classname="k" time="0.5"><failure message="m" type="t">x</failure></testcase></testsuite></testsuites>"""


@pytest.mark.parametrize("old, new, why", [
    ("</testsuites>", "", "no XML"),
    ("testcase name=\"q\"", "testcase name=\"p\"", "are named"),
    ("tests=\"2\" failures=\"1\" errors=\"0\" skipped", "tests=\"3\" failures=\"1\" errors=\"0\" skipped", "says tests=3"),
    ("tests=\"2\" failures=\"1\" errors=\"0\" time", "tests=\"2\" failures=\"2\" errors=\"0\" time", "its suites have 1"),
    ("time=\"0\"", "time=\"1e-3\"", "no seconds"),
    ("classname=\"k\" time=\"0\"", "time=\"0\"", "without classname"),
    ("classname=\"k\" time=\"0\"", "classname=\"k\" colour=\"red\"", "unknown"),
    ("failure message=\"m\" type=\"t\"", "failure message=\"m\"", "without type"),
    ("<failure", "<system-out>o</system-out><failure", "in this order"),
    ("<failure", "<error message=\"m\" type=\"t\">x</error><failure", "2 ways"),
])
def test_junit_rules_refuse(old, new, why):
    assert junit_rules.violations(GOOD_JUNIT) == []
    broken = GOOD_JUNIT.replace(old, new, 1)
    assert broken != GOOD_JUNIT
    assert any(why in line for line in junit_rules.violations(broken)), junit_rules.violations(broken)


def spoil_sarif(path, value):
    """The hostile gate's log with one place changed; None: removed."""
    folder = samples("sarif")
    log = json.loads(next(p for p in folder if p.stem == "gate-hostile").read_text())
    broken = copy.deepcopy(log)
    at = broken["runs"][0]
    for step in path[:-1]:
        at = at[step]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return sarif_rules.violations(broken)


@pytest.mark.parametrize("path, value, why", [
    (["tool"], None, "no tool"),
    (["tool", "driver", "name"], None, "no name"),
    (["tool", "driver", "rules", 0, "id"], "else", "is no rule of the tool"),
    (["tool", "driver", "rules", 0, "title"], "t", "no such property"),
    (["results", 0, "level"], "fatal", "is none of"),
    (["results", 0, "message"], {}, "without text or id"),
    (["results", 0, "message", "text"], 3, "is no str"),
    (["results", 0, "kind"], "pass", "a level of what is no failure"),
    (["results", 0, "baselineState"], None, "all or none"),
    (["results", 0, "locations"], [], "no file"),
    (["results", 0, "locations", 0, "physicalLocation", "artifactLocation", "uri"], "a b", "no URI reference"),
    (["results", 0, "locations", 0, "physicalLocation", "region", "startLine"], 0, "count from 1"),
    (["results", 0, "locations", 0, "physicalLocation", "region"], {}, "begins nowhere"),
    (["results", 0, "partialFingerprints", "assayCause/v1"], 1, "is no str"),
    (["invocations", 0, "executionSuccessful"], None, "no executionSuccessful"),
    (["invocations", 0, "exitCode"], True, "is no int"),
])
def test_sarif_rules_refuse(path, value, why):
    found = spoil_sarif(path, value)
    assert any(why in line for line in found), found
