# SPDX-License-Identifier: Apache-2.0
"""An environment for the package `verifiers`: a model writes decode attention, and the reward is the score that assay's judge gives.

vf.load_environment("verifiers-decode", shape="batch=8,heads=32/8,head_dim=128,keys=1024") with this folder on the path of Python, up to
version 0.3; verifiers_decode_v1.py is the same for `verifiers.v1`. Every function runs in a process of its own with the limits of `assay
judge-callable`; the reward is 0 unless it is right."""
import asyncio
import pathlib
import re
import tempfile

from assay._callable import task
from assay._callable.judges import ERROR, Judges
from assay._callable.process import Limits
from assay._callable.shape import Shape

PROMPT = """Write a Python function attention(q, k_cache, v_cache, page_table, seq_lens, sm_scale) of torch tensors that returns the output of
decode attention. q is [batch, {num_qo_heads}, {head_dim}], the caches are [pages, {page_size}, {num_kv_heads}, {head_dim}], all {dtype};
page_table [batch, columns] and seq_lens [batch] are int32. Request r attends to the first seq_lens[r] keys of its pages; without a key its
output is 0. Answer with one block of code."""
_BLOCK = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)```", re.DOTALL)


def code_of(text):
    """The last block of code of an answer, or "" where it has none."""
    return (_BLOCK.findall(text or "") or [""])[-1]


def prompt(shape):
    """What a model is asked. ValueError for a shape that it is not asked for."""
    shape = Shape.parse(shape)
    if shape.q_len != 1 or not shape.page_size:
        raise ValueError(f"assay: shape: q_len is {shape.q_len} and page_size {shape.page_size}, expected 1 and at least 1")
    return PROMPT.format(**vars(shape))


async def judged(judges, code, asked):
    """The verdict's JSON on a text of code. RuntimeError where the judge ended."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "answer.py"
        path.write_text(code or "", encoding="utf-8", errors="replace")
        said = await asyncio.wrap_future(judges.submit(task.arguments({"target": f"{path}:attention", **asked})))
    if said["verdict"] == ERROR and said["whose"] == "judge":
        raise RuntimeError(said["cause"])
    return said


def rewards(judges, asked):
    """(the reward, whether it passed): functions of verifiers. The second says what the first found out."""

    async def score(completion, parser, state):
        state["assay"] = await judged(judges, parser.parse_answer(completion), asked)
        return state["assay"].get("score", 0.0)

    def passed(state):
        return float(state.get("assay", {}).get("verdict") == "pass")

    return score, passed


def load_environment(shape="", jobs=1, load_seconds=120.0, call_seconds=20.0, gigabytes=8.0, **asked):
    """The environment. `shape` and what else `asked` has (like, assume, device, ...) are fields of a line of `judge-callable --batch`."""
    import verifiers
    from datasets import Dataset

    question, asked = prompt(shape), {"shape": shape, **asked}
    task.arguments({"target": "answer.py:attention", **asked})  # a wrong field is said before a model is asked
    judges = Judges(jobs, Limits(load_seconds, call_seconds, gigabytes))
    score, passed = rewards(judges, asked)
    rubric = verifiers.Rubric(funcs=[score, passed], weights=[1.0, 0.0], parser=verifiers.Parser(extract_fn=code_of))
    dataset = Dataset.from_list([{"question": question, "answer": ""}])
    return verifiers.SingleTurnEnv(dataset=dataset, rubric=rubric, parser=rubric.parser)
