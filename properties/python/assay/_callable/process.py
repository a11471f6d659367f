# SPDX-License-Identifier: Apache-2.0
"""The judge's side of a candidate: starts its process, sends tensors, takes results, and ends it where it goes too far."""
import dataclasses
import json
import os
import secrets
import select
import signal
import socket
import struct
import subprocess
import tempfile
import time

import numpy as np

from ..program import environment
from ..worker import Channel, plain
from . import isolation

_PAGE = os.sysconf("SC_PAGE_SIZE")
_LOOK = 0.05  #: seconds between two looks at how much memory a candidate has
_ENDING = 5  #: seconds for a process to end that closed its descriptor
_SIZE = struct.Struct("=Q")  #: what a message begins with
_MOST_SAID = 1 << 20  #: bytes of a message
_TAIL = 600  #: characters of a candidate's own output that are said
#: Types that results may have.
_RESULTS = {"<f4", "<f2", "<u2", "<i2", "<i4", "<f8", "|u1"}


class CandidateError(Exception):
    """The candidate gave no result. `kind`: refused, not captured, raised, ended, hung, memory, load or type."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a candidate may take before it is ended. Seconds of the wall clock: far away on purpose."""

    load_seconds: float = 600.0  #: its module, compilation included
    call_seconds: float = 120.0
    gigabytes: float = 16.0  #: of memory of the host


