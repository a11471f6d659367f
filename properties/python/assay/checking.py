# SPDX-License-Identifier: Apache-2.0
"""Runs `assay check` on a Python function."""
import dataclasses
import json
import os
import shlex
import sys
import tempfile
import typing

from . import worker_errors
from .declaration import Declaration
from .spec import Spec, worker_arguments
from .program import ProgramError, run_program
from .result import Result


def _spec_of(kernel, fields):
    given = {name: value for name, value in fields.items() if value is not None}
    marked = getattr(kernel, "__assay__", None)
    if marked is not None:
        return dataclasses.replace(marked, **given) if given else marked
    missing = [name for name in ("family", "declaration") if name not in given]
    if missing:
        raise TypeError(f"assay.check: {missing[0]} is missing: give it here or in @assay.kernel")
    given.setdefault("name", getattr(kernel, "__name__", "kernel"))
    return Spec(**given)


def _only_text(only):
    if isinstance(only, str):
        return only
    values = {k: v if isinstance(v, (list, tuple)) else [v] for k, v in only.items()}
    return ",".join(f"{name}={'/'.join(map(str, v))}" for name, v in values.items())


def worker_command(kernel, spec):
    """The command of a worker that serves `kernel`, as one line for a shell."""
    return shlex.join([sys.executable, "-m", "assay.worker", *worker_arguments(kernel, spec)])


def check(
    kernel: typing.Callable[..., typing.Any],
    *,
    family: typing.Optional[str] = None,
    declaration: typing.Optional[Declaration] = None,
    supports: typing.Optional[typing.Callable[..., typing.Any]] = None,
    name: typing.Optional[str] = None,
    cases: typing.Optional[int] = None,
    budget: typing.Optional[str] = None,
    property: typing.Optional[str] = None,
    only: typing.Union[str, typing.Mapping[str, typing.Any], None] = None,
    seed: int = 1,
    threads: typing.Optional[int] = None,
    out: typing.Union[str, "os.PathLike[str]", None] = None,
    patience: typing.Optional[str] = None,
    program: typing.Optional[str] = None,
    **promises: typing.Any,
) -> Result:
    """Draws cases, runs the kernel on them in processes of their own, and judges what it wrote.

    kernel      a function of a Case, defined in a module or script
    family, declaration, supports, name, promises   as in assay.kernel; in the place of what it is marked with
    cases       decided cases per property (40), or budget: time for all of them, "60s"
    property    one property instead of all
    only        values of fields: {"dtype": "bf16", "head_dim": [64, 128]}
    seed        of everything drawn
    threads     as many processes run the kernel (one per core)
    out         folder for findings (./findings); those that it holds are run first
    patience    how long a call may take, "60s"
    program     in the place of find_program()

    Returns a Result. ValueError and TypeError for a kernel that no other process finds and for wrong
    arguments, ProgramError where there is no verdict: exit_code 2 (an argument is refused, by name),
    3 (no program, or another version) or 4 (the kernel's module cannot be loaded).
    """
    if worker_errors.loading:
        raise worker_errors.LoadedSoFar
    fields = dict(family=family, declaration=declaration, supports=supports, name=name, **promises)
    arguments = ["check", "--worker", worker_command(kernel, _spec_of(kernel, fields)), "--seed", str(seed)]
    options = {
        "cases": cases,
        "budget": budget,
        "property": property,
        "only": _only_text(only) if only else None,
        "threads": threads,
        "out": out,
        "patience": patience,
    }
    for option, value in options.items():
        if value is not None:
            arguments += [f"--{option}", str(value)]
    with tempfile.TemporaryDirectory(prefix="assay") as folder:
        path = os.path.join(folder, "report.json")
        ran = run_program([*arguments, "--json", path], program)
        report = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
    if not report.get("complete"):
        raise ProgramError(ran.stderr.strip() or ran.stdout.strip(), ran.returncode)
    return Result(ran.returncode, report, ran.stdout)
