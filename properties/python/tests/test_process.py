# SPDX-License-Identifier: Apache-2.0
"""Whatever a kernel does to its process is a finding of the case that ran, and ends nothing."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest
from conftest import HERE

from assay.program import environment, find_program

WRONG = HERE / "wrong_kernels.py"

FINDINGS = {
    "leaves": "the kernel ended its process with exit(0)",
    "exits": "the kernel raised SystemExit: 0",
    "crashes": "died of signal 11",
    "is_killed": "died of signal 9",
    "raises": "the kernel raised RuntimeError: no luck ?[31m with 3 axes; at wrong_kernels.py:",
    "returns": "the kernel raised TypeError: the kernel returned a ndarray: results go into case.out",
    "assigns_input": "the kernel raised ValueError: assignment destination is read-only",
    "writes_input": "memory: lse_a: 1 bytes of an input written",
    "writes_behind": "memory: out: guard byte 0 past its end written",
    "writes_in_front": "memory: out: guard byte 1 before its start written",
    "writes_nothing": "row 0 head 0 dim 0 is nan",
    "refuses_after_writing": "bytes of an input written",
    "closes_everything": "the kernel",
    "floods_channel": "the worker sent no sound reply",
    "forges_reply": "row 0 head 0 dim 0 is nan",
    "cuts_memory": "the kernel raised PermissionError",
}


@pytest.mark.parametrize("kernel", FINDINGS)
def test_is_a_finding(program, kernel):
    ran = program.replay(program.worker(f"{WRONG}:{kernel}"), "--patience", "20s")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert FINDINGS[kernel] in ran.stdout
    assert "\x1b" not in ran.stdout


def test_a_crash_says_what_the_process_wrote(program):
    ran = program.replay(program.worker(f"{WRONG}:crashes"))
    assert "| about to read address 8" in ran.stdout
    assert "in crashes" in ran.stdout  # faulthandler's stack


def test_a_hang_is_a_finding_of_its_case(program):
    ran = program.replay(program.worker(f"{WRONG}:hangs"), "--patience", "2s")
    assert ran.returncode == 1
    assert "the kernel has not returned for 2 s" in ran.stdout


def test_what_is_written_after_the_reply_is_not_judged(program):
    assert program.replay(program.worker(f"{WRONG}:writes_after_reply")).returncode == 0


def test_the_run_goes_on(program):
    """Cases before and after the one that dies are judged, and the case is named and shrunk."""
    worker = program.worker(f"{WRONG}:raises_later")
    ran = program.run("check", "--worker", worker, "--property", "within_budget", "--cases", "3", "--json", "r.json")
    assert ran.returncode == 1
    report = json.loads(pathlib.Path("r.json").read_text())
    run = report["runs"][0]
    assert run["cases"] > 20 and 0 < run["findings"] < run["cases"]
    found = report["found"][0]
    assert "only small heads" in found["message"]
    assert "head_dim = 72" in found["case"]
    again = program.run("replay", found["file"], "--worker", worker)
    assert again.returncode == 1 and "only small heads" in again.stdout


def test_shrink_and_explain_take_a_worker(program):
    worker = program.worker(f"{WRONG}:raises_later")
    text = program.case.replace("rows = 2", "rows = 3\nhead_dim = 128")
    pathlib.Path("large.case").write_text(text)
    assert program.run("shrink", "large.case", "--worker", worker).returncode == 1
    assert "rows = 1\n" in pathlib.Path("large.case.min").read_text()
    ran = program.run("explain", "large.case.min", "--worker", worker)
    assert ran.returncode == 1 and "only small heads" in ran.stdout
    ran = program.run("list", "kernels", "--worker", worker)
    assert ran.returncode == 0 and "raises_later" in ran.stdout


def test_one_worker_may_serve_several(program):
    worker = f"{program.worker(f'{WRONG}:leaves')} {HERE}/right_kernels.py:merge_state"
    ran = program.replay(worker)
    assert ran.returncode == 1
    lines = [line.split()[:2] for line in ran.stdout.splitlines() if "within_budget" in line]
    assert lines == [["FAIL", "leaves"], ["pass", "merge_state"]]
    assert program.replay(worker, "--kernel", "merge_state").returncode == 0
    twice = f"{program.worker(f'{WRONG}:leaves')} {WRONG}:leaves"
    ran = program.replay(twice)
    assert ran.returncode == 2 and "name stands there twice" in ran.stderr


def wait_until(done):
    """However long that takes: a test that hangs is ended by ctest."""
    while not done():
        time.sleep(0.02)


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_an_interrupt_ends_the_run_with_a_report(program):
    worker = program.worker(f"{HERE}/right_kernels.py:merge_state")
    command = [find_program(), "check", "--worker", worker, "--json", "r.json", "--cases", "1000000"]
    started = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
    wait_until(lambda: pathlib.Path("r.json").exists())  # it checks now
    begun = processor_seconds(started.pid)
    wait_until(lambda: processor_seconds(started.pid) > begun + 0.5)
    started.send_signal(signal.SIGINT)
    assert started.wait() == 4  # no pass
    report = json.loads(pathlib.Path("r.json").read_text())
    assert report["complete"] and report["cases"] > 0 and report["found"] == []


def test_a_worker_ends_with_the_program(program):
    """Even in the middle of a call."""
    pathlib.Path("one.case").write_text(program.case)
    command = [find_program(), "replay", "one.case", "--worker", program.worker(f"{WRONG}:hangs")]
    started = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
    children = pathlib.Path(f"/proc/{started.pid}/task/{started.pid}/children")
    wait_until(lambda: children.read_text().split())
    worker = children.read_text().split()[0]
    wait_until(lambda: pathlib.Path("hangs.now").exists())  # in the middle of its call
    assert is_running(worker)
    started.kill()
    started.wait()
    wait_until(lambda: not is_running(worker))


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


RAW = '''
import json, os, socket, struct, sys, time
s = socket.socket(fileno=3)
arithmetic = dict.fromkeys({fields!r}, 0)
kernel = {{"name": "raw", "family": 2, "determinism": 0, "batch_invariance": 0, "nan_contract": 0}}
hello = {{"abi": {abi!r}, "name": "raw", "kernels": [{{**kernel, "arithmetic": arithmetic}}]}}
text = json.dumps(hello).encode()
s.sendall(struct.pack("=Q", len(text)) + text)
def take(n):
    out = b""
    while len(out) < n:
        part = s.recv(n - len(out))
        if not part: sys.exit()
        out += part
    return out
while True:
    request = json.loads(take(struct.unpack("=Q", take(8))[0]))
    {answer}
'''

ANSWERS = {
    "no JSON": 's.sendall(struct.pack("=Q", 3) + b"abc")',
    "half a message": 's.sendall(struct.pack("=Q", 300) + b"abc"); time.sleep(100)',
    "a huge size": 's.sendall(struct.pack("=Q", 1 << 62)); time.sleep(100)',
    "another id": 't = b\'{"reply": 99, "status": 0, "message": ""}\'; s.sendall(struct.pack("=Q", len(t)) + t)',
    "nothing": "time.sleep(100)",
    "an end": "sys.exit(0)",
    "endless bytes": 'os.set_blocking(3, True)\n    while True: s.sendall(b"\\x01\\0\\0\\0\\0\\0\\0\\0x")',
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_garbage_on_the_channel_is_a_finding(program, answer):
    import dataclasses

    from assay import declaration

    fields = [field.name for field in dataclasses.fields(declaration.Declaration)]
    source = RAW.format(fields=fields, abi=list(declaration.ABI), answer=ANSWERS[answer])
    pathlib.Path("raw.py").write_text(source)
    begin = time.monotonic()
    ran = program.replay("python3 raw.py", "--patience", "2s")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "hazard: the " in ran.stdout
    assert time.monotonic() - begin < 30
