# SPDX-License-Identifier: Apache-2.0
"""Functions in, verdicts out: right ones pass with their arithmetic, wrong ones and those that deceive never do."""
import csv
import dataclasses
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import assay
import callables
import cheats
from assay._callable import counts, drawn, fitting, isolation, stages
from assay._callable.process import Candidate, CandidateError
from assay._callable.shape import Shape

SHAPE = "batch=6,heads=4/2,keys=300"
FUNCTIONS = os.path.dirname(callables.__file__)
CATALOGUE = {row["name"]: row["verdict"] for row in csv.DictReader(open(f"{FUNCTIONS}/functions.csv"))}


@pytest.mark.parametrize("function, arithmetic", callables.RIGHT.items(), ids=lambda given: getattr(given, "__name__", given))
def test_right_functions_pass_with_the_arithmetic_that_they_have(function, arithmetic):
    verdict = assay.judge_callable(function, SHAPE, seed=1)
    names = [rung.name for rung in fitting.ladder()]
    # Weights of fp16 are three bits finer than the outputs: most calls fit a narrower arithmetic, too.
    narrower = names[: names.index(arithmetic)] if arithmetic == "fp16_weights" else []
    assert verdict.verdict == "pass" and verdict.arithmetic in (*narrower, arithmetic), str(verdict)
    assert verdict and verdict.exit_code == 0 and len(verdict.stages) == len(stages.chosen(()))


@pytest.mark.parametrize("function", [*callables.WRONG, *callables.COARSE, *callables.BY_ONE_STAGE, *cheats.CHEATS], ids=lambda function: function.__name__)
def test_wrong_functions_get_no_pass(function):
    verdict = assay.judge_callable(function, SHAPE, seed=1)
    assert verdict.verdict == CATALOGUE[function.__name__] != "pass", str(verdict)
    assert not verdict and verdict.exit_code in (1, 4) and (verdict.score == 0 or verdict.verdict == "contract")
    if function in callables.COARSE:
        assert verdict.arithmetic == callables.COARSE[function]
    if function in callables.BY_ONE_STAGE:
        if verdict.failed()[0].stage != callables.BY_ONE_STAGE[function]:  # another one had such a call by chance
            verdict = assay.judge_callable(function, SHAPE, seed=1, keep_going=True)
        assert callables.BY_ONE_STAGE[function] in [stage.stage for stage in verdict.failed()]


def test_the_catalogue_has_every_function():
    assert set(CATALOGUE) == {function.__name__ for function in (*callables.WRONG, *callables.COARSE, *callables.BY_ONE_STAGE, *cheats.CHEATS)}


@pytest.mark.parametrize("function, said", [
    (callables.loses_the_last_page, "keys 288 to 299 did not count"),
    (callables.loses_the_last_key, "key 299 did not count"),
    (callables.takes_the_whole_last_page, "request 0 of 17 keys: 15 behind its last key counted"),
    (cheats.window_of_the_last_keys, "keys 0 to 49 did not count"),
], ids=lambda given: getattr(given, "__name__", ""))  # fmt: skip
def test_keys_that_did_not_count_once_are_named(function, said):
    assert said in str(assay.judge_callable(function, SHAPE, seed=1))


def test_one_element_that_fits_no_arithmetic_ends_it_and_explain_looks_for_the_cause(monkeypatch):
    judge, asked = drawn.Inputs.judge, []
    monkeypatch.setattr(drawn.Inputs, "judge", lambda self, *given, **options: asked.append(self.shape.batch) or judge(self, *given, **options))
    brief = assay.judge_callable(callables.row_sum_in_fp16, SHAPE, seed=1, assume=("full_lengths",))
    assert asked[-2:] == [6, 1] and asked.count(1) == 1 and ";" not in brief.failed()[-1].cause, str(brief)
    whole = assay.judge_callable(callables.row_sum_in_fp16, SHAPE, seed=1, assume=("full_lengths",), explain=True)
    assert brief.failed()[-1].cause == whole.failed()[-1].cause.partition("; ")[0] and "; where: " in whole.failed()[-1].cause


@pytest.mark.parametrize("stage", ["busy", "busy_first"])
def test_busy_stages_judge_the_inputs_that_are_written_last(stage):
    """Without a GPU nothing is still being written: what the call gets must be what is judged."""
    with Candidate(f"{FUNCTIONS}/callables.py:plain") as candidate:
        session = stages.Session(candidate, Shape.parse(SHAPE), 1)
        for asked in next(s for s in stages.STAGES if s.name == stage).run(session):
            assert asked.inputs.judge(asked.results["out"]).passed


def test_outputs_without_a_claim_are_no_pass(monkeypatch):
    judge = drawn.Inputs.judge
    monkeypatch.setattr(drawn.Inputs, "judge", lambda *given, **options: dataclasses.replace(judge(*given, **options), claimed=0))
    assert assay.judge_callable(callables.plain, SHAPE, seed=1).verdict == "undecided"


@pytest.mark.filterwarnings("error")
def test_heads_of_one_element_have_no_codes():
    given = assay.inputs("batch=2,heads=1/1,keys=40,head_dim=1", "counts", 1)
    assert counts.found(given, np.ones((2, 1, 1), np.float32)) == []


