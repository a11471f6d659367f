# SPDX-License-Identifier: Apache-2.0
"""assay.check: right kernels pass, wrong ones are found, and what is no kernel is refused by name."""
import os
import pathlib
import subprocess
import sys

import fixed_shape_kernels
import numpy as np
import pytest
import right_kernels
import wrong_kernels
from conftest import HERE
from off_by_one import off_by_one
from paged_attention import FP32, paged_attention

import assay
from assay.case import Case


@pytest.mark.nightly
def test_the_example_passes():
    result = assay.check(paged_attention, cases=1).raise_for_findings()
    assert result.passed and result.exit_code == 0
    assert result.cases > 60 and result.report["kernels"][0]["outputs"] > 10_000
    assert "pass: " in result.text


@pytest.mark.parametrize("name, property", [("cascade", "within_budget"), ("merge_state", None), ("merge_states", None)])
def test_right_kernels_of_the_other_families_pass(name, property):
    result = assay.check(getattr(right_kernels, name), cases=1, property=property).raise_for_findings()
    assert result.report["kernels"][0]["outputs"] > 1000


def test_a_kernel_gets_ragged_calls_if_it_declares_so():
    result = assay.check(right_kernels.ragged_attention, cases=4, property="ragged_equals_alone").raise_for_findings()
    assert result.passed
    within = assay.check(right_kernels.ragged_attention, cases=2, property="within_budget").raise_for_findings()
    runs = within.report["runs"]
    assert sum(run["classes"].get("ragged_queries", 0) for run in runs) > 0
    found = assay.check(wrong_kernels.ragged_as_full, cases=4, property="ragged_equals_alone")
    assert [finding.kernel for finding in found.findings] == ["ragged_as_full"]
    assert "request of a ragged call in a call of its own" in found.findings[0].message


def test_ragged_queries_are_of_paged_kernels():
    with pytest.raises(ValueError, match="ragged_queries is True, expected"):
        assay.check(right_kernels.cascade, ragged_queries=True)


def test_a_kernel_gets_shards_if_it_declares_so():
    result = assay.check(right_kernels.sharded_attention, cases=3, property="shards_equal_whole").raise_for_findings()
    assert sum(run["classes"].get("shard", 0) for run in result.report["runs"]) > 0
    assert assay.check(right_kernels.sharded_attention, cases=2, property="within_budget").passed
    found = assay.check(wrong_kernels.shard_as_whole, cases=3, property="shards_equal_whole")
    assert [finding.kernel for finding in found.findings] == ["shard_as_whole"]


def test_one_token_less_is_found_with_a_small_case():
    result = assay.check(off_by_one, cases=1, property="within_budget")
    with pytest.raises(assay.FindingsError, match="off_by_one within_budget: row 0 head 0"):
        result.raise_for_findings()
    case = result.findings[0].case
    for line in ("batch = 1", "num_kv_heads = 1", "group_size = 1", "seq_lens = 1"):
        assert f"\n{line}\n" in case
    # What was found is tried first from then on.
    again = assay.check(off_by_one, cases=1, property="within_budget")
    assert any(finding.file == result.findings[0].file for finding in again.findings)


def test_a_mistake_that_every_property_sees_is_one_finding():
    result = assay.check(wrong_kernels.raises_index_error, cases=1)
    assert len(result.report["found"]) > 5 and len(result.findings) == 1
    with pytest.raises(assay.FindingsError) as said:
        result.raise_for_findings()
    text = str(said.value)
    assert "IndexError" in text and "also seen by: " in text and len(text.splitlines()) < 120, text
    again = assay.check(wrong_kernels.raises_index_error, cases=1)  # replays what the first wrote
    assert len(again.findings) == 1


def test_a_declaration_is_judged_not_believed():
    assay.check(wrong_kernels.declares_rounding, cases=2, property="within_budget").raise_for_findings()
    hidden = assay.check(wrong_kernels.hides_rounding, cases=2, property="within_budget")
    assert hidden.exit_code == 1 and "outside" in hidden.findings[0].message


