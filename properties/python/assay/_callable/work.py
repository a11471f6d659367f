# SPDX-License-Identifier: Apache-2.0
"""What a server has to do: candidates that wait, within a bound, and those that are judged now."""
import threading


class NotTaken(Exception):
    """A candidate is not taken now; the client may send it again."""


class Work:
    """Nothing of a candidate stays here when its verdict was given: counts alone."""

    def __init__(self, judges, jobs, most_waiting):
        self.judges, self.jobs, self.most_waiting = judges, jobs, most_waiting
        self._lock, self._active, self._done, self._ending = threading.Lock(), set(), 0, False

    def submit(self, arguments):
        """A Future. NotTaken where too many wait, or the server ends."""
        with self._lock:
            if self._ending:
                raise NotTaken("the server ends")
            if len(self._active) >= self.jobs + self.most_waiting:
                raise NotTaken(f"{self.most_waiting} candidates wait already, as many as may (--queue)")
            future = self.judges.submit(arguments)
            self._active.add(future)
        future.add_done_callback(self.forget)
        return future

    def forget(self, future):
        """Its place is free. Called by whoever sees first that it is done."""
        with self._lock:
            if future in self._active:
                self._active.discard(future)
                self._done += not future.cancelled()

    def status(self):
        with self._lock:
            running = sum(future.running() for future in self._active)
            return {"queued": len(self._active) - running, "running": running, "done": self._done, "jobs": self.jobs, "ending": self._ending}

    def end(self):
        """What runs is finished, what waits is given back, nothing new is taken."""
        with self._lock:
            self._ending = True
        self.judges.close()
