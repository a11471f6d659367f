# SPDX-License-Identifier: Apache-2.0
"""A worker's messages, memory, cases and replies, in this process."""
import json
import os
import socket
import struct
import sys
import tempfile
import threading

import numpy as np
import pytest
from assay import case, declaration, elements, worker, worker_errors
from assay.spec import kernel
from hypothesis import given, settings
from hypothesis import strategies as st
from test_judge_drawn import drawn

JSON = st.recursive(st.none() | st.booleans() | st.integers(-(1 << 60), 1 << 60) | st.text(max_size=9), lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=3), x, max_size=3))


def channel():
    """(Channel, the harness's end)."""
    here, there = socket.socketpair()
    return worker.Channel(there.detach()), here


@settings(drawn, max_examples=50)
@given(st.lists(JSON, min_size=1, max_size=3))
def test_messages_come_and_go_as_they_are(messages):
    ours, theirs = channel()
    with ours.socket, theirs:
        for message in messages:
            text = json.dumps(message).encode()
            theirs.sendall(struct.pack("=Q", len(text)) + text)
        for message in messages:
            assert ours.receive() == message
            ours.send(message)
            size = struct.unpack("=Q", theirs.recv(8))[0]
            assert json.loads(theirs.recv(1 << 20)[:size]) == message


def test_a_message_of_many_parts_and_an_end():
    ours, theirs = channel()
    text = json.dumps(["x" * 3_000_000]).encode()
    sender = threading.Thread(target=lambda: (theirs.sendall(struct.pack("=Q", len(text)) + text + b"\1\0\0"), theirs.close()))
    sender.start()
    assert ours.receive() == ["x" * 3_000_000]
    sender.join()
    assert ours.receive() is None  # it ended within a size
    ours.socket.close()
    for sent in (b"", struct.pack("=Q", 9) + b"{}"):
        ours, theirs = channel()
        theirs.sendall(sent)
        theirs.close()
        assert ours.receive() is None
        with pytest.raises(ValueError):
            ours.send(float("nan"))
        ours.socket.close()


def test_memory_is_mapped_again_where_it_has_grown():
    with tempfile.TemporaryFile() as file:
        file.truncate(1 << 20)
        memory, maps = worker.Memory(file.fileno()), []
        for size in (4096, 100, 4096, 1 << 20, 8192):
            kept, address = memory.room(size)
            assert len(kept) >= size and address == np.frombuffer(kept, np.uint8).ctypes.data
            maps.append(kept)
            kept[size - 1] = size % 251
            file.seek(size - 1)
            assert file.read(1) == bytes([size % 251])
        assert maps[0] is maps[1] is maps[2] and maps[3] is maps[4] is not maps[2]


STORED = {"fp16": np.float16, "bf16": np.uint16, "fp32": np.float32, "e4m3": np.uint8, "e5m2": np.uint8, "int32": np.int32}


@st.composite
def described(draw):
    """(memory, call, the array of each tensor) as a harness describes it: any offset, gaps between rows, inputs and outputs."""
    memory, call, there, at = np.zeros(1 << 12, np.uint8), {"dtype": draw(st.sampled_from(["bf16", "fp16"])), "head_dim": 3, "lse": None}, {}, 0
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    for name in ("q", "k_cache", "out", "levels"):
        dtype = draw(st.sampled_from(sorted(set(STORED) - {"int32"})))
        rows, columns, gap = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(0, 2))
        item = np.dtype(STORED[dtype]).itemsize
        values = elements.from_float32(rng.standard_normal((rows, columns)), dtype)
        flat = memory[at : at + rows * (columns + gap) * item].view(STORED[dtype]).reshape(rows, columns + gap)
        flat[:, :columns], flat[:, columns:] = values, 7
        tensor = {"dtype": dtype, "shape": [rows, columns], "strides": [columns + gap, 1], "offset": at, "output": name == "out"}
        there[name] = (dtype, values)
        call[name] = [{"k_cache": tensor, "page_size": 4}] if name == "levels" else tensor
        at += flat.nbytes + 8 - flat.nbytes % 8 + 8 * draw(st.integers(0, 2))
    return memory, call, there


