# SPDX-License-Identifier: Apache-2.0
"""What beside_bench makes of the times of a bench, of C calls and of operators. Without a GPU; the bench is a stand-in that is run."""
import json
import sys

import pytest

import beside_bench

V1, V2 = beside_bench.KERNELS
CELLS = [
    {"cell": "b8", "kernel": V1, "us": 10.0, "early_us": 9.0},
    {"cell": "b8", "kernel": V2, "us": 20.0, "early_us": 19.0},
    {"cell": "cascade b8", "kernel": V2, "us": 7.0, "plan_us": 1.0},  # a cascade cell times version 2, too
    {"cell": "merge b8", "kernel": "merge_state", "us": 3.0},
]


def stand_in(folder, cells=CELLS):
    """A bench_decode that writes these cells, and after them what it was called with."""
    program = folder / "kernels/bench/bench_decode"
    program.parent.mkdir(parents=True)
    text = f"import json, sys\njson.dump({{'cells': {cells!r}}}, open(sys.argv[1], 'w'))\nassert sys.argv[2] == 'b8'\n"
    program.write_text(f"#!{sys.executable}\n{text}")
    program.chmod(0o755)
    return folder


def test_times_of_decode_cells_alone(tmp_path):
    assert beside_bench.bench_times(stand_in(tmp_path), "b8") == {("b8", V1): 10.0, ("b8", V2): 20.0}


def test_a_bench_that_fails_is_no_time(tmp_path):
    with pytest.raises(beside_bench.subprocess.CalledProcessError):
        beside_bench.bench_times(stand_in(tmp_path), "another cell")


def times(v1, v2):
    return {("b8", V1): v1, ("b8", V2): v2}


def test_an_operator_is_held_against_the_c_call_and_the_bench_beside_it():
    rows = beside_bench.rows_of(["b8"], times(10.0, 20.0), times(12.0, 20.0), times(12.1, 20.3), times(10.2, 20.0), 0.01)
    assert [row["within"] for row in rows] == [True, False]
    assert rows[0]["operator"] == pytest.approx(12.1 / 12) and rows[0]["bench"] == pytest.approx(12.1 / 10.1)
    assert rows[0]["control"] == pytest.approx(1.02)
    lines = [beside_bench.line(row) for row in rows]
    assert not lines[0].endswith("beyond") and lines[1].endswith("beyond")
    assert len(lines[0]) == len(beside_bench.HEADER)
    json.dumps(rows)


def test_an_operator_that_is_faster_is_beyond_too():
    rows = beside_bench.rows_of(["b8"], times(10, 20), times(10, 20), times(9.8, 20), times(10, 20), 0.01)
    assert [row["within"] for row in rows] == [False, True]


@pytest.mark.parametrize("absent", range(4))
def test_a_time_that_is_not_there_is_said(absent):
    four = [times(10.0, 20.0) for _ in range(4)]
    del four[absent]["b8", V2]
    name = ("bench", "C", "operator", "bench")[absent]
    with pytest.raises(SystemExit, match=f"b8, {V2}: no time by {name}"):
        beside_bench.rows_of(["b8"], *four, 0.01)


def test_without_a_gpu_it_says_so(monkeypatch, capsys):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["beside_bench.py"])
    assert beside_bench.main() == 3 and "no CUDA device" in capsys.readouterr().err
