# SPDX-License-Identifier: Apache-2.0
"""Several judges at once, each a process of its own that judges one candidate after another."""
import concurrent.futures
import dataclasses
import json
import os
import signal
import socket
import subprocess
import threading

from ..program import environment
from ..worker import Channel
from . import isolation

ERROR = "error"  #: in the place of a verdict
_TRIES = 2  #: of a candidate whose judge ended
_WAIT = 10  #: seconds that a judge without work may take to end


class JudgeEnded(Exception):
    """A judge's process ended before it gave its verdict."""


class _Judge:
    """One process, started when it is made."""

    def __init__(self, options):
        ours, theirs = socket.socketpair()
        with theirs:
            command = [*isolation.python("judge_process"), json.dumps(options)]
            self.process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.DEVNULL, env=environment(), start_new_session=True)
        self.channel = Channel(ours.detach())

    def ask(self, arguments):
        try:
            self.channel.send(arguments)
            said = self.channel.receive()
        except (OSError, ValueError):
            said = None
        if said is None:
            self.close()
            code = self.process.returncode
            raise JudgeEnded(signal.Signals(-code).name if -code in signal.valid_signals() else f"exit code {code}")
        return said

    def kill(self):
        self.process.kill()

    def close(self):
        self.channel.socket.close()
        try:
            self.process.wait(_WAIT)
        except subprocess.TimeoutExpired:
            self.kill()
            self.process.wait()


class Judges:
    """`jobs` candidates at once. Every thread has a judge, starts it again where it ended, and lives as long as the judge:
    a judge is killed with the thread that started it, also where this process is killed."""

    def __init__(self, jobs, limits):
        threads = max(1, (os.cpu_count() or 1) // jobs)
        self._options = {"limits": dataclasses.asdict(limits), "threads": threads}
        self._executor = concurrent.futures.ThreadPoolExecutor(jobs)
        self._own, self._lock, self._all, self._closed = threading.local(), threading.Lock(), set(), False

    def submit(self, arguments):
        """A Future of the verdict's JSON, or of {"verdict": "error", "whose": "line" or "judge", "cause": ...}."""
        return self._executor.submit(self._judged, arguments)

    def _judge(self):
        judge = getattr(self._own, "judge", None)
        if judge is None:
            with self._lock:
                if self._closed:
                    raise JudgeEnded("the judges are closed")
                judge = self._own.judge = _Judge(self._options)
                self._all.add(judge)
        return judge

    def _drop(self):
        judge, self._own.judge = getattr(self._own, "judge", None), None
        if judge is not None:
            with self._lock:
                self._all.discard(judge)
            judge.close()

    def _judged(self, arguments):
        for _ in range(_TRIES):
            try:
                said = self._judge().ask(arguments)
            except (JudgeEnded, OSError) as error:
                cause = f"the judge's process ended: {error}"
                self._drop()
                continue
            return said["verdict"] if "verdict" in said else {"verdict": ERROR, "whose": "line", "cause": said[ERROR]}
        return {"verdict": ERROR, "whose": "judge", "cause": cause}

    def close(self):
        """What waits is cancelled, what runs is finished."""
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._closed = True
        for judge in self._all:
            judge.close()

    def kill(self):
        """Ends all at once; what runs gets no verdict."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._closed = True
            for judge in self._all:
                judge.kill()
        self.close()
