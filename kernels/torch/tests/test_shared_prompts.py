# SPDX-License-Identifier: Apache-2.0
"""The example that serves requests with one prompt in common, at a small size: every kind of attention writes eager's tokens."""
import json
import pathlib
import sys

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
pytest.importorskip("transformers", minversion="5.0")
pytest.importorskip("transformers.generation.continuous_batching")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples"))
import shared_prompts

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def test_every_kind_of_attention(tmp_path, monkeypatch):
    result = tmp_path / "result.json"
    monkeypatch.setattr(sys, "argv", ["shared_prompts.py", "--tiny", "--json", str(result), "--commit", "0123456"])
    shared_prompts.main()
    cells = json.loads(result.read_text())["cells"]
    assert [cell["cell"].split()[0] for cell in cells] == ["flat", "trees", "sdpa", "eager"]
    for cell in cells:
        assert cell["tokens"] == shared_prompts.TINY["requests"] * shared_prompts.TINY["new"] and cell["step_us"] > 0
        assert cell["others"] <= 2 and cell["largest_gap"] <= 2, cell  # two fp16 steps: a tie
    assert [list(cell["same_as"]) for cell in cells] == [[], ["flat"], ["flat", "trees"], ["flat", "trees", "sdpa"]]
    assert all(0 < same["tokens"] <= cell["tokens"] for cell in cells for same in cell["same_as"].values())


def test_other_tokens_are_counted():
    s = shared_prompts.TINY
    model, prompts = shared_prompts.model_of(s, DEVICE), shared_prompts.prompts_of(s)
    others, largest = shared_prompts.others_than_eager(model, prompts, [[7] * s["new"]] * s["requests"])
    assert others >= s["requests"] * s["new"] - 2 and largest > 2


def test_same_tokens_are_counted():
    assert shared_prompts.same([[1, 2], [3, 4], [5, 6]], [[1, 2], [3, 7], [5]]) == {"requests": 1, "tokens": 4}
