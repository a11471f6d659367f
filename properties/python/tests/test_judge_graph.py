# SPDX-License-Identifier: Apache-2.0
"""Calls that are captured into a graph and replayed. Without a GPU a process pretends to have one (pretended_cuda.py)."""
import importlib
import sys
import warnings

import pytest
from conftest import HERE

import assay
import callables
from assay._callable import judge, stages
from assay._callable.graphs import NotCaptured
from assay._callable.process import Candidate, CandidateError
from assay._callable.serving import Served

torch = pytest.importorskip("torch")
SHAPE = "batch=3,heads=2/1,keys=40,head_dim=16"
SAID = "not captured: RuntimeError: CUDA error: operation not permitted when stream is capturing"
GRAPHS = ["graph", "graph_other_shape"]


class Here:
    """A candidate in this process: another one takes seconds to import torch."""

    about = {"device": "cuda", "parameters": ["sm_scale"]}

    def __init__(self, target, device, limits, adapter):
        self.served, self.place = Served(target, adapter, device), target.rpartition(":")[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        pass

    def close(self):
        sys.modules[self.place].forget()

    def call(self, inputs, store=None, keep=False, inputs_back=None, busy=False, graph=None):
        request = {"shape": vars(inputs.shape), "sm_scale": inputs.sm_scale, "store": store, "keep": keep, "inputs_back": inputs_back, "busy": busy, "graph": graph}
        try:
            return {name: array.copy() for name, array in self.served.call(request, inputs.tensors()).items()}
        except NotCaptured as error:
            raise CandidateError("not captured", str(error)) from None


def judged(name, **options):
    return assay.judge_callable(f"{HERE}/graph_candidates.py:{name}", SHAPE, seed=1, **options)



@pytest.fixture
def pretending(monkeypatch):
    monkeypatch.setattr(judge, "Candidate", Here)
    import pretended_cuda

    pretended_cuda.install(monkeypatch.setattr)
    return importlib.import_module("graph_candidates")


def test_a_right_function_passes_and_its_replays_are_judged(pretending):
    verdict = judged("right")
    assert verdict.passed and not verdict.not_asked() and [stage.verdict for stage in verdict.stages[-2:]] == ["pass", "pass"], str(verdict)
    assert [stage.stage for stage in verdict.stages[-2:]] == GRAPHS and all(stage.ratio < 1 for stage in verdict.stages[-2:])


@pytest.mark.parametrize("name, stage", [
    ("keeps_lengths_of_the_capture", "graph"), ("frees_its_workspace_when_it_grows", "graph_other_shape"),
    ("frees_the_workspace_of_another_shape", "graph_other_shape"), ("gives_what_it_knows", "graph"),
])  # fmt: skip
def test_a_function_that_is_wrong_in_replays_alone_is_a_finding(pretending, name, stage):
    verdict = judged(name, assume=("output_until_next_call",))
    assert verdict.verdict == "finding" and [failed.stage for failed in verdict.failed()] == [stage], str(verdict)


def test_the_process_of_a_candidate_captures_and_replays():
    verdict = judged("keeps_lengths_of_the_capture")
    assert verdict.verdict == "finding" and [failed.stage for failed in verdict.failed()] == ["graph"], str(verdict)


def test_a_function_that_cannot_be_captured_is_said_to_be():
    verdict = judged("reads_lengths_on_the_host", assume=("one_shape",))
    assert verdict.passed and verdict.not_asked() == {SAID: ["graph"]}, str(verdict)
    assert f"  n/a: graph: {SAID}\n" in str(verdict) and verdict.to_json()["stages"][-1]["verdict"] == "n/a"


def test_a_function_that_cannot_be_captured_is_wrong_where_it_promises_it(pretending):
    promised = judged("reads_lengths_on_the_host", capturable=True)
    assert promised.verdict == "finding" and [(stage.stage, stage.cause) for stage in promised.failed()] == [("graph", SAID)]
    assert judged("reads_lengths_on_the_host").not_asked() == {SAID: GRAPHS}


def test_without_a_gpu_its_stages_are_named_with_the_reason():
    verdict = assay.judge_callable(callables.plain, SHAPE, seed=1, assume=("one_shape",), capturable=True)
    assert verdict.passed and verdict.not_asked() == {"it needs tensors on a GPU": ["busy", "graph"]}
    everything = {stage.name for stage in stages.chosen(())} - {stage.name for stage in stages.chosen(("one_shape",))}
    assert everything == set(stages.ASSUMPTIONS["one_shape"])


def test_a_failed_capture_is_no_answer_to_another_call(monkeypatch):
    """A process that says so of an ordinary call would leave a stage out."""
    reply = Candidate._reply
    monkeypatch.setattr(Candidate, "_reply", lambda self, *given: {**reply(self, *given), "not captured": "so it says", "results": None})
    with Candidate(f"{callables.__file__}:plain") as candidate, pytest.raises(CandidateError) as error:
        candidate.call(assay.inputs(SHAPE, seed=1))
    assert error.value.kind == "type"


@pytest.mark.parametrize("compare", [assay.assert_batch_invariant, assay.assert_deterministic], ids=lambda given: given.__name__)
def test_bits_of_replays_are_compared(pretending, compare):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare(lambda q, k_cache, v_cache, page_table, seq_lens, sm_scale: q * 1, SHAPE, seed=1)
        with pytest.raises(assay.BitsError, match="a graph replayed once gives other bits"):
            compare(pretending.frees_the_workspace_of_another_shape, SHAPE, seed=1)
    with pytest.warns(UserWarning, match=f"assay: no replay of a graph was compared: {SAID}"):
        compare(lambda q: q * q.float().max().item() * 0, SHAPE, seed=1)


def test_lengths_of_a_capture_are_other_bits_in_its_replay(pretending):
    with pytest.raises(assay.BitsError, match=r"a graph replayed once gives other bits than the batch of 3: .* the batch is inside, a graph replayed once is outside"):
        assay.assert_batch_invariant(pretending.keeps_lengths_of_the_capture, SHAPE, seed=1)