def test_what_a_kernel_refuses_is_its_envelope():
    for kernel, field, refused, reason in (
        (wrong_kernels.refuses_by_raising, "dtype", {"fp16", "fp32"}, "bf16 only"),
        (wrong_kernels.refuses_by_supports, "head_dim", None, "head_dim 64 only"),
    ):
        result = assay.check(kernel, cases=1).raise_for_findings()
        envelope = result.report["kernels"][0]["envelope"][field]
        assert envelope["reason"] == reason
        assert refused is None or set(envelope["refused"]) == refused
        assert len(envelope["taken"]) == 1
        assert reason in result.text


def test_a_kernel_that_takes_nothing_proves_nothing():
    result = assay.check(wrong_kernels.refuses_everything, cases=1, property="within_budget")
    assert result.exit_code == 4
    with pytest.raises(assay.UnprovenError, match="no property decided a case; the last call of [0-9]+ of them: unsupported"):
        result.raise_for_findings()


def test_a_kernel_of_one_shape_is_checked_once_that_is_named():
    silent = assay.check(fixed_shape_kernels.right, cases=1, property="within_budget")
    assert silent.exit_code == 4 and "(--only names a shape that it takes)" in silent.text
    right = assay.check(fixed_shape_kernels.right, cases=2, only=fixed_shape_kernels.SHAPE).raise_for_findings()
    envelope = right.report["kernels"][0]["envelope"]
    assert envelope["batch"]["taken"] == ["8"] and envelope["sinks"]["taken"] == ["none"] and envelope["dtype"]["taken"] == ["bf16"]


_OF_ONE_SHAPE = [pytest.param(kernel, marks=[pytest.mark.nightly] if at else []) for at, kernel in enumerate(fixed_shape_kernels.WRONG)]


@pytest.mark.parametrize("kernel", _OF_ONE_SHAPE, ids=lambda kernel: kernel.__name__)
def test_wrong_kernels_of_one_shape_are_found(kernel):
    result = assay.check(kernel, cases=20, property="within_budget", only=fixed_shape_kernels.SHAPE)
    assert result.exit_code == 1 and result.findings, result.text


def test_only_and_arguments_of_the_kernel_may_be_given_here():
    result = assay.check(
        wrong_kernels.declares_nothing,
        family="merge_state",
        declaration=right_kernels.MERGE,
        supports=wrong_kernels.only_head_dim_64,
        name="mine",
        only={"dtype": ["bf16", "fp16"]},
        cases=1,
        threads=1,
        patience="30s",
    ).raise_for_findings()
    kernel = result.report["kernels"][0]
    assert kernel["name"] == "mine"
    assert kernel["envelope"]["dtype"]["taken"] == ["bf16", "fp16"]
    assert kernel["envelope"]["head_dim"]["reason"] == "head_dim 64 only"


def test_what_is_printed_to_reproduce_runs_as_it_stands():
    arguments = {"name": "mine", "cases": 1, "property": "within_budget", "patience": "30s"}
    for kernel in (off_by_one, wrong_kernels.hides_rounding):
        finding = assay.check(kernel, **arguments).findings[0]
        folder = os.path.dirname(os.path.abspath(assay.find_program()))
        sources = {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}
        ran = subprocess.run(finding.reproduce, shell=True, text=True, capture_output=True, env={**os.environ, **sources})
        assert ran.returncode == 1 and finding.message in ran.stdout, ran.stderr


