# SPDX-License-Identifier: Apache-2.0
"""The file of a batch's results: one line each, written as it is there, taken up again by the next run."""
import fcntl
import hashlib
import json
import os

from .judges import ERROR
from .verdict import EXIT_CODES, worst

USAGE, HARNESS = 2, 4  #: exit codes, those of the program
_BEGINNING = b'{"line": '  #: of every result
_VERDICTS = (*EXIT_CODES, ERROR)


class Results:
    """Results by line number: those of an earlier run, and those that `add` is given. Without a path they go to standard output."""

    def __init__(self, path):
        self.path, self.by_line, self._hash = path, {}, hashlib.sha256()
        self._fd = 1 if path is None else os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        if path is not None:
            self._take_up()

    def _take_up(self):
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(f"assay: {self.path}: another batch writes it") from None
        with open(self.path, "rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    self._drop_torn(number, line, file.tell() - len(line))
                else:
                    self._keep(number, line)
                    self._hash.update(line)

    def _drop_torn(self, number, line, begin):
        """A line that a kill has cut. Whatever else has no end of line is a file of somebody else."""
        if not line.startswith(_BEGINNING[: len(line)]):
            raise ValueError(f"assay: {self.path}: line {number} is no result of a batch")
        os.ftruncate(self._fd, begin)

    def _keep(self, number, line):
        try:
            result = json.loads(line)
            known = isinstance(result["line"], int) and result["verdict"] in _VERDICTS and isinstance(result["of"], str)
        except (ValueError, KeyError, TypeError, RecursionError):
            known = False
        if not known or result["line"] in self.by_line:
            raise ValueError(f"assay: {self.path}: line {number} is {'there twice' if known else 'no result of a batch'}")
        self.by_line[result["line"]] = result

    def add(self, result):
        line = json.dumps(result, allow_nan=False).encode() + b"\n"
        left = memoryview(line)
        while left:
            left = left[os.write(self._fd, left) :]
        self._hash.update(line)
        self.by_line[result["line"]] = result

    def changed(self):
        """Whether the file holds other bytes than were written: candidates have the rights of this user."""
        if self.path is None:
            return False
        with open(self.path, "rb") as file:
            read = hashlib.sha256()
            for part in iter(lambda: file.read(1 << 20), b""):
                read.update(part)
        return read.digest() != self._hash.digest()

    def exit_code(self):
        """That of the worst verdict; of errors where nothing else went wrong."""
        results = self.by_line.values()
        verdicts = [result["verdict"] for result in results if result["verdict"] != ERROR]
        code = EXIT_CODES[worst(verdicts)] if verdicts else 0
        if code == 0 and any(result.get("whose") == "judge" for result in results):
            return HARNESS
        return code or (USAGE if len(verdicts) < len(results) else 0)