def test_counts_are_read_off_an_output():
    given = assay.inputs("batch=2,heads=4/2,keys=300,page_size=8", "counts", 5)
    length = int(given.seq_lens[1])
    weights = np.ones((2, 300))
    weights[1, 96:100] = 2
    weights[1, 7] = 0
    v = given.values("v_cache")
    out = np.zeros((2, 4, 128), np.float32)
    for request, keys in enumerate(given.seq_lens):
        rows = v[given.page_table[request, : -(-int(keys) // 8)]].reshape(-1, 2, 128)[:keys]
        used = weights[request, :keys]
        out[request] = np.repeat(np.einsum("k,khd->hd", used, rows) / used.sum(), 2, axis=0)
    assert length == 300
    assert counts.found(given, out) == ["request 1 of 300 keys: key 7 did not count; keys 96 to 99 counted twice in kv head 0"]
    out[1] = np.nan
    assert counts.found(given, out) == []


def _numbers(words):
    """Of "3 to 5, 7 and 9 more": 3, 4, 5, 7."""
    spans = [[int(n) for n in part.split(" to ")] for part in words.partition(" and ")[0].split(", ")]
    return {key for span in spans for key in range(span[0], span[-1] + 1)}


def _counted(given, weights):
    """O of the second request, whose keys count that often."""
    v, out = given.values("v_cache"), np.zeros(given.q.shape, np.float32)
    for request, counts_of in enumerate((np.ones(given.seq_lens[0]), weights)):
        rows = v[given.page_table[request, : -(-len(counts_of) // 16)]].reshape(-1, 2, out.shape[2])[: len(counts_of)]
        out[request] = np.repeat(np.einsum("k,khd->hd", counts_of, rows) / counts_of.sum(), 2, axis=0)
    return assay.from_float32(out, "bf16")


def test_what_is_said_about_counts_is_true():
    rng, said, whole = np.random.default_rng(5), 0, 0
    for _ in range(300):
        keys = int(rng.choice([100, 150, 300, 1000]))
        given = assay.inputs(f"batch=2,heads=4/2,keys={keys},head_dim={rng.choice([16, 32, 64, 128])}", "counts", 7)
        times, weights = int(rng.choice([0, 2])), np.ones(keys)
        begin = int(rng.choice([0, rng.integers(keys), keys // 2, keys - 1]))
        weights[begin : begin + int(rng.choice([1, 16, keys // 2, keys]))] = times
        if not weights.any() or (weights == 1).all():
            continue
        off = set(np.flatnonzero(weights != 1))
        for sentence in counts.found(given, _counted(given, weights)):
            found = re.findall(r"keys? ([\d, a-z]*?) (did not count|counted twice)", sentence)
            assert sentence.startswith("request 1 of") and found, sentence
            for names, words in found:
                assert _numbers(names) <= off and (words == "did not count") == (times == 0), (begin, sentence)
            said, whole = said + 1, whole + (_numbers(found[0][0]) == off)
    assert whole > 150, (said, whole)


def raised_apart(name, said):
    """What a function raises in namespaces of its own."""
    with Candidate(f"{FUNCTIONS}/callables.py:{name}") as candidate:
        candidate.start()
        if candidate.about["isolation"] == isolation.PROCESS:
            pytest.skip("no namespaces for ordinary processes here")
        assert candidate.about["isolation"] == isolation.NAMESPACES
        with pytest.raises(CandidateError, match=said):
            candidate.call(assay.inputs(SHAPE, seed=1))


def test_a_candidate_sees_no_process_but_its_own():
    raised_apart("processes_that_it_sees", r"raised|\['1', '2'\]")


def test_a_candidate_writes_to_no_file_of_the_judge(tmp_path, monkeypatch):
    (tmp_path / "mine").touch()
    monkeypatch.setenv("ASSAY_TEST_FILE", str(tmp_path / "mine"))
    raised_apart("files_that_it_opens", rf"RuntimeError: \['{tmp_path}/mine'\]")


def test_a_candidate_has_its_channel_its_memory_and_nothing_else(tmp_path):
    with open(tmp_path / "kept", "w") as _, Candidate(f"{FUNCTIONS}/callables.py:descriptors_that_it_has") as candidate:
        with pytest.raises(CandidateError, match=r"RuntimeError: \['/memfd', 'socket'\]"):
            candidate.call(assay.inputs(SHAPE, seed=1))


@pytest.mark.parametrize("name, kind", [("runs_forever", "hung"), ("takes_all_memory", "memory"), ("fills_files_of_memory", "memory"), ("ends_by_a_signal", "ended"), ("raises", "raised")])
def test_what_goes_too_far_is_ended_and_the_next_call_starts_again(name, kind):
    with Candidate(f"{FUNCTIONS}/callables.py:{name}", limits=assay.Limits(call_seconds=2 if kind == "hung" else 600, gigabytes=1)) as candidate:
        for starts in (1, 1 if kind == "raised" else 2):
            with pytest.raises(CandidateError) as error:
                candidate.call(assay.inputs("batch=1,heads=1/1,keys=16", seed=1))
            assert error.value.kind == kind and candidate.starts == starts, str(error.value)


def test_assumptions_leave_stages_out():
    verdict = assay.judge_callable(cheats.one_output_for_all_calls, SHAPE, seed=1, assume=("output_until_next_call", "finite_pool"))
    assert verdict.verdict == "pass" and not {"earlier_output", "nan_behind"} & {stage.stage for stage in verdict.stages}
    assert assay.judge_callable(cheats.right_for_equal_lengths, SHAPE, seed=1, assume=("full_lengths",)).passed
    with pytest.raises(ValueError, match="assume is 'no_pages', expected no_empty_requests"):
        assay.judge_callable(callables.plain, SHAPE, assume=("no_pages",))


def test_a_gpu_that_is_asked_for_and_not_there_is_said(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(ValueError, match="device is 'cuda', (which takes tensors of torch|and torch finds no GPU)"):
        assay.judge_callable(callables.plain, SHAPE, seed=1, device="cuda")


def test_bits_are_compared_where_they_are_promised():
    verdict = assay.judge_callable(callables.other_bits_each_time, SHAPE, seed=1, assume=("output_until_next_call",), deterministic=True)
    assert [stage.stage for stage in verdict.failed()] == ["same_twice"], str(verdict)
    assert assay.judge_callable(callables.other_bits_each_time, SHAPE, seed=1).passed


@pytest.mark.parametrize("shape, said", [
    ("batch=0", "batch is 0, expected 1 to 65536"), ("heads=6/4", "heads is 6/4, expected a multiple"), ("q=3", "'q=3', expected heads=Q/KV or one of"),
    ("keys=many", "'keys=many', expected a whole number"), ("dtype=fp32", "dtype is 'fp32', expected one of bf16, fp16"), ("q_len=8,keys=4", "q_len is 8"),
    ("batch=65536,keys=4096", "its tensors have"),
])  # fmt: skip
def test_a_wrong_shape_is_refused_by_name(shape, said):
    with pytest.raises(ValueError, match="assay: shape: .*" + said):
        assay.judge_callable(callables.plain, shape)


def test_inputs_are_those_of_their_seed_and_regime():
    for regime in stages.REGIMES:
        given = assay.inputs("batch=5,heads=4/2,keys=100,page_size=8", regime, 3)
        again = assay.inputs("batch=5,heads=4/2,keys=100,page_size=8", regime, 3)
        assert all(np.array_equal(array, again.tensors()[name]) for name, array in given.tensors().items()), regime
        own = [set(given.page_table[r, : -(-int(n) // 8)]) for r, n in enumerate(given.seq_lens)]
        assert (sum(map(len, own)) == len(set().union(*own))) == (regime != "shared_pages"), regime
        out = callables.plain(given.q, given.k_cache, given.v_cache, given.page_table, given.seq_lens, given.sm_scale)
        assert given.judge(out).passed, regime
    assert assay.inputs(SHAPE).seed != assay.inputs(SHAPE).seed
    assert max(assay.inputs(SHAPE, "ragged", 1).seq_lens) == 300 > assay.inputs(SHAPE, "ragged", 1).seq_lens[0]
    with pytest.raises(ValueError, match="regime is 'odd', expected one of ordinary"):
        assay.inputs(SHAPE, "odd")


def test_the_command_says_the_verdict_in_lines_and_in_files(tmp_path):
    def run(*words):
        command = [sys.executable, "-B", "-m", "assay", "judge-callable", *words, "--shape", SHAPE, "--seed", "1"]
        return subprocess.run(command, text=True, capture_output=True)

    right = run(f"{FUNCTIONS}/callables.py:plain", "--json", "-")
    lines = [json.loads(line) for line in right.stdout.splitlines()]
    assert right.returncode == 0 and lines[-1]["verdict"] == "pass" and lines[0]["stage"] == "counts" and "29 of 29 stages" in right.stderr
    wrong = run(f"{FUNCTIONS}/callables.py:loses_the_last_key", "--json", str(tmp_path / "a.json"))
    said = json.loads((tmp_path / "a.json").read_text())
    assert wrong.returncode == 1 and wrong.stdout.startswith("finding: ") and said["stages"][-1]["cause"] and said["score"] == 0
    for name, words in ((":none", "has no none"), (":wants_what_nobody_has", "the function wants 'foo'")):
        ended = run(f"{FUNCTIONS}/callables.py{name}")
        assert ended.returncode == 2 and words in ended.stderr, ended.stderr


def test_fit_names_the_narrowest_arithmetic():
    given = assay.inputs(SHAPE, "ragged", 1)
    tensors = (given.q, given.k_cache, given.v_cache, given.page_table, given.seq_lens, given.sm_scale)
    for function, name in ((callables.plain, "fp32"), (callables.bf16_weights, "16_bit_weights"), (callables.loses_the_last_page, "")):
        assert assay.fit(function(*tensors), **given.arguments()).name == name
    with pytest.raises(TypeError, match="fit has no argument like"):
        assay.fit(given.q, **given.arguments(), like="fa2")
