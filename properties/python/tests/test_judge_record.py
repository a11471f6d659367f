# SPDX-License-Identifier: Apache-2.0
"""The file of a failed call: it says again what was said, holds the row alone, and what is no such file is refused by name."""
import io
import json
import pathlib
import subprocess
import sys
import zipfile

import assay
import numpy as np
import pytest
from assay import judging
from assay._judge import parts
from assay._judge import record as judge_record
from assay._judge.excerpt import excerpt
from test_judge import MISTAKES, SPOILERS, Call, library  # noqa: F401  (a fixture)


def same(first, second):
    """Whether two reports say the same of the same element."""
    return (first.verdict, first.worst) == (second.verdict, second.worst)


def recorded(*arguments, **options):
    """The error of a call that fails, and what its file says."""
    with pytest.raises(assay.AttentionError) as raised:
        assay.assert_attention(*arguments, **options)
    return raised.value, judge_record.judge(raised.value.path)


@pytest.mark.parametrize("mistake", [*MISTAKES, *SPOILERS])
def test_a_file_says_what_the_call_said(mistake):
    call = Call()
    out, lse = SPOILERS[mistake](*call.run()) if mistake in SPOILERS else call.copy(**MISTAKES[mistake](call)).run()
    arguments = dict(page_table=call.table, seq_lens=call.lens, qo_indptr=call.cu, lse=lse, like="fa2", sm_scale=call.scale)
    error, again = recorded(out, call.q, (call.k, call.v), **arguments)
    assert same(error.report, again), again
    assert error.path.parent == pathlib.Path("findings") and str(error).endswith(f"reproduce: python3 -m assay judge {error.path}")


def test_merges():
    draw = np.random.default_rng(3)
    o, lse = draw.standard_normal((3, 5, 4, 8)).astype(np.float32), draw.standard_normal((3, 5, 4)).astype(np.float32)
    out = o.mean(0)
    with pytest.raises(assay.AttentionError) as raised:
        assay.assert_merge(out, o, lse)
    assert same(raised.value.report, judge_record.judge(raised.value.path))
    with pytest.raises(assay.AttentionError) as raised:
        assay.assert_merge(out, o, lse, findings=None)
    assert raised.value.path is None and "reproduce" not in str(raised.value)


def a_file():
    call = Call()
    out, lse = SPOILERS["one LSE lost"](*call.run())
    error, _ = recorded(out, call.q, (call.k, call.v), page_table=call.table, seq_lens=call.lens, qo_indptr=call.cu, lse=lse)
    return error.path


@pytest.mark.parametrize("kind", ["attention", "merge"])
def test_a_file_is_named_after_all_that_it_holds(kind):
    """Any element, number or place that differs gives another file; the same call the same one."""
    draw = np.random.default_rng(3)
    o, lse, scale = draw.standard_normal((2, 1, 2, 8)).astype(np.float32), draw.standard_normal((2, 1, 2)).astype(np.float32), np.ones(2, np.float32)
    if kind == "merge":
        call = judging.merge_call(o[0], o, lse, lse=lse[0])
    else:
        call = judging.attention_call(o[0].astype(np.float16), o[0].astype(np.float16), (o.astype(np.float16), o.astype(np.float16)), page_table=np.array([[0]]), seq_lens=[1],
                                      lse=lse[0], alibi_slopes=scale, sinks=scale)  # fmt: skip
    row, names = excerpt(call, 0), set()
    for name in [None, *row.given()]:
        arrays = {} if name is None else {name: row.tensors[name].numpy().copy()}
        for array in arrays.values():
            array.reshape(-1)[-1] += 1
        names.add(judge_record.write(parts.changed(row, **arrays), {}, "kept"))
    names |= {judge_record.write(row, {"row": 3}, "kept"), judge_record.write(parts.changed(row, {"lse_base": 1}), {}, "kept")}
    assert judge_record.write(row, {}, "kept") in names and len(names) == len(row.given()) + 3 == len(list(pathlib.Path("kept").iterdir()))