@settings(drawn, max_examples=80)
@given(described(), st.integers(0, 2))
def test_a_case_is_the_memory_as_it_is_described(made, base):
    memory, call, there = made
    offset = 8 * base
    seen = case.Case({**call, **{n: {**t, "offset": t["offset"] - offset} for n, t in call.items() if isinstance(t, dict)}}, memory, memory.ctypes.data + offset)
    assert (seen.dtype, seen.head_dim, seen.lse) == (call["dtype"], 3, None)
    for name in ("q", "k_cache", "out"):
        dtype, values = there[name]
        array = getattr(seen, name)
        assert array.dtype == STORED[dtype] and array.tobytes() == values.tobytes() and array.flags.writeable == (name == "out")
        assert seen.load(array).tobytes() == elements.to_float32(values, dtype).tobytes()
        assert seen.load(array[0], dtype).tobytes() == elements.to_float32(values[0], dtype).tobytes()
    before = memory.copy()
    seen.store(seen.out, np.full(seen.out.shape, 1.5))
    assert (seen.load(seen.out) == 1.5).all()
    changed = np.flatnonzero(before != memory)
    o = call["out"]
    assert changed.size <= seen.out.nbytes and (not changed.size or changed.min() >= o["offset"] and changed.max() < o["offset"] + o["shape"][0] * o["strides"][0] * seen.out.itemsize)
    if base == 0:
        (level,) = seen.levels
        assert level.page_size == 4 and level.k_cache.tobytes() == there["levels"][1].tobytes() and not level.k_cache.flags.writeable
        assert seen.load(level.k_cache).tobytes() == elements.to_float32(there["levels"][1], there["levels"][0]).tobytes()
    with pytest.raises(ValueError, match="name the dtype"):
        seen.store(seen.out[:1], 0.0)


@settings(drawn, max_examples=40)
@given(described())
def test_tensors_of_torch_have_the_values_of_a_case(made):
    torch = pytest.importorskip("torch")
    memory, call, there = made
    seen = case.Case(call, memory, memory.ctypes.data)
    t = seen.torch()
    assert vars(t).keys() == {name for name in vars(seen) if not name.startswith("_")} and (t.dtype, t.head_dim, t.lse) == (seen.dtype, 3, None)
    kinds = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
    for name, tensor, array in (("q", t.q, seen.q), ("k_cache", t.k_cache, seen.k_cache), ("out", t.out, seen.out), ("levels", t.levels[0].k_cache, seen.levels[0].k_cache)):
        assert tensor.dtype == kinds[there[name][0]] and tensor.data_ptr() == array.ctypes.data
        assert np.array_equal(tensor.float().numpy(), elements.to_float32(there[name][1], there[name][0]), equal_nan=True)
    t.q[...] = 0  # found by the harness, not refused here
    assert not seen.q.any()


def test_a_part_of_a_larger_call_counts_its_tokens_from_zero():
    torch = pytest.importorskip("torch")
    memory = np.zeros(64, np.uint8)
    memory[:16].view(np.int32)[:] = [5, 7, 7, 10]
    tensor = {"dtype": "int32", "shape": [4], "strides": [1], "offset": 0, "output": False}
    seen = case.Case({"dtype": "bf16", "qo_indptr": tensor}, memory, memory.ctypes.data)
    assert seen.qo_indptr.tolist() == [0, 2, 2, 5] and memory[:16].view(np.int32).tolist() == [5, 7, 7, 10]
    assert seen.torch().qo_indptr.tolist() == [0, 2, 2, 5] and seen.torch().qo_indptr.dtype == torch.int32
    assert case.Case({"dtype": "bf16", "qo_indptr": None}, memory, memory.ctypes.data).qo_indptr is None


class Asked:
    """A harness that asks for calls and keeps the replies."""

    def __init__(self, *requests):
        self.requests, self.replies, self.rooms = list(requests), [], []
        self.memory = np.zeros(256, np.uint8)

    def receive(self):
        return self.requests.pop(0) if self.requests else None

    def send(self, message):
        self.replies.append(message)

    def room(self, size):
        self.rooms.append(size)
        return self.memory, self.memory.ctypes.data


class Kernel:
    def __init__(self, answer):
        self.answer, self.seen = answer, []

    def call(self, seen, asked):
        self.seen.append((seen.head_dim, asked))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def test_replies_name_the_request_and_what_came_of_it():
    kernels = [Kernel((worker.OK, "")), Kernel((worker.UNSUPPORTED, "too wide")), Kernel(SystemExit(3))]
    asked = Asked(*({"run": 10 + i, "call": {"head_dim": i}, "bytes": 64 + i, "kernel": k, "ask": i == 1} for i, k in enumerate([0, 1, 2, 0])))
    worker.serve(kernels, asked, asked)
    plain = {"status": 0, "message": ""}
    assert asked.replies[0] == {"reply": 10, **plain} and asked.replies[1] == {"reply": 11, "status": 2, "message": "too wide"} and asked.replies[3] == {"reply": 13, **plain}
    raised = asked.replies[2].pop("raised")
    assert asked.replies[2] == {"reply": 12, **plain} and raised.startswith("SystemExit: 3; at test_worker.py:")
    assert asked.rooms == [64, 65, 66, 67] and kernels[0].seen == [(0, False), (3, False)] and kernels[1].seen == [(1, True)]
    bad = Asked({"run": 1, "call": {"head_dim": 1}, "bytes": 8, "kernel": 9, "ask": False})
    worker.serve(kernels, bad, bad)
    assert bad.replies[0]["raised"].startswith("IndexError")


