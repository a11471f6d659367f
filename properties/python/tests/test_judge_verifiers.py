# SPDX-License-Identifier: Apache-2.0
"""Rewards of an environment of the package `verifiers`, here a stub with that part of its protocol which is used."""
import asyncio
import concurrent.futures
import inspect
import sys
import types

import pytest
from conftest import HERE

sys.path.append(str(HERE.parent / "adapters"))
import verifiers_decode

RIGHT = '''
import numpy as np

def attention(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    k_cache, v_cache, values = ((x.astype(np.uint32) << 16).view(np.float32) for x in (k_cache, v_cache, q))
    out, group = np.zeros(q.shape, np.float32), q.shape[1] // k_cache.shape[2]
    for r, length in enumerate(seq_lens):
        k, v = (c[page_table[r]].reshape(-1, *c.shape[2:])[:length].repeat(group, 1) for c in (k_cache, v_cache))
        if length:
            scores = np.einsum("hd,nhd->hn", values[r], k) * np.float32(sm_scale)
            weights = np.exp(scores - scores.max(1, keepdims=True))
            out[r] = np.einsum("hn,nhd->hd", weights / weights.sum(1, keepdims=True), v)
    return out
'''
SHAPE = "batch=2,heads=2/1,keys=40,head_dim=16"


class Parser:
    def __init__(self, extract_fn):
        self.extract_fn = extract_fn

    def parse_answer(self, completion):
        said = [message["content"] for message in completion if message["role"] == "assistant"]
        return self.extract_fn(said[-1]) if said else None


class Rubric:
    def __init__(self, funcs, weights, parser):
        self.funcs, self.weights, self.parser = funcs, weights, parser

    async def score_rollout(self, state):
        """As the package does: each function in order, with the arguments that it names; an error is a reward of 0."""
        given = {"completion": state["completion"], "state": state, "parser": self.parser, "prompt": state["prompt"], "answer": ""}
        scores = []
        for function in self.funcs:
            try:
                said = function(**{name: given[name] for name in inspect.signature(function).parameters})
                scores.append(float(await said if inspect.isawaitable(said) else said))
            except Exception:
                scores.append(0.0)
        state["metrics"] = {function.__name__: score for function, score in zip(self.funcs, scores)}
        state["reward"] = sum(weight * score for weight, score in zip(self.weights, scores))


@pytest.fixture
def environment(monkeypatch):
    stub = types.SimpleNamespace(Parser=Parser, Rubric=Rubric, SingleTurnEnv=lambda **given: types.SimpleNamespace(**given))
    monkeypatch.setitem(sys.modules, "verifiers", stub)
    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(Dataset=types.SimpleNamespace(from_list=list)))
    return lambda *given, **named: verifiers_decode.load_environment(*given, **named)


def rewarded(environment, *answers):
    """(reward, passed, verdict) of a rollout for each answer."""
    made = environment(SHAPE, seed=1)
    states = [{"prompt": [], "completion": [{"role": "assistant", "content": answer}]} for answer in answers]
    for state in states:
        asyncio.run(made.rubric.score_rollout(state))
    return [(state["reward"], state["metrics"]["passed"], state.get("assay", {}).get("verdict")) for state in states]


def test_a_right_answer_is_rewarded_and_a_wrong_one_is_not(environment):
    assert rewarded(
        environment, f"First ```python\nattention = 1\n``` and then:\n```python{RIGHT}```\nDone.", f"```python{RIGHT.replace('[:length]', '[: length - 1]')}```",
        "I cannot.", "```python\nattention = 3\n```", "```python\nimport os\nos._exit(0)\n```",
    ) == [(1, 1, "pass"), (0, 0, "finding"), (0, 0, "error"), (0, 0, "error"), (0, 0, "finding")]  # fmt: skip


def test_the_prompt_says_the_shape_and_what_does_not_fit_is_refused(environment):
    question = environment("batch=2,heads=8/2,head_dim=64,page_size=32").dataset[0]["question"]
    assert "q is [batch, 8, 64], the caches are [pages, 32, 2, 64], all bf16" in question
    refused = ((SHAPE + ",page_size=0", {}, "page_size 0, expected 1 and at least 1"), ("heads=3/2", {}, "expected a multiple"), (SHAPE, {"likes": 1}, "likes: no field"))
    for shape, named, said in refused:
        with pytest.raises(ValueError, match=f"assay: .*{said}"):
            environment(shape, **named)


def test_a_judge_that_ends_is_no_verdict():
    class Ended:
        def submit(self, _):
            future = concurrent.futures.Future()
            future.set_result({"verdict": "error", "whose": "judge", "cause": "the judge's process ended: SIGKILL"})
            return future

    score, passed = verifiers_decode.rewards(Ended(), {})
    with pytest.raises(RuntimeError, match="SIGKILL"):
        asyncio.run(score([], Parser(verifiers_decode.code_of), state := {}))
    assert passed(state) == 0


class _Generic:
    def __init__(self, *given, **named):
        self.given, self.__dict__ = given, {**named, "given": given}

    def __class_getitem__(cls, _):
        return cls


def test_a_taskset_of_version_1_has_the_same_reward(monkeypatch):
    names = dict.fromkeys(("TasksetConfig", "TaskData", "Task", "Taskset"), _Generic)
    stub = types.SimpleNamespace(**{name: type(name, (kind,), {}) for name, kind in names.items()}, reward=lambda function: function, Trace=None, Runtime=None)
    monkeypatch.setitem(sys.modules, "verifiers", types.SimpleNamespace(v1=stub))
    monkeypatch.setitem(sys.modules, "verifiers.v1", stub)
    import verifiers_decode_v1

    taskset = verifiers_decode_v1.DecodeTaskset()
    taskset.config = types.SimpleNamespace(shape=SHAPE, fields={"seed": 1}, task=None)
    (task,) = taskset.load()
    task.data, _ = task.given
    assert "[pages, 16, 1, 16]" in task.data.prompt
    for answer, reward in ((f"```python{RIGHT}```", 1), ("no", 0)):
        assert asyncio.run(task.score(types.SimpleNamespace(last_reply=answer))) == reward
