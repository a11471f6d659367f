# SPDX-License-Identifier: Apache-2.0
"""What of the adapters needs no GPU: what they take, how pages are picked, and a table that survives any adapter."""
import json
import os
import pathlib
import subprocess
import sys
import types

import numpy as np
import pytest
from conftest import HERE

from assay import elements, worker_errors

ADAPTERS = HERE.parent / "adapters"


@pytest.fixture
def adapters(monkeypatch):
    """The modules of the adapters by name, imported as a worker imports them."""
    monkeypatch.syspath_prepend(str(ADAPTERS))
    import on_gpu
    import run_all

    monkeypatch.setattr(on_gpu, "put", lambda array, dtype: np.array(array))
    names = (*run_all.FILES, "on_gpu", "run_all")
    return types.SimpleNamespace(**{name: __import__(name) for name in names})


def adapter(name, text):
    """A file of an adapter `name` of the current folder."""
    pathlib.Path(f"{name}.py").write_text(text.replace("NAME", name))
    return f"{name}.py:{name}"


def run_all(*arguments):
    """Rows of results.json by adapter, and what was printed."""
    command = [sys.executable, str(ADAPTERS / "run_all.py"), "--cases=1", "--threads=2", "--out=out", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(command, text=True, capture_output=True, check=True, env=environment)
    return {row["adapter"]: row for row in json.loads(pathlib.Path("out/results.json").read_text())}, ran.stdout


def test_every_adapter_of_the_list_says_what_it_is(adapters):
    names = [target.rpartition(":")[2] for target in adapters.run_all.adapters()]
    assert len(names) == len(set(names)) == 16
    assert {"torch_math", "flashinfer_cuda_cores", "flashinfer_merge_states", "xqa_bf16", "triton_decode"} < set(names)


def test_refusals_name_their_reason(adapters):
    case = adapters.on_gpu.one_key(dtype="bf16", kv_dtype="bf16", head_dim=64)
    adapters.torch_sdpa.takes_math(case)
    adapters.flashinfer_decode.takes_cuda_cores(case)
    adapters.xqa.takes_bf16(case)
    case.window_left = 4
    adapters.flashinfer_decode.takes_tensor_cores(case, "bf16")
    for takes, words in (
        (adapters.torch_sdpa.takes_fused, "no sliding window"),
        (adapters.xqa.takes_fp16, "fp16 only"),
        (adapters.xqa.takes_bf16, "not compiled for these checks: dtype bf16, .* window True"),
    ):
        with pytest.raises(worker_errors.Unsupported, match=words):
            takes(case)
    large = types.SimpleNamespace(dtype="bf16", lse=None, head_dim=128, num_qo_heads=64)
    adapters.flashinfer_cascade.takes_bf16(large)
    large.num_qo_heads = 65
    with pytest.raises(worker_errors.Unsupported, match="1040 threads a block"):
        adapters.flashinfer_cascade.takes_bf16(large)


def test_live_pages_are_picked_and_a_page_of_nan_follows(adapters):
    cache = np.arange(9 * 4, dtype=np.float16).reshape(9, 4, 1, 1)
    table = np.array([[7, 2, -1], [2, -1, -1], [-1, -1, -1]], np.int32)
    picked = adapters.on_gpu.gather(cache, cache, table, np.array([5, 4, 0], np.int32), 4, "fp16")
    assert [list(row) for row in picked.rows] == [[1, 0], [0], []]
    assert np.array_equal(picked.k[:2], cache[[2, 7]]) and np.isnan(picked.k[2]).all() and len(picked.v) == 3
    indptr, ids, last = adapters.on_gpu.csr(picked.rows, [5, 4, 0], 4)
    assert (list(indptr), list(ids), list(last)) == ([0, 2, 3, 3], [1, 0, 0], [1, 4, 0])
    empty = adapters.on_gpu.gather(cache, cache, table[:0], [], 4, "fp16")
    assert empty.rows == [] and len(empty.k) == 1 and adapters.on_gpu.csr([], [], 4)[1].size == 0


def test_levels_of_other_page_sizes_become_one(adapters, monkeypatch):
    monkeypatch.setattr(adapters.flashinfer_cascade, "gather", adapters.on_gpu.gather)
    cache = np.arange(3 * 6, dtype=np.float16).reshape(3, 6, 1, 1)
    level = types.SimpleNamespace(k_cache=cache, v_cache=cache, page_size=6, page_table=np.array([[2, 0]], np.int32))
    level.seq_lens, level.segment_indptr = np.array([8], np.int32), np.array([1, 2], np.int32)
    case = types.SimpleNamespace(batch=4, dtype="fp16")
    k, v, qo, kv, ids, last = adapters.flashinfer_cascade.level_of(case, level, 3, 10)
    assert list(qo) == [0, 1, 2, 4] and list(kv) == [0, 0, 3, 3] and list(last) == [0, 2, 0]
    assert np.array_equal(k[ids - 10].reshape(-1)[:8], [*cache[2].reshape(-1), *cache[0].reshape(-1)[:2]])
    assert v.shape == (6, 3, 1, 1) and ids.dtype == np.int32


def test_case_of_one_key_is_what_a_kernel_expects(adapters):
    case = adapters.on_gpu.one_key(dtype="bf16", kv_dtype="e4m3", head_dim=64, group=4)
    assert case.q.dtype == elements.STORED["bf16"] and case.k_cache.dtype == elements.STORED["e4m3"]
    from paged_attention import attend_all

    case.load, case.store = elements.to_float32, lambda out, values, dtype: None
    case.q = elements.to_float32(case.q, "bf16")
    case.load = lambda array, dtype="fp32": elements.to_float32(array, dtype)
    attend_all(case, case.seq_lens)


WRONG = """
import assay
import numpy as np
from right_kernels import MERGE, merge_pair

@assay.kernel(family="merge_state", declaration=MERGE)
def NAME(case):
    merge_pair(case)
    case.out[...] = 0
"""


def test_no_adapter_ends_the_run():
    rows, printed = run_all(
        f"{HERE / 'right_kernels.py'}:merge_state",
        adapter("wrong", WRONG),
        adapter("not_there", "import no_such_module\n"),
        adapter("unprepared", "def NAME(case): pass\ndef prepare(): raise OSError('no GPU')\n"),
        adapter("ends", "import os\nos._exit(9)\n"),
    )
    late, said = run_all(adapter("sleeps", "import time\ntime.sleep(1000)\n"), "--limit=2")
    assert late["sleeps"]["verdict"] == "not run" and "not done after 2" in said
    assert [row["verdict"] for row in rows.values()] == ["pass", "FAIL", "not run", "not run", "not run"]
    right, wrong = rows["merge_state"], rows["wrong"]
    assert right["properties"][0] > 5 and right["properties"][1] == 0 and right["covered"][0] == right["covered"][1] > 0
    assert wrong["properties"][1] > 0 and "\nfamily = merge_state\n" in wrong["smallest_case"]
    assert json.loads(pathlib.Path(wrong["file"]).read_text())["declaration"]["arithmetic"]["max_splits"] == 1024
    for line in ("| within_budget: ", "No module named 'no_such_module'", "OSError: no GPU", "ended with 9"):
        assert line in printed, printed
    # Columns begin at one place in every line.
    assert len({tuple(i for i, c in enumerate(line) if c == "|")[:6] for line in printed.splitlines()}) == 1


def test_what_proves_nothing_is_no_pass(adapters):
    run = {"property": "within_budget", "cases": 0, "undecided": 0, "error": ""}
    kernel = {"cases": 0, "classes": [], "not_covered": ["fp8"], "envelope": {}, "median_budget": 0.0}
    report = {"kernels": [{**kernel, "gaps": ["no property decided a case"]}], "runs": [run]}
    row = adapters.run_all.summary({"exit_code": 4, "findings": [], "report": report})
    assert (row["verdict"], row["properties"], row["why"]) == ("no proof", [0, 0, 1], "no property decided a case")
