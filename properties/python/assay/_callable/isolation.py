# SPDX-License-Identifier: Apache-2.0
"""Keeps a candidate away from the process that judges it, as far as the system lets an ordinary process do so.

Namespaces of its own (users, processes, mounts, network, System V memory): the candidate sees no process but its own, reaches
none by ptrace or /proc, and whatever it leaves running ends with it. It writes to temporary files, caches of compilers and the working
folder alone, so that nothing which a later judge loads is its own. Linux alone; where namespaces are not allowed, as in many
containers, the judge is still another process, and says so.
"""
import ctypes
import os
import select
import signal
import site
import sys
import sysconfig
import tempfile
import threading

_CLONE = {"user": 0x10000000, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x08000000, "mount": 0x00020000}
_SET_PDEATHSIG, _SET_DUMPABLE, _DROP_OF_BOUNDING_SET, _SET_NO_NEW_PRIVS = 1, 4, 24, 38
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 2, 4, 8, 32, 0x1000, 0x4000, 1 << 18
_MS_OF_ST = {os.ST_NOSUID: _MS_NOSUID, os.ST_NODEV: _MS_NODEV, os.ST_NOEXEC: _MS_NOEXEC, os.ST_NOATIME: 1 << 10, os.ST_NODIRATIME: 1 << 11, os.ST_RELATIME: 1 << 21}
_CAPABILITIES_VERSION_3, _MOST_CAPABILITIES = 0x20080522, 64
#: How far a candidate is away; the second where a file of the judge could not be protected.
NAMESPACES, WRITABLE, PROCESS = "namespaces", "namespaces, files are writable", "process"
_NOT_FILES = ("/proc", "/sys", "/dev")
_CACHES = ("~/.cache", "~/.triton", "~/.nv")


def _libc():
    return ctypes.CDLL(None, use_errno=True)


_wanted, _lock = [0], threading.Lock()


def unreadable(on=True):
    """Whether other processes of this user may read this one's memory: nobody may, until each who asked for it takes it back."""
    with _lock:
        _wanted[0] += 1 if on else -1
        _libc().prctl(_SET_DUMPABLE, 0 if _wanted[0] else 1, 0, 0, 0)


def python(module):
    """The command that runs main() of a module of this package. Unlike -m it finds no module in the working folder, where a candidate
    may have left some."""
    code = f"import sys; '' in sys.path[:1] and sys.path.pop(0); from {__package__}.{module} import main; main()"
    return [sys.executable, "-B", "-c", code]


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


def _own_files():
    """Files and folders that a judge runs: this package, its libraries, and Python with all where it looks for modules."""
    paths = [os.path.dirname(os.path.dirname(os.path.abspath(__file__))), *sysconfig.get_paths().values(), site.getusersitepackages(), *sys.path, sys.executable]
    libraries = [os.environ.get(name, "") for name in ("ASSAY_JUDGE_LIBRARY", "ASSAY_JUDGE_CUDA_LIBRARY", "ASSAY_PROGRAM")]
    program = os.path.dirname(os.path.realpath(libraries[-1])) if libraries[-1] else ""
    beside = [os.path.join(program, name) for name in ("libassay_judge.so", "libassay_judge_cuda.so")]
    return [path for path in dict.fromkeys(map(os.path.realpath, filter(None, [*paths, *libraries, *beside]))) if os.path.exists(path)]


def _all_files():
    """Folders of the root, and what is mounted below them, each behind those that hold it."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        mounted = [line.split()[4].encode("latin-1", "surrogateescape").decode("unicode_escape") for line in file]
    paths = {*mounted, *(entry.path for entry in os.scandir("/") if entry.is_dir(follow_symlinks=False))} - {"/"}
    return sorted(path for path in paths if not path.startswith(_NOT_FILES) and os.path.isdir(path))


def _scratch():
    """Where a candidate may write. The home folder is none: Python loads modules of the user from there."""
    home = os.path.realpath(os.path.expanduser("~"))
    working = [] if os.path.realpath(os.getcwd()) in ("/", home) else [os.getcwd()]
    named = [os.environ.get(name, "") for name in ("TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "CUDA_CACHE_PATH")]
    paths = [tempfile.gettempdir(), *map(os.path.expanduser, _CACHES), *named, *working]
    return [path for path in dict.fromkeys(map(os.path.realpath, filter(None, paths))) if os.path.isdir(path)]


def _mounted(libc, path, read_only):
    """Whether somebody in this namespace of mounts writes there. A flag that the file system has already must stay."""
    name, there = os.fsencode(path), os.statvfs(path).f_flag
    flags = sum(ms for st, ms in _MS_OF_ST.items() if there & st) | (_MS_RDONLY if read_only else 0)
    if libc.mount(name, name, None, _MS_BIND | _MS_REC, None) == 0:
        libc.mount(None, name, None, _MS_BIND | _MS_REMOUNT | flags, None)


def _protect(libc):
    """Whether nothing that a judge loads can be written any more."""
    own = _own_files()
    for paths, read_only in ((_all_files(), True), (_scratch(), False), (own, True)):
        for path in paths:
            try:
                _mounted(libc, path, read_only)
            except OSError:  # a folder that this user may not look at
                pass
    return not any(os.access(path, os.W_OK) for path in own)


def _without_capabilities(libc):
    """What a process may do in its namespaces alone, too: it could undo the mounts."""
    for capability in range(_MOST_CAPABILITIES):
        libc.prctl(_DROP_OF_BOUNDING_SET, capability, 0, 0, 0)
    libc.capset((ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION_3, 0), (ctypes.c_uint32 * 6)())


def enter():
    """Called before anything else in the candidate's process, which has one thread. Returns NAMESPACES, WRITABLE or PROCESS.

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
    away = NAMESPACES if _protect(libc) else WRITABLE
    _relay(os.fork())  # its first process would not end by signals, and all others end with it
    end_with_parent()
    _without_capabilities(libc)
    return away


def _relay(child):
    """In the parent: waits, and ends as the child did. In the child: goes on."""
    if child == 0:
        return
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)