def small(seen):
    return seen.head_dim < 4


@kernel(family="cascade", declaration=declaration.Declaration(sum_depth=3), supports=small)
def marked(seen):
    return None


def plain(seen):
    return None


def test_a_kernel_is_served_as_it_is_marked_or_described():
    served = worker.Served(f"{__name__}:marked")
    assert served.function is marked and served.spec is marked.__assay__
    described = {"family": "paged", "name": "mine", "declaration": {"sum_depth": 5}, "supports": f"{__name__}:small", "ragged_queries": True}
    served = worker.Served(f"{__name__}:plain", described)
    assert served.function is plain and (served.spec.family, served.spec.name, served.spec.ragged_queries) == ("paged", "mine", True)
    assert served.spec.declaration == declaration.Declaration(sum_depth=5) and served.spec.supports is small
    assert worker.Served(f"{__name__}:plain", {k: v for k, v in described.items() if k != "supports"}).spec.supports is None
    with pytest.raises(ValueError, match=":plain declares nothing: mark it"):
        worker.Served(f"{__name__}:plain")


@pytest.mark.parametrize("arguments, words", [([], "required: target"), (["a:b", "c:d", "--describe", "{}"], "--describe goes with one target"), (["a:b"], "not by hand")])
def test_a_worker_refuses_its_command_line(monkeypatch, capsys, arguments, words):
    monkeypatch.setattr(sys, "argv", ["worker", *arguments])
    monkeypatch.setattr(os, "fstat", lambda fd: (_ for _ in ()).throw(OSError()) if fd in (3, 4) else None)
    with pytest.raises(SystemExit) as ended:
        worker.main()
    assert ended.value.code == 2 and words in capsys.readouterr().err


def test_a_worker_says_its_kernels_and_serves_them(monkeypatch):
    """main() over a channel and a file in the place of the harness's."""
    (ours, theirs), memory = socket.socketpair(), tempfile.TemporaryFile()
    memory.truncate(4096)
    inherited = []
    monkeypatch.setattr(os, "fstat", lambda fd: None)
    monkeypatch.setattr(os, "set_inheritable", lambda *given: inherited.append(given))
    monkeypatch.setattr(worker.faulthandler, "enable", lambda **given: None)
    monkeypatch.setattr(worker, "Channel", lambda fd: asked if fd == 3 else None)
    monkeypatch.setattr(worker, "Memory", lambda fd: asked if fd == 4 else None)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "9")
        monkeypatch.delenv(name)
    monkeypatch.setenv("MKL_NUM_THREADS", "5")
    call = {"head_dim": 1}
    asked = Asked({"run": 1, "call": call, "bytes": 8, "kernel": 1, "ask": False})
    monkeypatch.setattr(sys, "argv", ["worker", f"{__name__}:marked", f"{__name__}:twin"])
    worker.main()
    hello, reply = asked.replies
    assert hello["abi"] == list(declaration.ABI) and hello["name"] == "python" and [k["name"] for k in hello["kernels"]] == ["marked", "twin"]
    assert hello["kernels"] == [marked.__assay__.to_json(), twin.__assay__.to_json()]
    assert reply == {"reply": 1, "status": worker.UNSUPPORTED, "message": "never"} and inherited == [(3, False), (4, False)]
    assert [os.environ[f"{name}_NUM_THREADS"] for name in ("OMP", "OPENBLAS", "MKL")] == ["1", "1", "5"]
    asked = Asked()
    monkeypatch.setattr(sys, "argv", ["worker", f"{__name__}:plain", "--describe", json.dumps({"family": "paged", "name": "told", "declaration": {}})])
    worker.main()
    assert [k["name"] for k in asked.replies[0]["kernels"]] == ["told"]
    for end in (ours, theirs, memory):
        end.close()


@kernel(family="merge_state", declaration=declaration.Declaration(), name="twin")
def twin(seen):
    raise worker_errors.Unsupported("never")
