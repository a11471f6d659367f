# SPDX-License-Identifier: Apache-2.0
"""For tests that wait for processes: until something is so, and what runs."""
import contextlib
import os
import pathlib
import time

FAR = 120  #: seconds that nothing takes


def until(what):
    end = time.monotonic() + FAR
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def running(word):
    """Processes with that word in their command."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if word.encode() in pathlib.Path(f"/proc/{entry}/cmdline").read_bytes():
                found.append(int(entry))
    return found
