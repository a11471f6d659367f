# SPDX-License-Identifier: Apache-2.0
"""Many candidates: every line of a batch gets one result, whatever its neighbours do and however often it is killed."""
import collections
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

import assay
import callables
from assay._callable import table, task
from assay._callable.judges import Judges
from assay._callable.process import Candidate, CandidateError
from waiting import FAR, running, until

HERE = pathlib.Path(__file__).parent
SHAPE = "batch=2,heads=2/1,keys=40,head_dim=16"


def of(name, **more):
    return json.dumps({"target": f"{HERE}/batch_candidates.py:{name}", "shape": SHAPE, **more})


def command(*words):
    return [sys.executable, "-B", "-m", "assay", "judge-callable", "--batch", "in.jsonl", "--jobs", "2", "--call-seconds", "3", "--gigabytes", "1", *words]  # fmt: skip


def batch(lines, *words):
    pathlib.Path("in.jsonl").write_text("".join(line + "\n" for line in lines))
    return subprocess.run(command(*words), text=True, capture_output=True)


def results(path="out.jsonl"):
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]


def test_every_line_gets_its_verdict_beside_those_that_go_too_far():
    lines = [
        of("plain", id="right", seed=1), of("loses_the_last_key", id="<b>wrong</b>"), of("runs_forever"), of("ends_by_a_signal", id=9),
        of("takes_all_memory"), of("plain", id="right again", keep_going=True), of("none"), "no JSON", "", of("plain", id="right"),
        of("plain", seeds=1), of("raises_html", id="text"),
    ]  # fmt: skip
    ran = batch(lines, "--json", "out.jsonl", "--html", "out.html")
    said = {result["line"]: result for result in results()}
    assert ran.returncode == 1 and sorted(said) == [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12] and len(results()) == 11, ran.stderr
    verdicts = {"right": "pass", "<b>wrong</b>": "finding", 3: "finding", 9: "finding", 5: "finding", "right again": "pass", 7: "error", 8: "error",
                10: "error", 11: "error", "text": "finding"}  # fmt: skip
    assert {result.get("id", line): result["verdict"] for line, result in said.items()} == verdicts
    assert said[1]["seed"] == 1 and said[1]["arithmetic"] == "fp32" and "id" not in said[10]
    causes = [said[7], said[8], said[10], said[11]]
    for result, words in zip(causes, ("has no none", "no JSON", "id: that of line 1", "seeds: no field, expected target, shape")):
        assert words in result["cause"] and result["whose"] == "line"
    assert "11 of 11, findings 5;" in ran.stderr
    text = pathlib.Path("out.html").read_text()
    assert text.count("<tr class=") == 11 and "<script" not in text and "&lt;script&gt;" in text and "&lt;b&gt;wrong" in text
    again = batch(lines, "--json", "out.jsonl")
    assert again.returncode == 1 and len(results()) == 11 and "11 of 11 were there" in again.stderr


@pytest.mark.parametrize("lines, code", [
    ([of("plain")], 0), ([of("plain"), "{}"], 2), (["[]"], 2), (["", " "], 2), ([of("loses_the_last_key"), "{}"], 1),
])  # fmt: skip
def test_the_exit_code_is_that_of_the_worst_verdict(lines, code):
    ran = batch(lines)
    assert ran.returncode == code and len(ran.stdout.splitlines()) == len(list(filter(str.strip, lines))), ran.stderr


def test_a_batch_that_is_killed_goes_on_with_every_line_once_and_leaves_nothing_running(tmp_path):
    for path in (HERE / "batch_candidates.py", pathlib.Path(callables.__file__)):
        (tmp_path / path.name).write_text(path.read_text())
    names = ["loses_the_last_key", "ends_by_a_signal", "loses_the_last_key", "leaves_a_mark_and_runs_forever", "plain", "loses_the_last_key"]
    lines = [json.dumps({"target": f"{tmp_path}/batch_candidates.py:{name}", "shape": SHAPE, "id": at}) for at, name in enumerate(names)]
    pathlib.Path("in.jsonl").write_text("\n".join(lines))
    out = tmp_path / "out.jsonl"
    process = subprocess.Popen(command("--json", "out.jsonl", "--call-seconds", str(2 * FAR)), stderr=subprocess.DEVNULL)
    until(lambda: out.exists() and out.read_bytes().count(b"\n") >= 3 and (tmp_path / "batch_candidates.mark").exists())
    process.kill()
    process.wait()
    until(lambda: not running(str(tmp_path)))
    whole = out.read_bytes()
    for torn in (whole[:-40], whole + b'{"line": 1', whole + b"{"):
        out.write_bytes(torn)
        ran = subprocess.run(command("--json", "out.jsonl"), text=True, capture_output=True)
        assert ran.returncode == 1, ran.stderr
        expected = [(at, "pass" if name == "plain" else "finding") for at, name in enumerate(names)]
        assert sorted((result["id"], result["verdict"]) for result in results()) == expected


def test_a_file_that_is_none_of_this_batch_stays_as_it_is():
    assert batch([of("raises_html")], "--json", "out.jsonl").returncode == 1
    whole = json.dumps(results()[0]) + "\n"
    for text, said in (("a note", "line 1 is no"), ("{}\n", "line 1 is no"), (whole + "x", "line 2 is no"), (whole + whole, "line 2 is there twice")):
        pathlib.Path("other.jsonl").write_text(text)
        ran = batch([of("raises_html")], "--json", "other.jsonl")
        assert (ran.returncode, pathlib.Path("other.jsonl").read_text()) == (2, text) and said in ran.stderr
    ran = batch([of("plain")], "--json", "out.jsonl")
    assert ran.returncode == 2 and "is not that of line 1" in ran.stderr


