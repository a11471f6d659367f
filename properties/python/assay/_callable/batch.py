# SPDX-License-Identifier: Apache-2.0
"""`judge-callable --batch FILE`: a candidate a line, a result a line, and the next run goes on where this one ended."""
import concurrent.futures
import dataclasses
import hashlib
import json
import sys
import typing

from ..worker import plain
from . import isolation, table, task
from .judges import ERROR, Judges
from .results import HARNESS, USAGE, Results
from .verdict import FINDING


@dataclasses.dataclass(frozen=True)
class Line:
    number: int
    id: typing.Any  #: None where it has none
    of: str  #: says what was judged, so that a result is not taken for another candidate's
    arguments: typing.Any  #: of judge_callable; None of a bad line
    error: str = ""

    def result(self, said):
        named = {} if self.id is None else {"id": self.id}
        asked = {name: self.arguments[name] for name in ("target", "shape")} if self.arguments else {}
        return {"line": self.number, **named, "of": self.of, **asked, **said}


def read_lines(path, defaults):
    """Of every line that is not empty: what is asked. Bad ones are lines with an error."""
    lines, ids = [], {}
    with open(path, "rb") as file:
        for number, text in enumerate(iter(lambda: _next(file), b""), 1):
            if text.strip():
                lines.append(_line(number, text, defaults, ids))
    return lines


def _next(file):
    """A line; of one that is too long, as much as shows that it is."""
    text = file.readline(task.MOST_BYTES + 2)
    rest = text
    while rest and not rest.endswith(b"\n"):
        rest = file.readline(task.MOST_BYTES)
    return text


def _line(number, text, defaults, ids):
    text, name = text.strip(), None
    try:
        given = task.parsed(text)
        name = task.identity(given)
        if name is not None and ids.setdefault((type(name), name), number) != number:
            taken, name = ids[type(name), name], None
            raise task.FieldError("id", f"that of line {taken}")
        arguments = task.arguments(given, defaults)
    except task.FieldError as error:
        return Line(number, name, _digest(text), None, plain(str(error)))
    return Line(number, name, _digest(json.dumps(arguments, sort_keys=True).encode()), arguments)


def _digest(text):
    return hashlib.sha256(text).hexdigest()[:16]


def left(lines, results, path):
    """Lines without a result. ValueError where a result is that of another candidate."""
    known = {line.number: line for line in lines}
    for number, result in results.by_line.items():
        line = known.get(number)
        if line is None or (line.of, line.id) != (result["of"], result.get("id")):
            raise ValueError(f"assay: {results.path}: its result of line {number} is not that of line {number} of {path} with these options")
    return [line for line in lines if line.number not in results.by_line]


class _Progress:
    """For people, on standard error."""

    def __init__(self, results, total):
        self.results, self.total = results, total
        self.findings = sum(result["verdict"] == FINDING for result in results.by_line.values())
        if results.by_line:
            self._say(f"{len(results.by_line)} of {total} were there, findings {self.findings}")

    def _say(self, text):
        print(f"assay judge-callable: {text}", file=sys.stderr, flush=True)

    def add(self, result):
        self.findings += result["verdict"] == FINDING
        name = plain(str(result.get("id", f"line {result['line']}")))
        self._say(f"{len(self.results.by_line)} of {self.total}, findings {self.findings}; {name[:80]}: {result['verdict']}")


def _judge(lines, judges, keep):
    for line in lines:
        if line.arguments is None:
            keep(line.result({"verdict": ERROR, "whose": "line", "cause": line.error}))
    asked = {judges.submit(line.arguments): line for line in lines if line.arguments is not None}
    for future in concurrent.futures.as_completed(list(asked)):
        keep(asked.pop(future).result(future.result()))


def run(path, out, html, jobs, limits, defaults):
    """The exit code. ValueError and OSError: a file that does not fit."""
    lines = read_lines(path, defaults)
    if not lines:
        raise ValueError(f"assay: {path}: no line has a candidate")
    results = Results(None if out in (None, "-") else out)
    todo, progress = left(lines, results, path), _Progress(results, len(lines))

    def keep(result):
        results.add(result)
        progress.add(result)

    if html:
        table.write(html, [])  # a folder that is not there is said before anything runs
    isolation.unreadable()
    judges = Judges(jobs, limits)
    try:
        _judge(todo, judges, keep)
    except BaseException:  # among others that somebody interrupts it
        judges.kill()
        raise
    judges.close()
    return _finish(results, html)


def _finish(results, html):
    if html:
        table.write(html, [results.by_line[number] for number in sorted(results.by_line)])
    if results.changed():
        print(f"assay judge-callable: {results.path}: changed by something else while candidates ran; do not trust it", file=sys.stderr)
        return HARNESS
    return results.exit_code()


__all__ = ["USAGE", "run"]
