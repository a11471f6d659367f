# SPDX-License-Identifier: Apache-2.0
"""Runs kernels for the program: what `assay check --worker "python3 -m assay.worker FILE.py:FUNCTION"` starts.

Not started by hand: it speaks on descriptor 3 and reads the memory of a case from descriptor 4.
"""
import argparse
import faulthandler
import json
import mmap
import os
import socket
import struct
import sys
import traceback

from . import _abi, declaration, loading, spec, worker_errors

CHANNEL_FD, MEMORY_FD = 3, 4
OK, UNSUPPORTED = _abi.STATUS["ok"], _abi.STATUS["unsupported"]
MOST_TEXT, MOST_FRAMES = 1000, 3


class Channel:
    """Messages of the harness: 8 bytes of size, in this machine's order, and JSON."""

    def __init__(self, fd):
        self.socket = socket.socket(fileno=fd)

    def _take(self, size):
        parts = []
        while size > 0:
            part = self.socket.recv(min(size, 1 << 20))
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def receive(self):
        """The next message; None when the harness is done."""
        size = self._take(8)
        text = None if size is None else self._take(struct.unpack("=Q", size)[0])
        return None if text is None else json.loads(text)

    def send(self, message):
        text = json.dumps(message, allow_nan=False).encode()
        self.socket.sendall(struct.pack("=Q", len(text)) + text)


class Memory:
    """The memory of cases, mapped again when it has grown."""

    def __init__(self, fd):
        self.fd, self.map, self.address = fd, None, 0

    def room(self, size):
        if self.map is None or len(self.map) < size:
            import numpy as np

            self.map = mmap.mmap(self.fd, size)
            self.address = np.frombuffer(self.map, np.uint8).ctypes.data
        return self.map, self.address


def plain(text):
    """In one line of printable ASCII, not too long: it becomes part of a report and of a file."""
    text = "".join(c if " " <= c <= "~" else " " if c in "\n\t" else "?" for c in text)
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "..."


def raised_text(error, own=__file__):
    """The exception and the frames that it came through, innermost first; without those of the file or folder `own`."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(own)]
    said = f"{type(error).__name__}: {error}"
    for frame in reversed(frames[-MOST_FRAMES:]):
        said += f"; at {os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}: {frame.line}"
    return plain(said)


class Served:
    """One kernel."""

    def __init__(self, target, described=None):
        self.function = loading.load(target)
        if described is not None:
            fields = dict(described)
            if "supports" in fields:
                fields["supports"] = loading.load(fields["supports"])
            fields["declaration"] = declaration.Declaration(**fields["declaration"])
            self.spec = spec.Spec(**fields)
        else:
            self.spec = getattr(self.function, "__assay__", None)
            if self.spec is None:
                raise ValueError(f"assay: {target} declares nothing: mark it with @assay.kernel(...)")

    def call(self, case, asked):
        """Runs it, or asks only whether it would run. Returns (status, message)."""
        try:
            if self.spec.supports is not None:
                answer = self.spec.supports(case)
                if isinstance(answer, str) or (answer is not None and not answer):
                    raise worker_errors.Unsupported(answer or "supports() returned False")
                if asked:
                    return OK, ""
            returned = self.function(case)
        except worker_errors.Unsupported as refusal:
            return UNSUPPORTED, plain(str(refusal))
        if returned is not None:
            raise TypeError(f"the kernel returned a {type(returned).__name__}: results go into case.out and case.lse")
        return OK, ""


def serve(kernels, channel, memory):
    from .case import Case
    import numpy as np

    np.seterr(all="ignore")  # cases hold infinities and NaN on purpose
    while (request := channel.receive()) is not None:
        reply = {"reply": request["run"], "status": OK, "message": ""}
        try:
            case = Case(request["call"], *memory.room(request["bytes"]))
            reply["status"], reply["message"] = kernels[request["kernel"]].call(case, request["ask"])
        except BaseException as error:  # SystemExit is as much of a finding as any other
            reply["raised"] = raised_text(error)
        sys.stdout.flush()
        channel.send(reply)


def main():
    parser = argparse.ArgumentParser(prog="python3 -m assay.worker", description=__doc__.splitlines()[0])
    parser.add_argument("target", nargs="+", help="MODULE:FUNCTION or FILE.py:FUNCTION, marked with @assay.kernel")
    parser.add_argument("--describe", metavar="JSON", help="what @assay.kernel would say, of a single target")
    arguments = parser.parse_args()
    if arguments.describe and len(arguments.target) > 1:
        parser.error("--describe goes with one target")
    try:
        os.fstat(CHANNEL_FD), os.fstat(MEMORY_FD)
    except OSError:
        parser.error("is started by `assay ... --worker`, not by hand")
    for fd in (CHANNEL_FD, MEMORY_FD):
        os.set_inheritable(fd, False)
    # Small cases on one core each: more threads would only wait for each other.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    faulthandler.enable(all_threads=False)
    described = json.loads(arguments.describe) if arguments.describe else None
    kernels = [Served(target, described) for target in arguments.target]
    channel = Channel(CHANNEL_FD)
    rows = [k.spec.to_json() for k in kernels]
    channel.send({"abi": list(declaration.ABI), "name": "python", "kernels": rows})
    serve(kernels, channel, Memory(MEMORY_FD))


if __name__ == "__main__":
    main()