class Candidate:
    """A function in a process of its own, which is started when it is needed and again when it ended."""

    def __init__(self, target, device="auto", limits=Limits(), adapter=None):
        self.target, self.device, self.limits, self.adapter = target, device, limits, adapter
        self.process, self.about, self.starts = None, {}, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process is None:
            return
        for what in (lambda: os.killpg(self.process.pid, signal.SIGKILL), self.process.wait, self.channel.socket.close, self.output.close):
            try:
                what()
            except OSError:
                pass
        os.close(self.memory)
        self.process = None

    def start(self):
        if self.process is not None:
            return
        ours, theirs = socket.socketpair()
        self.memory = os.memfd_create("assay")
        self.output = tempfile.TemporaryFile()
        keep = (theirs.fileno(), self.memory)

        def descriptors():  # in the child: 3 and 4, whatever the numbers were
            copies = [os.dup(fd) for fd in keep]
            for fd, at in zip(copies, (3, 4)):
                os.dup2(fd, at, inheritable=True)

        command = [*isolation.python("child"), self.target, "--device", self.device]
        command += [] if self.adapter is None else ["--adapter", self.adapter]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True, pass_fds=(3, 4),
            env=environment(), preexec_fn=descriptors,
        )  # fmt: skip
        theirs.close()
        self.channel, self.starts = Channel(ours.detach()), self.starts + 1
        said = self._reply(self.limits.load_seconds, "its module")
        if "ready" not in said:
            self.close()
            if "unknown" in said:
                raise ValueError(plain(str(said["unknown"])))
            raise CandidateError("load", plain(str(said.get("failed", "it said nothing"))))
        self.about = said

    def call(self, inputs, store=None, keep=False, inputs_back=None, busy=False, graph=None):
        """Results by name: out, lse where there is one, earlier (of the call that was kept, as it is now), and the
        inputs of the store `inputs_back`, as they are afterwards. `store`: tensors that stay where they are from call
        to call. `graph`: "capture" makes a CUDA graph of the call and replays it, "replay" replays that of the call before.
        After a capture that fails, the next call has a new process."""
        self.start()
        tensors = inputs.tensors()
        places, size = _layout(tensors)
        results_at = size
        size += 2 * size + (1 << 16) if inputs_back else 4 * tensors["q"].nbytes + 8 * tensors["q"].size + (1 << 16)
        os.ftruncate(self.memory, max(size, os.fstat(self.memory).st_size))
        for name, array in tensors.items():
            os.pwrite(self.memory, memoryview(np.ascontiguousarray(array)).cast("B"), places[name]["offset"])
        self._send({
            "tensors": places, "bytes": size, "results_at": results_at, "shape": dataclasses.asdict(inputs.shape), "sm_scale": inputs.sm_scale,
            "store": store, "keep": keep, "inputs_back": inputs_back, "busy": busy, "graph": graph,
            "call": (number := secrets.randbits(62)),
        })  # fmt: skip
        said = self._reply(self.limits.call_seconds, "a call")
        if said.get("reply") != number:
            self.close()
            raise CandidateError("type", "an answer to no call: something in the process writes to the judge")
        for kind in ("refused", "raised", *(["not captured"] if graph == "capture" else [])):
            if kind in said:
                if kind == "not captured":
                    self.close()
                raise CandidateError(kind, plain(str(said[kind])))
        return self._results(said.get("results"), results_at, size)

    def _send(self, message):
        try:
            self.channel.send(message)
        except OSError:
            self._give_up("ended", "the process ended before a call")

    def _results(self, said, begin, end):
        """Copies of what the candidate says that it wrote, which is believed in nothing."""
        try:
            made = {}
            for name, place in said.items():
                dtype, dims, at = place["dtype"], [int(n) for n in place["shape"]], int(place["offset"])
                nbytes = int(np.prod(dims, dtype=np.int64)) * np.dtype(dtype).itemsize
                if dtype not in _RESULTS or not begin <= at <= at + nbytes <= end or min(dims, default=0) < 0:
                    raise ValueError(name)
                made[name] = np.frombuffer(os.pread(self.memory, nbytes, at), dtype).reshape(dims)
            if "out" not in made:
                raise ValueError("no out")
            return made
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            self.close()
            raise CandidateError("type", f"results that cannot be read ({type(error).__name__}: {plain(str(error))})") from None

    def _reply(self, seconds, what):
        """The next message. Ends the process where it takes too long, or too much memory."""
        until, read = time.monotonic() + seconds, bytearray()
        while True:
            if select.select([self.channel.socket], [], [], _LOOK)[0] and self._read_on(read, what):
                break
            if self._resident() > self.limits.gigabytes * 2**30:
                self._give_up("memory", f"{what} took more than {self.limits.gigabytes:g} GB of memory")
            if time.monotonic() > until:
                self._give_up("hung", f"{what} took more than {seconds:g} s")
        try:
            said = json.loads(read[_SIZE.size :])
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            self._give_up("ended", f"the process ended in {what}")
        return said

    def _read_on(self, read, what):
        """Adds to `read` what is there of a message, and never waits for the rest. Whether the message is whole."""
        size = _SIZE.size + (_SIZE.unpack_from(read)[0] if len(read) >= _SIZE.size else 0)
        try:
            part = self.channel.socket.recv(size - len(read))
        except OSError:
            part = b""
        if not part:
            self._give_up("ended", f"the process ended in {what}")
        read += part
        whole = _SIZE.size + _SIZE.unpack_from(read)[0] if len(read) >= _SIZE.size else _MOST_SAID
        if whole > _MOST_SAID:
            self._give_up("type", f"an answer of {whole} bytes in {what}, expected at most {_MOST_SAID}")
        return len(read) == whole

    def _give_up(self, kind, text):
        tail = self.tail()
        if kind == "ended":
            self._wait()
        code = self.process.poll()
        self.close()
        ended = f" ({_ending(code)})" if kind == "ended" and code else ""
        raise CandidateError(kind, text + ended + (f"; its output ends with: {tail}" if tail else ""))

    def _wait(self):
        """For its exit code; a process that only closed its descriptor has none."""
        try:
            self.process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            pass

    def _resident(self):
        """Bytes of memory of the process and of what it started, with files of memory that it made and did not map."""
        total, mapped, files = 0, 0, {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/stat", encoding="latin-1") as file:
                        session = int(file.read().rpartition(")")[2].split()[3])
                    if session == self.process.pid:
                        with open(f"/proc/{entry}/statm", encoding="ascii") as file:
                            total += int(file.read().split()[1]) * _PAGE
                        mapped += _mapped_shared(entry)
                        files.update(_memory_files(entry))
                except (OSError, IndexError, ValueError):
                    pass
        files.pop(os.fstat(self.memory).st_ino, None)
        return total + max(0, sum(files.values()) - mapped)

    def tail(self):
        """The end of what the candidate printed."""
        size = self.output.seek(0, os.SEEK_END)
        self.output.seek(max(0, size - _TAIL))
        return plain(self.output.read().decode(errors="replace").strip())


def _mapped_shared(pid):
    """Bytes of memory that a process has mapped shared."""
    with open(f"/proc/{pid}/status", encoding="latin-1") as file:
        return next((int(line.split()[1]) * 1024 for line in file if line.startswith("RssShmem:")), 0)


def _memory_files(pid):
    """Bytes of files of memory alone that a process has open, by number."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("/memfd:"):
                about = os.stat(f"/proc/{pid}/fd/{fd}")
                found[about.st_ino] = about.st_blocks * 512
        except OSError:  # closed meanwhile
            pass
    return found


def _ending(code):
    """Of an exit code, or of a signal as subprocess and as isolation say it."""
    number = -code if code < 0 else code - 128
    return signal.Signals(number).name if number in signal.valid_signals() else f"exit code {code}"


def _layout(tensors):
    """Where each tensor lies, and where the room for results begins."""
    places, at = {}, 0
    for name, array in tensors.items():
        places[name] = {"dtype": array.dtype.str, "shape": list(array.shape), "offset": at}
        at += array.nbytes + -array.nbytes % 4096
    return places, at

