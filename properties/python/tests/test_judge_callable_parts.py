# SPDX-License-Identifier: Apache-2.0
"""Parts of the judge of functions that need no process: results of a batch, its table, who may talk, calls, judges that end."""
import concurrent.futures
import dataclasses
import html
import json
import math
import os
import types

import numpy as np
import pytest
from assay._callable import arguments, batch, calling, judge, judges, peers, process, serving, table, work
from assay._callable.results import Results
from assay._callable.shape import Shape

# Results of a batch


def line(number, said="pass", of="x", **more):
    return json.dumps({"line": number, "of": of, "verdict": said, **more}).encode() + b"\n"


def test_results_are_taken_up_and_what_is_none_is_refused(tmp_path):
    path = tmp_path / "r"
    whole = line(2) + line(1, "finding")
    for torn in (b"", b"{", b'{"line": 3, "of', b'{"line": 3}'):
        path.write_bytes(whole + torn)
        results = Results(path)
        assert sorted(results.by_line) == [1, 2] and path.read_bytes() == whole and not results.changed()
        results.add(json.loads(line(7)))
        assert path.read_bytes() == whole + line(7) and 7 in results.by_line and not results.changed()
        os.close(results._fd)
    for at, (more, words) in enumerate(((b"notes", "line 3 is no result of a batch"), (b"{}\n", "line 3 is no result of a batch"), (line(2), "line 3 is there twice"), (line("4"), "line 3 is no result"),
                        (line(4, "fine"), "line 3 is no result"), (line(4, of=3), "line 3 is no result"), (b"[1]\n", "line 3 is no result"), (b"{\n", "line 3 is no result"), (b"\n", "line 3 is no result"))):  # fmt: skip
        path = tmp_path / f"r{at}"
        path.write_bytes(whole + more)
        with pytest.raises(ValueError, match=f"^assay: {path}: {words}"):
            Results(path)
        assert path.read_bytes() == whole + more


def test_one_batch_writes_a_file_at_a_time_and_changes_are_seen(tmp_path):
    results = Results(tmp_path / "r")
    with pytest.raises(ValueError, match="another batch writes it"):
        Results(tmp_path / "r")
    results.add(json.loads(line(1)))
    assert not results.changed()
    (tmp_path / "r").write_bytes(line(1, "finding"))
    assert results.changed()


@pytest.mark.parametrize("found, code", [
    ([], 0), (["pass"], 0), (["pass", "contract"], 1), (["contract", "undecided"], 4), (["undecided", "arithmetic"], 1), (["finding", "pass"], 1),
    (["error line"], 2), (["pass", "error line"], 2), (["error judge", "pass"], 4), (["error line", "error judge"], 4), (["finding", "error judge"], 1), (["undecided", "error line"], 4),
])  # fmt: skip
def test_the_exit_code_of_results(tmp_path, found, code):
    results = Results(tmp_path / "r")
    for number, said in enumerate(found):
        word, _, whose = said.partition(" ")
        results.add({"line": number, "of": "x", "verdict": word, **({"whose": whose} if whose else {})})
    assert results.exit_code() == code


