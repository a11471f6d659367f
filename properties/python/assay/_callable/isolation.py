# SPDX-License-Identifier: Apache-2.0
"""Keeps a candidate away from the process that judges it, as far as the system lets an ordinary process do so.

Namespaces of its own (users, processes, network, System V memory): the candidate sees no process but its own, reaches
none by ptrace or /proc, and whatever it leaves running ends with it. Linux alone; where namespaces are not allowed, as in
many containers, the judge is still another process, and says so.
"""
import ctypes
import os
import select
import signal
import threading

_CLONE = {"user": 0x10000000, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x08000000, "mount": 0x00020000}
_SET_PDEATHSIG, _SET_DUMPABLE, _SET_NO_NEW_PRIVS = 1, 4, 38
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x4000, 1 << 18
NAMESPACES, PROCESS = "namespaces", "process"  #: how far a candidate is away


def _libc():
    return ctypes.CDLL(None, use_errno=True)


_wanted, _lock = [0], threading.Lock()


def unreadable(on=True):
    """Whether other processes of this user may read this one's memory: nobody may, until each who asked for it takes it back."""
    with _lock:
        _wanted[0] += 1 if on else -1
        _libc().prctl(_SET_DUMPABLE, 0 if _wanted[0] else 1, 0, 0, 0)


def end_with_parent():
    """This process is killed when the thread that started it ends. What it forks has to ask again."""
    _libc().prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def is_open(fd):
    """Whether the other end of a socket is there: a parent that ended before end_with_parent was called kills nobody."""
    looked = select.poll()
    looked.register(fd, 0)
    return not looked.poll(0)


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _fresh_proc(libc):
    """/proc of this namespace alone; without it, that of the system stays, in which the judge can be seen and not read."""
    libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None)
    return libc.mount(b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None) == 0


def enter():
    """Called before anything else in the candidate's process, which has one thread. Returns NAMESPACES or PROCESS.

    With NAMESPACES the caller goes on in a child; this process waits for it and ends as it did (128 + the signal)."""
    libc = _libc()
    end_with_parent()
    libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(sum(_CLONE.values())) != 0:
        return PROCESS
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")
    _relay(os.fork())  # what enters the new namespace of processes is a child of this one
    end_with_parent()
    _fresh_proc(libc)
    _relay(os.fork())  # its first process would not end by signals, and all others end with it
    end_with_parent()
    return NAMESPACES


def _relay(child):
    """In the parent: waits, and ends as the child did. In the child: goes on."""
    if child == 0:
        return
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)
