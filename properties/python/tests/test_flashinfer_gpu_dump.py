# SPDX-License-Identifier: Apache-2.0
"""A dump that FlashInfer wrote on an H100 (recorded/flashinfer_gpu.py made the calls): every call is inside, and a spoiled one is not."""
import json
import pathlib
import tarfile

import numpy as np
import pytest
from assay._engines import dump_judge
from test_judge import library  # noqa: F401  (a fixture)

RECORDED = pathlib.Path(__file__).parent / "recorded" / "flashinfer_gpu.tar.xz"
RUNS = {
    "BatchDecodeWithPagedKVCacheWrapper.run", "BatchPrefillWithPagedKVCacheWrapper.run", "MultiLevelCascadeAttentionWrapper.run", "merge_state",
    "merge_states",
}  # fmt: skip


@pytest.fixture
def dump(tmp_path, library):  # noqa: F811
    with tarfile.open(RECORDED) as file:
        file.extractall(tmp_path / "dump")
    return tmp_path / "dump"


def outcomes(dump):
    said = [(name, getattr(outcome, "verdict", outcome)) for _, name, outcome, _ in dump_judge.judged(dump)]
    return {name for name, _ in said}, [pair for pair in said if pair[1] != "inside"]


def folder_of(dump, name):
    """Of the first call of that name."""
    return sorted(path for path in dump.iterdir() if f"_{name}_call" in path.name)[0]


def changed(path, name, change):
    """Rewrites one tensor of a .safetensors, a header and its bytes."""
    raw = bytearray(path.read_bytes())
    begin = 8 + int.from_bytes(raw[:8], "little")
    entry = json.loads(raw[8:begin])[name]
    first, last = (begin + offset for offset in entry["data_offsets"])
    kind = {"F16": np.float16, "F32": np.float32, "I32": np.int32}[entry["dtype"]]
    array = np.frombuffer(bytes(raw[first:last]), kind).reshape(entry["shape"]).copy()
    raw[first:last] = np.ascontiguousarray(change(array), kind).tobytes()
    path.write_bytes(bytes(raw))


def test_every_call_is_inside(dump):
    names, others = outcomes(dump)
    assert names == RUNS and not others


@pytest.mark.parametrize("name", sorted(RUNS))
def test_a_spoiled_output_is_found(dump, name):
    path = folder_of(dump, name) / "outputs.safetensors"
    header = json.loads(path.read_bytes()[8 : 8 + int.from_bytes(path.read_bytes()[:8], "little")])
    changed(path, sorted(key for key in header if key != "__metadata__")[0], lambda o: np.roll(o, 1, axis=1))
    assert (name, "outside") in outcomes(dump)[1]


def test_the_last_page_counts(dump):
    """One token more in the last page of the first request: keys that the kernel did not see."""
    path = folder_of(dump, "BatchDecodeWithPagedKVCacheWrapper.plan") / "inputs.safetensors"
    changed(path, "arg_3", lambda last: last + np.array([1, 0, 0], np.int32))
    assert outcomes(dump)[1] == [("BatchDecodeWithPagedKVCacheWrapper.run", "outside")]