def test_lines_of_a_batch(tmp_path):
    path = tmp_path / "b"
    lines = [b'{"target": "f:a", "id": 1}', b"  ", b'{"target": "f:a", "id": "1"}', b'{"target": "f:b", "id": 1}', b"{", b'{"id": 2}', b"x" * ((1 << 20) + 9), b' {"target": "f:a", "seed": 4}']
    path.write_bytes(b"\n".join(lines))
    read = batch.read_lines(path, {"shape": "keys=64", "seed": 3})
    assert [(one.number, one.id, one.error) for one in read] == [
        (1, 1, ""), (3, "1", ""), (4, None, "assay: id: that of line 1"), (5, None, "assay: no JSON: JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (6, 2, "assay: target: missing"), (7, None, "assay: the object has more than 1048576 bytes"), (8, None, ""),
    ]  # fmt: skip
    shape = str(Shape.parse("keys=64"))
    assert read[0].arguments == {"target": "f:a", "shape": shape, "seed": 3} and read[-1].arguments["seed"] == 4 and read[4].arguments is None
    assert read[0].of == read[1].of != read[-1].of and len({one.of for one in read}) == len(read) - 1 and all(len(one.of) == 16 for one in read)
    assert read[0].result({"verdict": "pass"}) == {"line": 1, "id": 1, "of": read[0].of, "target": "f:a", "shape": shape, "verdict": "pass"}
    assert read[3].result({"verdict": "error"}) == {"line": 5, "of": read[3].of, "verdict": "error"}
    there = types.SimpleNamespace(path="r", by_line={1: {"of": read[0].of, "id": 1}, 5: {"of": read[3].of}})
    assert batch.left(read, there, "b") == [read[at] for at in (1, 2, 4, 5, 6)]
    for number, result in ((2, {"of": ""}), (1, {"of": read[0].of, "id": 2}), (1, {"of": "other", "id": 1}), (1, {"of": read[0].of})):
        there.by_line = {number: result}
        with pytest.raises(ValueError, match=f"^assay: r: its result of line {number} is not that of line {number} of b with these options$"):
            batch.left(read, there, "b")


def test_a_table_says_what_every_candidate_got(tmp_path):
    results = [{"line": 3, "id": "<a>", "target": "f:a&b", "shape": "s", "verdict": "pass", "arithmetic": "fp32", "score": 1, "seconds": 0.5, "stages": [{"verdict": "pass", "stage": "t", "cause": "no"}]},
               {"line": 4, "verdict": "finding", "stages": [3, {"verdict": "pass"}, {"verdict": "finding", "stage": "u", "cause": "a\u202eb"}, {"verdict": "finding", "stage": "v"}]},
               {"line": 5, "verdict": "error", "cause": "why", "stages": "x"}, {"line": 6, "verdict": "error", "stages": {}}]  # fmt: skip
    assert [table.cause(result) for result in results] == ["", "u: a\u202eb", "why", ""]
    table.write(tmp_path / "t.html", results)
    text = (tmp_path / "t.html").read_text()
    rows = [html.unescape(row) for row in text.split("<tbody>")[1].split("</tbody>")[0].split("</tr>")[:-1]]
    cells = [[cell.split("</td>")[0] for cell in row.split('">')[2:]] for row in rows]
    assert cells == [["<a>", "f:a&b", "s", "pass", "fp32", "1", "0.5", ""], ["line 4", "", "", "finding", "", "", "", "u: a?b"], ["line 5", "", "", "error", "", "", "", "why"],
                     ["line 6", "", "", "error", "", "", "", ""]]  # fmt: skip
    assert "<a>" not in text and "<p>4 candidates: 2 error, 1 finding, 1 pass</p>" in text and '<tr class="finding">' in text and text.count("<th>") == 8 and text.count('<td class="n">') == 8
    assert (tmp_path / "t.html").stat().st_mode & 0o777 == 0o644 and list(tmp_path.iterdir()) == [tmp_path / "t.html"]
    with pytest.raises(KeyError):
        table.write(tmp_path / "t.html", [{}])
    assert (tmp_path / "t.html").read_text() == text and list(tmp_path.iterdir()) == [tmp_path / "t.html"]


# A server


@pytest.mark.parametrize("headers, said", [
    ({}, ""), ({"Host": "localhost"}, ""), ({"Host": "127.0.0.1:80"}, ""), ({"Host": "localhost:9"}, ""), ({"Host": "evil.org"}, "Host: not"), ({"Host": "evil.org:80"}, "Host: not"),
    ({"Host": "localhost.evil.org"}, "Host: not"), ({"Origin": "null"}, "the request has an Origin"), ({"Origin": "http://localhost", "Host": "localhost"}, "the request has an Origin"),
])  # fmt: skip
def test_pages_are_refused(headers, said):
    assert peers.page_says(headers)[: len(said) or None] == said


def test_namespaces_of_a_process():
    assert peers._namespaces("self") == peers._namespaces(os.getpid()) >= 1 and peers._namespaces(1 << 30) is None


def test_work_is_taken_within_its_bound():
    class Judges:
        def __init__(self):
            self.made, self.closed = [], False

        def submit(self, given):
            self.made.append(concurrent.futures.Future())
            return self.made[-1]

        def close(self):
            self.closed = True

    of = Judges()
    todo = work.Work(of, 2, 1)
    said = lambda: [todo.status()[name] for name in ("queued", "running", "done", "jobs", "ending")]  # noqa: E731
    first, second, third = (todo.submit({}) for _ in range(3))
    first.set_running_or_notify_cancel()
    assert said() == [2, 1, 0, 2, False]
    with pytest.raises(work.NotTaken, match=r"^1 candidates wait already, as many as may \(--queue\)$"):
        todo.submit({})
    first.set_result({})
    todo.forget(first)
    assert said() == [2, 0, 1, 2, False]
    third.cancel()
    assert said() == [1, 0, 1, 2, False]
    fourth = todo.submit({})
    second.set_running_or_notify_cancel()
    second.set_exception(ValueError())
    assert said() == [1, 0, 2, 2, False] and len(of.made) == 4
    todo.end()
    assert of.closed and said() == [1, 0, 2, 2, True] and not fourth.done()
    with pytest.raises(work.NotTaken, match="^the server ends$"):
        todo.submit({})


# Calls


@pytest.mark.parametrize("text, names, by_name", [
    ("q, k_cache, v_cache, page_table, seq_lens", None, "q k_cache v_cache page_table seq_lens"), ("queries, key_cache, value_cache, block_tables, context_lens, scale=1", None, "q k_cache v_cache page_table seq_lens sm_scale"),
    ("q, kv_cache, *, out, lse, sm_scale, max_seqlen=0, other=3", None, "q kv_cache out lse sm_scale max_seq_len"), ("a, b, c", 3, ""), ("a, b, c=1, *more", 2, ""), ("*all", 5, ""), ("q, /, b", 2, ""),
    ("q, num_heads, num_kv_heads, head_size, block_size, **more", None, "q num_qo_heads num_kv_heads head_dim page_size"),
])  # fmt: skip
def test_parameters_are_known_by_many_names(text, names, by_name):
    found = arguments.Arguments(eval(f"lambda {text}: (locals())"))
    assert (found.names, " ".join(found.by_name.values())) == (names, by_name)
    given = {name: name for name in arguments.NAMES} | {"page_table": None}
    if not by_name:
        assert list(found.call(lambda *got: got, given)) == ["q", "k_cache", "v_cache", "seq_lens"][: names]
    else:
        assert found.call(lambda **got: got, given) == {name: given[ours] for name, ours in found.by_name.items()}


def test_parameters_that_nobody_has_are_named():
    with pytest.raises(ValueError, match="^assay: the function wants 'foo', expected names of q, k_cache, v_cache, kv_cache, "):
        arguments.Arguments(lambda q, foo: 0)
    unknown = type("Compiled", (), {"__signature__": 3, "__call__": lambda *_: 0})()
    assert (arguments.Arguments(unknown).names, arguments.Arguments(unknown).by_name) == (None, {})


def test_what_a_function_is_given_and_returns():
    shape = dict(page_size=4, num_qo_heads=2, num_kv_heads=1, head_dim=8, keys=9, batch=3)
    tensors = dict(q=np.zeros((3, 2, 8), np.float16), k_cache="k", v_cache="v", page_table=None, seq_lens="n")
    seen = {}

    def call(function):
        return calling.Caller(function, "numpy").call(shape, 0.5, tensors)

    def everything(q, kv_cache, sm_scale, max_seq_len, page_size, num_qo_heads, num_kv_heads, head_dim, out, lse):
        seen.update(locals())
        out[...], lse[...] = 1, 2

    out, lse = call(everything)
    assert out is seen["out"] and lse is seen["lse"] and (out == 1).all() and out.dtype == np.float16 and lse.shape == (3, 2) and lse.dtype == np.float32
    assert [seen[name] for name in ("kv_cache", "sm_scale", "max_seq_len", "page_size", "num_qo_heads", "num_kv_heads", "head_dim")] == [("k", "v"), 0.5, 9, 4, 2, 1, 8]
    assert call(lambda q, out: None)[1] is None and np.isnan(call(lambda q, out: None)[0]).all()
    for returned in (tensors["q"], [tensors["q"]], (tensors["q"], None)):
        assert call(lambda q: returned) == (tensors["q"], None) or call(lambda q: returned)[0] is tensors["q"]  # noqa: B023
    bf16 = calling.NumPyTensors().like(np.zeros(2, np.uint16))
    assert bf16.dtype == np.uint16 and (bf16 << 16).astype(np.uint32).size == 2 and (bf16 == 0x7FC1).all()
    for returned, words in ((None, "a NoneType"), (3, "a int"), ((), r"\(\)"), ((tensors["q"],) * 3, r"\(ndarray, ndarray, ndarray\)"), ((None, tensors["q"]), r"\(NoneType, ndarray\)"),
                            (np.ma.zeros(3), "a MaskedArray")):  # fmt: skip
        with pytest.raises(TypeError, match=f"^the function returned {words}, expected out or \\(out, lse\\), plain tensors$"):
            call(lambda q: returned)  # noqa: B023


def test_where_tensors_and_results_lie():
    tensors = {"q": np.zeros((2, 3), np.float32), "k": np.zeros(5000, np.uint16), "n": np.zeros(0, np.int32), "z": np.zeros(1, np.int32)}
    places, end = process._layout(tensors)
    assert places == {"q": {"dtype": "<f4", "shape": [2, 3], "offset": 0}, "k": {"dtype": "<u2", "shape": [5000], "offset": 4096}, "n": {"dtype": "<i4", "shape": [0], "offset": 16384},
                      "z": {"dtype": "<i4", "shape": [1], "offset": 16384}} and end == 20480  # fmt: skip
    memory = bytearray(400)
    results = {"out": np.arange(5, dtype=np.float32), "lse": np.full((2, 1), 7, np.float32)}
    said = serving._put(results, memory, 100, 400)
    assert said == {"out": {"dtype": "<f4", "shape": [5], "offset": 100}, "lse": {"dtype": "<f4", "shape": [2, 1], "offset": 164}}
    assert memory[100:120] == results["out"].tobytes() and memory[164:172] == results["lse"].tobytes() and not any(memory[120:164])
    with pytest.raises(ValueError, match="^lse has 8 bytes, more than there is room for$"):
        serving._put(results, memory, 100, 171)
    serving._put(results, memory, 100, 172)
    request = {"tensors": {"a": {"dtype": "<f4", "shape": [2, 1], "offset": 164}, "b": {"dtype": "<f4", "shape": [0, 3], "offset": 0}}}
    read = serving._arrays(request, memory)
    assert read["a"].tolist() == [[7], [7]] and read["b"].shape == (0, 3)


def results_of(said, begin=64, end=256):
    descriptor = os.memfd_create("test")
    os.pwrite(descriptor, bytes(range(256)), 0)
    closed = []
    candidate = types.SimpleNamespace(memory=descriptor, close=lambda: closed.append(1))
    try:
        return process.Candidate._results(candidate, said, begin, end)
    except process.CandidateError as error:
        assert closed == [1] and error.kind == "type"
        return str(error)
    finally:
        os.close(descriptor)


def test_what_a_candidate_says_of_results_is_not_believed():
    right = {"dtype": "|u1", "shape": [2, 3], "offset": 64}
    assert results_of({"out": right})["out"].tolist() == [[64, 65, 66], [67, 68, 69]] and results_of({"out": {**right, "offset": 250}})["out"].shape == (2, 3)
    for change in ({"offset": 63}, {"offset": 251}, {"offset": "x"}, {"shape": [-1, 3]}, {"shape": [1 << 62, 8]}, {"shape": 3}, {"dtype": "|O8"}, {"dtype": "<f4"}, {"dtype": ["<f4"]}):
        wrong = {**right, **change, **({"shape": [60]} if change == {"dtype": "<f4"} else {})}
        assert str(results_of({"out": wrong})).startswith("results that cannot be read ("), change
    for said in (None, {}, {"lse": right}, {"out": 3}, [1]):
        assert str(results_of(said)).startswith("results that cannot be read ("), said


def test_how_a_process_ended():
    assert [process._ending(code) for code in (-9, 137, 139, 3, 255, 128 + 200)] == ["SIGKILL", "SIGKILL", "SIGSEGV", "exit code 3", "exit code 255", "exit code 328"]


@pytest.mark.parametrize("shape, dims, fits", [
    ("batch=3,heads=4/2,head_dim=8", (3, 4, 8), True), ("batch=3,heads=4/2,head_dim=8", (3, 1, 4, 8), True), ("batch=3,heads=4/2,head_dim=8", (3, 32), True), ("batch=3,heads=4/2,head_dim=8", (4, 3, 8), False),
    ("batch=3,heads=4/2,head_dim=8", (96,), False), ("batch=3,heads=4/2,head_dim=8,q_len=2", (3, 2, 4, 8), True), ("batch=3,heads=4/2,head_dim=8,q_len=2", (3, 2, 32), True),
    ("batch=3,heads=4/2,head_dim=8,q_len=2", (6, 4, 8), False), ("batch=1,heads=1/1,head_dim=8", (8,), True),
])  # fmt: skip
def test_results_in_the_shape_of_their_call(shape, dims, fits):
    shape = Shape.parse(shape)
    values = np.arange(math.prod(dims)).astype(np.float32).reshape(dims)
    expected = (shape.batch, *([] if shape.q_len == 1 else [shape.q_len]), shape.num_qo_heads, shape.head_dim)
    if not fits:
        with pytest.raises(judge.CandidateError, match=rf"^out is \[{', '.join(map(str, dims))}\], expected \[{', '.join(map(str, expected))}\]$"):
            judge._shaped({"out": values}, shape)
        return
    out, lse = judge._shaped({"out": values, "lse": np.zeros(expected[:-1], np.float64)}, shape)
    assert out.shape == expected and out.reshape(-1).tolist() == values.reshape(-1).tolist() and lse.shape == expected[:-1] and lse.dtype == np.float32


def test_types_of_results():
    shape = Shape.parse("batch=1,heads=1/1,head_dim=2")
    half = dataclasses.replace(shape, dtype="fp16")
    for of, kinds in ((shape, (np.int16, np.uint16, np.float32)), (half, (np.float16, np.float32))):
        for kind in (np.int16, np.uint16, np.float16, np.float32, np.float64, np.int32):
            if kind in kinds:
                assert judge._shaped({"out": np.zeros(2, kind)}, of)[0].dtype in (np.uint16, np.float16, np.float32)
                continue
            with pytest.raises(judge.CandidateError, match=f"^out is {np.dtype(kind)}, expected {of.dtype} or fp32$"):
                judge._shaped({"out": np.zeros(2, kind)}, of)


def test_a_judge_that_ends_is_started_once_more(monkeypatch):
    """What a line's error and a judge's end become, and how many are tried."""
    said = []

    class Fake:
        def __init__(self, options):
            said.append(("start", options["threads"], options["limits"]["gigabytes"]))

        def ask(self, given):
            answer = given.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        def close(self):
            said.append("close")

    monkeypatch.setattr(judges, "_Judge", Fake)
    monkeypatch.setattr(judges.os, "cpu_count", lambda: 12)
    of = judges.Judges(3, process.Limits(gigabytes=2))
    ended = judges.JudgeEnded("SIGKILL")
    for answers, expected in (([{"verdict": {"a": 1}}], {"a": 1}), ([{"error": "no"}], {"verdict": "error", "whose": "line", "cause": "no"}), ([ended, {"verdict": 3}], 3),
                              ([ended, OSError("full"), {"verdict": 3}], {"verdict": "error", "whose": "judge", "cause": "the judge's process ended: full"})):  # fmt: skip
        assert of._judged(answers) == expected
    assert said == [("start", 4, 2), "close", ("start", 4, 2), "close", ("start", 4, 2), "close"]
    of._closed = True
    assert of._judged([{}])["cause"] == "the judge's process ended: the judges are closed"
