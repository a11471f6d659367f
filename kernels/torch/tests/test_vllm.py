# SPDX-License-Identifier: Apache-2.0
"""vLLM's CPU build serves with our backend: 32 requests of mixed length, greedy, and the tokens are those of its own."""
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
pytest.importorskip("vllm")
from vllm.platforms import current_platform

HERE = pathlib.Path(__file__).resolve().parent
ENTRY_POINTS = """[vllm.general_plugins]
assay_torch = assay_torch.vllm_backend:register
assay = assay._engines.vllm_shadow:register
"""

if not current_platform.is_cpu():
    pytest.skip("vLLM is not the CPU build", allow_module_level=True)


def engine_command(folder, head_dim, *more, **environment):
    """(command, environment) of an engine with the entry points of this tree; it writes served.json."""
    installed = folder / "tree" / "assay_tree-0.dist-info"
    installed.mkdir(parents=True, exist_ok=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: assay-tree\nVersion: 0\n")
    (installed / "entry_points.txt").write_text(ENTRY_POINTS)
    path = os.pathsep.join([str(installed.parent), str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-B", str(HERE / "vllm_serving.py"), str(head_dim), str(folder / "served.json"), *more]
    return command, {**os.environ, "PYTHONPATH": path, **environment}


def serve(folder, head_dim, *more, **environment):
    """(requests, log) of an engine in a process of its own."""
    command, its_environment = engine_command(folder, head_dim, *more, **environment)
    ran = subprocess.run(command, env=its_environment, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads((folder / "served.json").read_text()), ran.stdout + ran.stderr


def kill_after(requests, folder, head_dim, *more, **environment):
    """Starts an engine and ends it without a warning once it has served so many requests. How many those were."""
    command, its_environment = engine_command(folder, head_dim, *more, **environment)
    kept, end = folder / "served.json.kept", time.monotonic() + 600
    with subprocess.Popen(command, env=its_environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as engine:
        while not kept.exists() or kept.read_text().count("\n") < requests:
            assert engine.poll() is None and time.monotonic() < end, "it ended before it had served them"
            time.sleep(0.02)
        engine.kill()
    return kept.read_text().count("\n")


@pytest.fixture(scope="module")
def engines_own(tmp_path_factory):
    return serve(tmp_path_factory.mktemp("own"), 64)[0]


def first_difference(a, b):
    """(equal tokens, what differs first) of two servings; behind its first difference a request is another text."""
    equal, differ = 0, []
    for r, (x, y) in enumerate(zip(a, b)):
        same = [s == t for s, t in zip(x["tokens"], y["tokens"])]
        at = same.index(False) if False in same else len(same)
        equal += at
        if at < len(same):
            differ.append((r, at, x["best"][at][0] - x["best"][at][1]))
    return equal, differ


def no_findings(log):
    """The counts of the judge inside the engine, which are to say that it saw every call and found nothing."""
    counts = next(line for line in log.splitlines() if "calls," in line and "judged," in line)
    assert " 0 findings" in counts and " 0 judged" not in counts and "not judged" not in counts, counts
    return counts


def part_at_ties_alone(own, served):
    """Of two best tokens within two steps of a logit (fp16 between 4 and 8: 1/256) either may win. Such requests are few."""
    equal, differ = first_difference(own, served)
    assert all(gap <= 2 / 256 for _, _, gap in differ) and len(differ) <= 6 and equal >= 450, (equal, differ)
    print(f"{equal} tokens equal, {len(differ)} of {len(own)} requests part at a tie")


def test_tokens_are_those_of_the_engines_own_backend(tmp_path, engines_own):
    ours, log = serve(tmp_path, 64, ASSAY_VLLM_BACKEND="1")
    assert "assay: decode by paged_attention of" in log
    part_at_ties_alone(engines_own, ours)


def test_an_engine_that_is_killed_and_started_again(tmp_path, engines_own):
    """Killed in the middle of a batch; the next one serves what is left, and all tokens are those of the engine's own backend."""
    served = kill_after(6, tmp_path, 64, "kept", ASSAY_VLLM_BACKEND="1")
    assert 6 <= served < len(engines_own)
    ours, log = serve(tmp_path, 64, "kept", ASSAY_VLLM_BACKEND="1", ASSAY_VLLM_EVERY="1")
    assert f"kept: {served} requests" in log and "assay: decode by paged_attention of" in log
    no_findings(log)
    part_at_ties_alone(engines_own, ours)


def test_prompts_that_begin_alike(tmp_path):
    """tree_attention over blocks that vLLM's prefix caching shares."""
    (tmp_path / "own").mkdir()
    own, _ = serve(tmp_path / "own", 64, "shared")
    flat, _ = serve(tmp_path, 64, "shared", ASSAY_VLLM_BACKEND="1")
    tree, log = serve(tmp_path, 64, "shared", ASSAY_VLLM_BACKEND="tree", ASSAY_VLLM_EVERY="1")
    assert "assay: decode by tree_attention of" in log
    no_findings(log)
    for served in (flat, tree):
        part_at_ties_alone(own, served)


def test_an_fp8_cache(tmp_path):
    """Tokens are not those of CPU_ATTN, which rounds to e4m3 towards zero (1.947 to 1.875), and this backend to nearest."""
    _, log = serve(tmp_path, 64, "fp8", ASSAY_VLLM_BACKEND="1", ASSAY_VLLM_EVERY="1")
    assert "assay: decode by paged_attention of" in log
    no_findings(log)


OPTIONS = {
    "plain": dict(),
    "window": dict(window_left=3),
    "softcap": dict(logits_soft_cap=3.0),
    "alibi": dict(alibi_slopes=torch.linspace(0.1, 0.8, 4)),
    "sinks": dict(sinks=torch.linspace(-1.0, 1.0, 4)),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_prefill_is_the_same_attention(name):
    """A text so short that either may compute it."""
    from assay_torch import paged_attention, vllm_cpu

    given = dict(sm_scale=0.2, window_left=-1, logits_soft_cap=0.0, alibi_slopes=None, sinks=None)
    given.update(OPTIONS[name])
    g = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(n, heads, 64, generator=g).half() for n, heads in ((5, 4), (21, 2), (21, 2)))
    plain = vllm_cpu.prefill(q.float(), k.float(), v.float(), causal=True, **given)
    table, lens = torch.zeros(1, 1, dtype=torch.int32), torch.tensor([21], dtype=torch.int32)
    ours = paged_attention(q[None], (k[None], v[None]), table, lens, **given)[0]
    torch.testing.assert_close(ours.float(), plain, atol=2e-3, rtol=2e-3)


def test_a_wrong_backend_is_seen(tmp_path, engines_own):
    wrong, _ = serve(tmp_path, 64, "wrong", ASSAY_VLLM_BACKEND="1")
    equal, differ = first_difference(engines_own, wrong)
    assert max(gap for _, _, gap in differ) > 1 / 8 and len(differ) > 16


def test_every_call_is_inside_its_bound(tmp_path):
    """The judge inside the engine looks at our calls, prefills too."""
    pytest.importorskip("assay")
    _, log = serve(tmp_path, 64, ASSAY_VLLM_BACKEND="1", ASSAY_VLLM_EVERY="1")
    print(no_findings(log))


def test_a_model_that_is_not_ours_stays_with_the_engines_backend(tmp_path):
    _, log = serve(tmp_path, 32, ASSAY_VLLM_BACKEND="1")
    lines = [line for line in log.splitlines() if "assay:" in line]
    assert len(lines) == 1 and "layers stay with CPU_ATTN" in lines[0]
    assert "head_dim is 32, supported are 64, 128 and 256" in lines[0], lines
