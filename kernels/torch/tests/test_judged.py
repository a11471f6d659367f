# SPDX-License-Identifier: Apache-2.0
"""The harness judges the operators like any kernel: its cases, its memory, its oracle. And it finds what is wrong with wrong ones."""
import os

import pytest

pytest.importorskip("torch", minversion="2.4")
assay = pytest.importorskip("assay")
import judged_kernels
import wrong_wrappers

CASES = int(os.environ.get("ASSAY_TORCH_CASES", "10"))  # 200 by hand, and where a change touches the binding
AT_NIGHT = {(name, "within_budget") for name in ("v1", "v2", "tree", "merge_state")} | {(name, "call_sequence") for name in ("v1", "tree_planned")}
KERNELS = ("v1", "v2", "v2_planned", "tree", "tree_planned", "cascade", "merge_state", "merge_states")


def nightly(*case):
    return pytest.param(*case, marks=pytest.mark.nightly)


def marked(*case):
    return nightly(*case) if case[:2] in AT_NIGHT else case


@pytest.fixture(autouse=True)
def on_the_device(device, monkeypatch):
    """Kernels run in processes of their own, which take it from the environment."""
    monkeypatch.setenv("ASSAY_TORCH_DEVICE", str(device))


@pytest.mark.parametrize("name, property, cases", [
    *[marked(name, "within_budget", CASES) for name in KERNELS],
    *[marked(name, "call_sequence", 3) for name in ("v1", "v2_planned", "tree_planned", "cascade")],
])  # fmt: skip
def test_no_findings(name, property, cases):
    """call_sequence: many shapes in one process, as parameters of earlier calls are used again."""
    assay.check(getattr(judged_kernels, name), cases=cases, property=property, threads=1).raise_for_findings()


@pytest.mark.parametrize("name", [*map(nightly, ("v2_planned", "merge_state")), "cascade"])
def test_over_a_copy_of_a_case(name, monkeypatch):
    """As on a GPU, whose cases are copies: pools that begin outside their memory, and outputs that are inputs."""
    monkeypatch.setenv("ASSAY_TORCH_DEVICE", "cpu:0")
    assay.check(getattr(judged_kernels, name), cases=CASES, property="within_budget", threads=1).raise_for_findings()


@pytest.mark.parametrize("kernel", wrong_wrappers.WRONG, ids=lambda kernel: kernel.__name__)
def test_wrong_wrappers_are_found(kernel):
    property = "call_sequence" if kernel is wrong_wrappers.strides_of_an_earlier_call else "within_budget"
    with pytest.raises(assay.FindingsError):
        assay.check(kernel, cases=40, property=property, threads=1).raise_for_findings()