def test_a_file_holds_the_row_and_its_keys_alone():
    q, k = np.zeros((64, 1, 8), np.float16), np.zeros((1, 1 << 16, 1, 8), np.float16)
    out = np.zeros((64, 1, 8), np.float16)
    out[7] = 1
    error, again = recorded(out, q, (k, k), seq_lens=[100])
    assert same(error.report, again)
    with np.load(error.path) as held:
        assert held["k"].shape == (3, 16, 1, 8) and held["q"].shape == (1, 1, 8)


def command(*paths):
    return subprocess.run([sys.executable, "-B", "-m", "assay", "judge", *map(str, paths)], text=True, capture_output=True)


def test_the_command_prints_the_verdict_and_exits_with_it():
    path = a_file()
    ran = command(path)
    assert ran.returncode == 1 and ran.stdout.startswith(f"{path}: outside: row 1 (request 0 query 1) head 1 the LSE is 0"), ran
    pathlib.Path("no.npz").write_text("PK")
    ran = command(path, "no.npz", "absent.npz")
    assert ran.returncode == 2 and "no.npz: it is no .npz file" in ran.stderr and "absent.npz: " in ran.stderr, ran
    assert ran.stdout.startswith(f"{path}: outside")


def rewritten(path, header=None, replace=(), drop=()):
    """The same file with other fields of its header, other members, or without some."""
    with np.load(path) as held:
        members = {name: held[name] for name in held.files}
    changed = json.loads(members["header"].tobytes())
    for field, value in (header or {}).items():
        at = changed
        *outer, last = field.split(".")
        for name in outer:
            at = at[name]
        at[last] = value
    members["header"] = np.frombuffer(json.dumps(changed).encode(), np.uint8)
    members.update(replace)
    with zipfile.ZipFile("changed.npz", "w") as archive:
        for name, value in members.items():
            if name in drop:
                continue
            data = io.BytesIO()
            np.save(data, value) if isinstance(value, np.ndarray) else data.write(value)
            archive.writestr(f"{name}.npy", data.getvalue())
    return "changed.npz"


PICKLE = io.BytesIO()
np.save(PICKLE, np.array([{}], object), allow_pickle=True)
#: A header of an array so large, and no data.
HUGE = b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<u2', 'fortran_order': False, 'shape': (99999999999, 2, 8), }".ljust(117) + b"\n"


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(header={"format": 1}), "format is 1, expected 2"),
        (dict(header={"kind": "softmax"}), "kind is 'softmax'"),
        (dict(header={"queries": 1 << 40}), "queries is 1099511627776, expected an integer, 1 .. 1048576"),
        (dict(header={"queries": True}), "queries is True"),
        (dict(header={"scalars.causal": "yes"}), "scalars.causal is 'yes'"),
        (dict(header={"scalars.more": 1}), "scalars has not the fields"),
        (dict(header={"scalars.sm_scale": 10**400}), "scalars.sm_scale is 1000000.*, expected a number"),
        (dict(header={"dtypes.k": ["fp16"]}), r"dtypes.k is \['fp16'\]"),
        (dict(replace={"header": np.frombuffer(b"[" * 60000, np.uint8)}), "recursion"),
        (dict(header={"scalars.sm_scale": None}), "scalars.sm_scale is None"),
        (dict(header={"scalars.lse_base": 7}), "lse_base is 7"),
        (dict(header={"arithmetic.rcp_rel_error": 2.0}), "rcp_rel_error is 2"),
        (dict(header={"dtypes.k": "object"}), "dtypes.k is 'object'"),
        (dict(header={"dtypes.k": "fp32"}), "k is uint16, expected float32"),
        (dict(header={"place": {"row": [1]}}), r"place.row is \[1\]"),
        (dict(header={"like": 3}), "dtypes or like"),
        (dict(replace={"header": np.zeros(5, np.uint8)}), "header is no JSON"),
        (dict(replace={"header": np.zeros(1 << 17, np.uint8)}), "header has 131072 bytes, at most 65536"),
        (dict(replace={"k": PICKLE.getvalue()}), "k is object"),
        (dict(replace={"k": HUGE}), "k has 3199999999968 bytes, at most"),
        (dict(replace={"k": HUGE.replace(b"99999999999, 2", b"64, 2         ")}), r"k has not the 2048 bytes of its shape \[64, 2, 8\]"),
        (dict(replace={"k": b"hello"}), "k is no array"),
        (dict(replace={"page_table": np.full((1, 3), 1 << 40)}), "page_table names page 1099511627776"),
        (dict(replace={"page_table": np.zeros((1, 0), np.int64)}), r"seq_lens\[0\] is 37"),
        (dict(replace={"q": np.zeros((2, 6, 32), np.uint16)}), "q has shape"),
        (dict(replace={"other": np.zeros(1)}), "it holds 'other.npy', which is no array of attention"),
        (dict(drop=("k",)), "k is missing"),
        (dict(drop=("header",)), "header is missing"),
    ],
)
def test_what_is_no_such_file_is_refused_by_name(change, words):
    path = rewritten(a_file(), **change)
    with pytest.raises(judge_record.RecordError, match=words):
        judge_record.judge(path)