REFUSED = {
    "declares_nan": "arithmetic.exp2_rel_error is nan, expected 0 to below 1",
    "declares_everything": "arithmetic.rcp_rel_error is 1, expected 0 to below 1",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_declaration_that_bounds_nothing_is_refused(name):
    with pytest.raises(assay.ProgramError) as error:
        assay.check(getattr(wrong_kernels, name))
    assert error.value.exit_code == 2 and REFUSED[name] in str(error.value)


def test_a_kernel_of_another_family_is_found():
    result = assay.check(wrong_kernels.of_another_family, cases=1, property="within_budget")
    assert result.exit_code == 1 and "AttributeError" in result.findings[0].message


def test_other_refusals_name_the_argument():
    with pytest.raises(TypeError, match="family is missing"):
        assay.check(wrong_kernels.declares_nothing)
    with pytest.raises(ValueError, match="another process"):
        assay.check(lambda case: None, family="paged", declaration=FP32)
    with pytest.raises(ValueError, match="family is 'pagd'"):
        assay.check(wrong_kernels.declares_nothing, family="pagd", declaration=FP32)
    with pytest.raises(assay.ProgramError, match="unknown property 'no_such'"):
        assay.check(paged_attention, property="no_such")
    with pytest.raises(assay.ProgramError, match="--only dtype=int4"):
        assay.check(right_kernels.merge_state, only={"dtype": "int4"})


def test_a_module_that_cannot_be_loaded_is_no_finding(program):
    pathlib.Path("broken.py").write_text("import assay\nimport no_such_module\n")
    ran = program.run("check", "--worker", program.worker("broken.py:kernel"))
    assert ran.returncode == 4 and "No module named 'no_such_module'" in ran.stderr
    for target, said in {
        "missing.py:kernel": "missing.py: no such file",
        "no.such.module:kernel": "No module named 'no'",
        "kernel": "is not MODULE:FUNCTION or FILE.py:FUNCTION",
        f"{HERE}/wrong_kernels.py:absent": "has no absent",
        f"{HERE}/wrong_kernels.py:declares_nothing": "mark it with @assay.kernel",
    }.items():
        ran = program.run("check", "--worker", program.worker(target))
        assert ran.returncode == 4 and said in ran.stderr, ran.stderr


SCRIPT = """
import assay, sys
sys.path += {here!r}, {examples!r}
from right_kernels import MERGE, merge_state
def kernel(case):
    merge_state(case)
def small(case):
    return case.head_dim <= 128
result = assay.check(kernel, family="merge_state", declaration=MERGE, supports=small, cases=1)
print("cases:", result.raise_for_findings().cases)
"""


def test_a_script_checks_its_own_function():
    """Its worker runs it up to the check, which is not begun a second time."""
    pathlib.Path("script.py").write_text(SCRIPT.format(here=str(HERE), examples=str(HERE.parent / "examples")))
    ran = subprocess.run([sys.executable, "script.py"], text=True, capture_output=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("cases: ") and int(ran.stdout.split()[1]) > 10


def test_the_worker_is_not_started_by_hand():
    ran = subprocess.run([sys.executable, "-m", "assay.worker", "x:y"], text=True, capture_output=True, close_fds=True)
    assert ran.returncode == 2 and "not by hand" in ran.stderr


def test_parts_of_tensors_need_their_dtype():
    memory = np.zeros(64, np.uint8)
    tensor = {"dtype": "bf16", "shape": [4, 2], "strides": [2, 1], "offset": 16, "output": True}
    case = Case({"dtype": "bf16", "out": tensor, "lse": None}, memory, memory.ctypes.data)
    case.store(case.out, [[1.0, 2.0]] * 4)
    assert memory[16:20].tolist() == [0x80, 0x3F, 0x00, 0x40] and memory[32:].sum() == 0
    with pytest.raises(ValueError, match="name the dtype"):
        case.load(case.out[0])
    np.testing.assert_array_equal(case.load(case.out[0], case.dtype), [1.0, 2.0])
    with pytest.raises(ValueError, match="pick its pages first"):
        huge = {**tensor, "shape": [1 << 40, 2]}
        view = Case({"k_cache": huge}, memory, memory.ctypes.data)
        view.load(view.k_cache)
