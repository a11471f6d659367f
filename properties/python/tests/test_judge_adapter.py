# SPDX-License-Identifier: Apache-2.0
"""Classes that a benchmark asks for, judged through an adapter."""
import json
import pathlib
import subprocess
import sys

import callables
import pytest
from conftest import HERE

import assay

SHAPE = "batch=3,heads=4/2,keys=150,head_dim=32"
PACKED = str(HERE.parent / "adapters/packed_model.py:attention")


def classes():
    """Two solutions of NumPy, and adapters for them."""
    pathlib.Path("solutions.py").write_text(
        f"import sys; sys.path.append({str(pathlib.Path(callables.__file__).parent)!r})\nimport callables\n"
        "class Right:\n    forward = staticmethod(callables.plain)\nclass Wrong:\n    forward = staticmethod(callables.loses_the_last_key)\n")
    pathlib.Path("adapters.py").write_text("def made(model):\n    return model().forward\ndef nothing(model):\n    return 3\n")


def test_a_class_is_judged_through_its_adapter():
    classes()
    assert assay.judge_callable("solutions.py:Right", SHAPE, adapter="adapters.py:made", seed=1).passed
    assert "key 149 did not count" in str(assay.judge_callable("solutions.py:Wrong", SHAPE, adapter="adapters.py:made", seed=1))
    with pytest.raises(ValueError, match="adapters.py:nothing gave a int, expected a function"):
        assay.judge_callable("solutions.py:Right", SHAPE, adapter="adapters.py:nothing")
    with pytest.raises(ValueError, match="adapters.py has no other"):
        assay.judge_callable("solutions.py:Right", SHAPE, adapter="adapters.py:other")


def test_a_batch_has_an_adapter_for_every_line():
    classes()
    lines = [{"target": "solutions.py:Right", "id": "right"}, {"target": "solutions.py:Wrong", "id": "wrong"}, {"target": "solutions.py:Right", "adapter": "made"}]
    pathlib.Path("in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = [sys.executable, "-B", "-m", "assay", "judge-callable", "--batch", "in.jsonl", "--adapter", "adapters.py:made", "--shape", SHAPE, "--seed", "1"]
    ran = subprocess.run(command, text=True, capture_output=True)
    said = {result["line"]: result for result in map(json.loads, ran.stdout.splitlines())}
    assert [said[line]["verdict"] for line in (1, 2, 3)] == ["pass", "finding", "error"], ran.stderr
    assert said[3]["cause"] == "assay: adapter: 'made', expected FILE.py:NAME or MODULE:NAME"


def packed(name):
    return assay.judge_callable(f"{HERE}/packed_solutions.py:{name}", SHAPE, adapter=PACKED, seed=1, device="cpu")


def test_models_with_a_packed_cache_pass_where_they_are_right_alone():
    pytest.importorskip("torch")
    import packed_solutions

    assert packed("Model").passed
    with pytest.raises(ValueError, match=r"OfAnotherProblem is no paged attention: it takes \(in_features, out_features\)"):
        packed("OfAnotherProblem")
    verdicts = {wrong.__name__: packed(wrong.__name__) for wrong in packed_solutions.WRONG}
    assert {name: verdict.verdict for name, verdict in verdicts.items()} == dict.fromkeys(verdicts, "finding")