def test_sizes_are_looked_at_before_anything_is_read(monkeypatch):
    path = a_file()
    monkeypatch.setattr(judge_record, "MOST_BYTES", 1000)
    with pytest.raises(judge_record.RecordError, match="at most 1000 are read"):
        judge_record.judge(path)


def test_the_limit_is_of_all_arrays_together(monkeypatch):
    path = a_file()
    with zipfile.ZipFile(path) as archive:
        whole = sum(member.file_size for member in archive.infolist())
    monkeypatch.setattr(judge_record, "MOST_BYTES", whole)
    judge_record.judge(path)
    monkeypatch.setattr(judge_record, "MOST_BYTES", whole - 1)
    with pytest.raises(judge_record.RecordError, match=f"it holds {whole} bytes, at most {whole - 1} are read"):
        judge_record.judge(path)


@pytest.mark.parametrize("name", ["out", "o_in", "lse_in"])
def test_what_a_merge_lacks_is_named(name):
    o, lse = np.ones((2, 1, 2, 8), np.float16), np.zeros((2, 1, 2), np.float32)
    path = rewritten(judge_record.write(judging.merge_call(o[0], o, lse), dict(row=0), "kept"), drop=(name,))
    with pytest.raises(judge_record.RecordError, match=f"{name} is missing"):
        judge_record.judge(path)


def test_every_byte_of_a_file_may_be_wrong():
    good = pathlib.Path(rewritten(a_file())).read_bytes()
    draw = np.random.default_rng(1)
    for _ in range(1000):
        data = bytearray(good)
        for _ in range(draw.integers(1, 4)):
            data[draw.integers(len(data))] = draw.integers(256)
        pathlib.Path("damaged.npz").write_bytes(data[: draw.integers(1, len(data)) if draw.integers(4) == 0 else None])
        try:
            judge_record.judge("damaged.npz")
        except judge_record.RecordError:
            pass


@pytest.mark.parametrize("kv_dtype", ["float8_e4m3fn", "float8_e5m2", "bfloat16"])
def test_tensors_of_torch_keep_their_types(kv_dtype):
    torch = pytest.importorskip("torch")
    kv = [torch.ones(2, 5, 1, 16).to(getattr(torch, kv_dtype)) for _ in "kv"]
    q = torch.zeros(2, 1, 16, dtype=torch.bfloat16)
    error, again = recorded(q, q, kv, seq_lens=torch.tensor([5, 3], dtype=torch.int32))
    assert error.report.findings == 32 and same(error.report, again), again