def test_a_candidate_that_writes_the_results_is_seen(tmp_path):
    (tmp_path / "own.py").write_text(f"def f(q):\n    open({str(tmp_path / 'out.jsonl')!r}, 'a').write('{{}}')\n    return q\n")
    ran = batch([json.dumps({"target": "own.py:f", "shape": SHAPE})], "--json", "out.jsonl")
    assert ran.returncode == 4 and "changed by something else" in ran.stderr


@pytest.mark.parametrize("kills, verdict", [(1, "finding"), (2, "error")])
def test_a_judge_that_ends_loses_no_verdict_of_others(kills, verdict):
    judges = Judges(2, assay.Limits(call_seconds=3))
    try:
        right = judges.submit(json.loads(of("plain")))
        until(lambda: len(judges._all) == 1)
        of_right = set(judges._all)
        forever = judges.submit(json.loads(of("runs_forever")))
        for _ in range(kills):
            until(lambda: judges._all - of_right)
            ended = next(iter(judges._all - of_right))
            os.kill(ended.process.pid, signal.SIGSEGV)
            until(lambda: ended not in judges._all)
        assert (right.result(FAR)["verdict"], forever.result(FAR)["verdict"]) == ("pass", verdict)
        assert verdict != "error" or forever.result() == {"verdict": "error", "whose": "judge", "cause": "the judge's process ended: SIGSEGV"}
        assert judges.submit(json.loads(of("loses_the_last_key"))).result(FAR)["verdict"] == "finding"
    finally:
        judges.close()


@pytest.mark.parametrize("name, said", [
    ("closes_its_channel_and_stays", "ended in a call|a call took more than 3 s"), ("says_the_half_of_a_message", "a call took more than 3 s"),
    ("says_a_message_of_a_terabyte", "an answer of 1099511627784 bytes in a call, expected at most 1048576"),
])  # fmt: skip
def test_a_candidate_cannot_hold_up_its_judge(name, said):
    with Candidate(f"{HERE}/batch_candidates.py:{name}", limits=assay.Limits(call_seconds=3)) as candidate:
        with pytest.raises(CandidateError, match=said):
            candidate.call(assay.inputs(SHAPE, seed=1))


def test_a_candidate_that_ends_between_calls_is_a_finding():
    with Candidate(f"{HERE}/batch_candidates.py:ends_after_its_answer") as candidate:
        candidate.call(assay.inputs(SHAPE, seed=1))
        candidate.process.wait()
        with pytest.raises(CandidateError, match="ended before a call"):
            candidate.call(assay.inputs(SHAPE, seed=1))


@pytest.mark.parametrize("text, field, said", [
    (b"\xff", "", "no JSON"), (b"[" * 100000, "", "no JSON"), (b'{"a": NaN}', "", "NaN is no number"),
    (b'{"seed": 1, "seed": 2}', "", "'seed' is there twice"),
    (b"3", "", "a JSON int, expected an object"), (b" " * (task.MOST_BYTES + 1), "", "more than 1048576 bytes"), (b"{}", "target", "missing"),
    (b'{"target": 3}', "target", "3, expected a text"), (b'{"target": "f.py"}', "target", "expected FILE.py:NAME"),
    (b'{"target": "-h:a"}', "target", "expected FILE.py:NAME"), (b'{"target": "f.py:\\u0000"}', "target", "cannot be printed"),
    (b'{"target": "\\ud800.py:f"}', "target", "cannot be printed"),
    (b'{"target": "f:g", "shape": "batch=x"}', "shape", "expected a whole number"),
    (b'{"target": "f:g", "like": "fa9"}', "like", "expected one of"), (b'{"target": "f:g", "like": []}', "like", "expected one of"),
    (b'{"target": "f:g", "assume": "full_lengths"}', "assume", "expected a list"),
    (b'{"target": "f:g", "assume": [{}]}', "assume", "expected one of"),
    (b'{"target": "f:g", "seed": -1}', "seed", "a whole number from 0"), (b'{"target": "f:g", "seed": true}', "seed", "a whole number from 0"),
    (b'{"target": "f:g", "deterministic": 1}', "deterministic", "expected one of True, False"),
    (b'{"target": "f:g", "device": "tpu"}', "device", "'tpu', expected"),
    (b'{"target": "f:g", "id": 1.5}', "id", "expected a text or a whole number"), (b'{"target": "f:g", "id": 1e400}', "id", "expected a text"),
    (b'{"target": "f:g", "x": 1}', "x", "no field, expected target"), (b'{"target": "f:g", "lse_base": "2"}', "lse_base", "expected one of e, 2"),
])  # fmt: skip
def test_an_object_that_does_not_fit_is_refused_by_its_field(text, field, said):
    with pytest.raises(task.FieldError, match=said) as error:
        task.arguments(task.parsed(text))
    assert error.value.field == field and str(error.value).startswith("assay: ") and len(str(error.value)) < 500


def test_a_table_takes_whatever_a_file_of_results_holds():
    odd = [None, [], {}, "<", "\ud800\u202e", [3], [{"verdict": "finding", "cause": "<i>"}]]
    pairs = enumerate(itertools.product(odd, odd))
    rows = [{"line": n, "verdict": "finding", "of": "", "stages": stages, "target": target, "id": target} for n, (stages, target) in pairs]
    made = table.table(rows)
    made.encode()
    assert collections.Counter(c for c in made if c in "<>")["<"] == made.count(">") and "<i>" not in made and "\u202e" not in made
