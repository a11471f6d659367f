# SPDX-License-Identifier: Apache-2.0
"""What keeps a candidate away, call by call of the system; and how a candidate ends that is spoken to."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import types

import callables
import pytest
from assay._callable import child, isolation, process, serving


@pytest.fixture
def libc(monkeypatch):
    """Stands for the C library: keeps what it was asked; no namespaces are allowed."""
    asked = []
    made = types.SimpleNamespace(asked=asked, prctl=lambda *given: asked.append(given) or 0, unshare=lambda flags: asked.append(("unshare", flags)) or -1)
    monkeypatch.setattr(isolation, "_libc", lambda: made)
    return made


def test_memory_is_readable_when_all_who_asked_have_taken_it_back(libc):
    for on in (True, True, False, True, False, False):
        isolation.unreadable(on)
    assert libc.asked == [(4, dumpable, 0, 0, 0) for dumpable in (0, 0, 0, 0, 0, 1)]


def test_a_process_without_namespaces_of_its_own_ends_with_its_parent_and_gets_no_more_rights(libc):
    assert isolation.enter() == isolation.PROCESS
    assert libc.asked == [(1, signal.SIGKILL, 0, 0, 0), (38, 1, 0, 0, 0), ("unshare", 0x10000000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x00020000)]


def test_the_other_end_of_a_socket_is_there_until_it_is_closed():
    ours, theirs = socket.socketpair()
    assert isolation.is_open(ours.fileno())
    theirs.send(b"a message that waits")
    assert isolation.is_open(ours.fileno())
    theirs.close()
    assert not isolation.is_open(ours.fileno())
    ours.close()


def test_a_candidates_process_keeps_its_channel_and_its_memory_for_itself(monkeypatch):
    kept, served = [], []
    monkeypatch.setattr(child.os, "set_inheritable", lambda *given: kept.append(given))
    monkeypatch.setattr(isolation, "enter", lambda: served.append(list(kept)) or "away")
    monkeypatch.setattr(serving, "serve", lambda *given: served.append(given) or 7)
    monkeypatch.setattr(sys, "argv", ["child", "f:f", "--device", "numpy", "--adapter", "a:b"])
    for is_open, code in ((True, 7), (False, 1)):
        kept.clear(), served.clear()
        monkeypatch.setattr(isolation, "is_open", lambda fd: fd == 3 and is_open)  # noqa: B023
        with pytest.raises(SystemExit) as ended:
            child.main()
        assert ended.value.code == code and served == [[(3, False), (4, False)], *[("f:f", "a:b", "numpy", "away")] * is_open]


@pytest.mark.parametrize("ends, code", [(lambda: os._exit(0), 0), (lambda: os._exit(3), 3), (lambda: os.kill(os.getpid(), signal.SIGKILL), 137), (lambda: os.kill(os.getpid(), signal.SIGTERM), 143)])
def test_a_parent_ends_as_its_child_did(ends, code):
    waits = os.fork()
    if waits == 0:
        child = os.fork()
        isolation._relay(child)
        ends()  # the child alone comes here
        os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(waits, 0)[1]) == code


def candidate(code=None):
    """A Candidate whose process ended with that code (None: it runs), and what was closed."""
    made = process.Candidate("f:f")
    made.closed, made.waited = [], []
    made.process = types.SimpleNamespace(poll=lambda: code, wait=lambda seconds: made.waited.append(seconds))
    made.close, made.tail = lambda: made.closed.append(1), lambda: "said"
    return made


@pytest.mark.parametrize("kind, code, text", [
    ("ended", -9, "why (SIGKILL); its output ends with: said"), ("ended", 3, "why (exit code 3); its output ends with: said"), ("ended", 0, "why; its output ends with: said"),
    ("ended", None, "why; its output ends with: said"), ("hung", -9, "why; its output ends with: said"),
])  # fmt: skip
def test_what_is_said_of_one_that_is_given_up(kind, code, text):
    made = candidate(code)
    with pytest.raises(process.CandidateError) as error:
        made._give_up(kind, "why")
    assert (error.value.kind, str(error.value), made.closed, len(made.waited)) == (kind, text, [1], int(kind == "ended"))


def failing(error):
    def call(*_):
        raise error

    return call


def test_one_that_ended_before_a_call_is_said():
    for broken in (BrokenPipeError(), ConnectionResetError(), OSError()):
        made = candidate(0)
        made.channel = types.SimpleNamespace(send=failing(broken))
        with pytest.raises(process.CandidateError, match="^the process ended before a call; ") as error:
            made._send({})
        assert error.value.kind == "ended"
    made.process.wait = failing(subprocess.TimeoutExpired("x", 1))
    made._wait()


def reply(message=b"", end=False, seconds=5, resident=0):
    """What comes of a message on the channel."""
    ours, theirs = socket.socketpair()
    made = candidate(0)
    made.channel, made._resident = types.SimpleNamespace(socket=ours), lambda: resident
    theirs.sendall(message)
    if end:
        theirs.close()
    try:
        return made._reply(seconds, "a call")
    except process.CandidateError as error:
        return error.kind, str(error).partition(";")[0]
    finally:
        ours.close()
        theirs.close()


def test_answers_that_are_whole_torn_late_or_too_large():
    size = process._SIZE.pack
    assert reply(size(8) + b'{"a": 1}') == {"a": 1}
    for message in (b"", size(8)[:3], size(8) + b'{"a"'):
        assert reply(message, end=True) == ("ended", "the process ended in a call")
        assert reply(message, seconds=0) == ("hung", "a call took more than 0 s")
        assert reply(message, resident=(16 << 30) + 1) == ("memory", "a call took more than 16 GB of memory")
    for message in (b"[1]", b"{", b"nan", b"\xff"):
        assert reply(size(len(message)) + message) == ("ended", "the process ended in a call")
    assert reply(size(1 << 20) + b"x") == ("type", f"an answer of {(1 << 20) + 8} bytes in a call, expected at most {1 << 20}")


@pytest.mark.parametrize("printed, said", [("", ""), ("  a\n", "a"), ("x" * 50 + "y" * 600, "y" * 600), ("y" * 599, "y" * 599)])
def test_the_end_of_what_a_candidate_printed_is_said(printed, said):
    made = process.Candidate("f:f")
    with tempfile.TemporaryFile() as made.output:
        made.output.write(printed.encode())
        assert made.tail() == said


PLANTED = ("dataclasses", "json", "argparse", "secrets", "numpy")


@pytest.mark.parametrize("command", [[sys.executable, "-B", "-m", "assay"], [os.environ.get("ASSAY_PROGRAM", "")]], ids=["module", "program"])
@pytest.mark.parametrize("batch", [False, True], ids=["one", "batch"])
def test_modules_that_a_candidate_left_in_the_working_folder_are_not_found(tmp_path, command, batch):
    """Neither by the judge nor, before it is isolated, by the candidate's process."""
    if not command[0] or command[-1] == "assay" and sys.version_info < (3, 10):
        pytest.skip("no program, or a Python that does not say how it was started")
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'found')!r}, 'a').write({name!r} + ' ')\nraise SystemExit('planted')\n")
    target, shape = f"{pathlib.Path(callables.__file__)}:plain", "batch=2,heads=1/1,head_dim=16,keys=20"
    (tmp_path / "candidates.jsonl").write_text(json.dumps({"target": target, "shape": shape}))
    asked = ["--batch", "candidates.jsonl", "--json", "out.jsonl"] if batch else [target, "--shape", shape]
    ran = subprocess.run([*command, "judge-callable", *asked, "--device", "numpy"], cwd=tmp_path, capture_output=True, text=True,
                         env={**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"})  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert not (tmp_path / "found").exists(), (tmp_path / "found").read_text()
