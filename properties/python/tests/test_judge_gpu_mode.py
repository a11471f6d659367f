# SPDX-License-Identifier: Apache-2.0
"""Submissions to GPU MODE's decode problem, judged through an adapter; other problems are refused by name."""
import pathlib
import sys

import pytest
from conftest import HERE

import assay
from assay import loading

pytest.importorskip("torch")
ADAPTER = str(HERE.parent / "adapters/gpu_mode.py:mla_decode")
SHAPE = "batch=3,heads=16/1,head_dim=64,keys=40"
TASK = "from typing import TypedDict, TypeVar\ninput_t = output_t = TypeVar('T')\nclass TestSpec(TypedDict):\n    {}: int\n    seed: int\n"
SUBMISSION = """#!POPCORN leaderboard {leaderboard}
from task import input_t, output_t
import torch

def custom_kernel(data: input_t) -> output_t:
    q, kv_data, qo_indptr, kv_indptr, config = data
    out = torch.zeros(len(q), config["num_heads"], config["v_head_dim"], dtype=q.dtype)
    for r, (begin, end) in enumerate(zip(kv_indptr.tolist(), kv_indptr[1:].tolist())):
        kv = kv_data["{cache}"][begin:end, 0].float()
        weights = torch.softmax(q[r].float() @ kv.T * config["sm_scale"], -1)
        out[r] = (weights @ kv[:, : config["v_head_dim"]]){then}
    return out
"""


def written(leaderboard="amd-mixed-mla", cache="bf16", then="", fields="batchsize: int\n    qseqlen: int\n    kvseqlen"):
    pathlib.Path("task.py").write_text(TASK.format(fields))
    pathlib.Path("submission.py").write_text(SUBMISSION.format(leaderboard=leaderboard, cache=cache, then=then).replace("#!POPCORN leaderboard \n", ""))
    return "submission.py:custom_kernel"


def judged(**given):
    return assay.judge_callable(written(**given), SHAPE, adapter=ADAPTER, seed=1, device="cpu")


@pytest.fixture
def adapted(monkeypatch, tmp_path):
    """The function of a submission, in this process."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("task", "submission.py"):
        monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.delitem(sys.modules, name)
    return lambda **given: loading.load(ADAPTER)(loading.load(written(**given)))


def called(function, shape):
    given = assay.inputs(shape, seed=1).torch()
    return function(given.q, given.k_cache, given.v_cache, given.page_table, given.seq_lens, given.shape.keys)


def test_a_right_submission_passes_with_its_arithmetic():
    verdict = judged()
    assert (verdict.verdict, verdict.arithmetic) == ("pass", "fp32"), str(verdict)


def test_a_wrong_part_of_v_is_a_finding():
    verdict = judged(leaderboard="", then="\n        out[r, :, 448:] *= 1.05")
    assert verdict.verdict == "finding" and verdict.stages[0].stage == verdict.failed()[0].stage == "counts", str(verdict)


def test_a_cache_of_another_format_and_another_shape_are_refused_by_name(adapted):
    function = adapted(cache="fp8")
    with pytest.raises(assay.Unsupported, match=r"kv_data\['fp8'\] has other numbers than kv_data\['bf16'\]"):
        called(function, SHAPE)
    for shape in ("batch=2,heads=4/2,keys=40", SHAPE + ",dtype=fp16", SHAPE + ",q_len=2"):
        with pytest.raises(assay.Unsupported, match="amd-mixed-mla takes heads=16/1,head_dim=64,q_len=1,dtype=bf16"):
            called(function, shape)


@pytest.mark.parametrize("leaderboard, fields, said", [
    ("amd-mla-decode", "batchsize", "the problem amd-mla-decode is no decode attention of a given q and cache, expected amd-mixed-mla"),
    ("", "batchsize: int\n    dim: int\n    dq: int\n    prefill", "the problem with the inputs batchsize, dim, dq, prefill, seed is no decode"),
])  # fmt: skip
def test_another_problem_is_refused_by_name(adapted, leaderboard, fields, said):
    with pytest.raises(ValueError, match=said):
        adapted(leaderboard=leaderboard, fields=fields)
