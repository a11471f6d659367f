# SPDX-License-Identifier: Apache-2.0
"""Replays of graphs on a GPU. test_judge_graph.py has them in a process that pretends to have one."""
import pytest
from conftest import HERE

import assay

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

SHAPE = "batch=8,heads=16/4,head_dim=64,keys=1000"
GRAPH, OTHER = "graph", "graph_other_shape"


@pytest.mark.parametrize(
    "name, verdict, stages",
    [
        ("right", "pass", set()),
        ("reads_lengths_on_the_host", "pass", set()),
        ("frees_its_workspace_when_it_grows", "finding", {OTHER}),
        ("frees_a_large_workspace", "finding", {OTHER}),
        ("keeps_the_lengths_of_a_call", "finding", {GRAPH, OTHER}),
    ],
)
def test_verdicts(name, verdict, stages):
    target = f"{HERE}/graph_gpu_candidates.py:{name}"
    said = assay.judge_callable(target, SHAPE, seed=1, device="cuda", keep_going=True)
    failed = {stage.stage for stage in said.failed()}
    assert said.verdict == verdict and failed <= stages and bool(failed) == bool(stages), str(said)
    assert bool(said.not_asked()) == (name == "reads_lengths_on_the_host")
