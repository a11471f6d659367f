# SPDX-License-Identifier: Apache-2.0
"""The program `assay`: finding it and running it."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import typing

from . import _processor

USAGE, UNSUPPORTED = 2, 3  #: exit codes of the program


class ProgramError(RuntimeError):
    """The program is not there, or ended without a verdict: usage (2), unsupported (3), its own failure (4)."""

    def __init__(self, message: str, exit_code: typing.Optional[int] = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class NoProgramError(ProgramError):
    """The program is not installed."""


def on_path():
    """The `assay` of PATH, or None. The script that pip makes is passed over: it asks here for the program."""
    for folder in os.get_exec_path():
        found = shutil.which("assay", path=folder)
        if found:
            with open(found, "rb") as file:
                if b"assay.__main__" not in file.read(1024):
                    return found
    return None


def find_program() -> str:
    """ASSAY_PROGRAM, else the one in this wheel, else `assay` on PATH. ProgramError where there is none."""
    named = os.environ.get("ASSAY_PROGRAM")
    if named:
        if os.path.isdir(named) or not os.access(named, os.X_OK):
            raise ProgramError(f"assay: ASSAY_PROGRAM={named}: is no program", USAGE)
        return named
    bundled = pathlib.Path(__file__).with_name("bin") / "assay"
    if os.access(bundled, os.X_OK):
        _processor.warn()
        return str(bundled)
    found = on_path()
    if found is None:
        raise NoProgramError(
            "assay: the program, which has every command but judge, was not found: install a wheel that has it "
            "(ci/wheel.sh, or pip install . with --config-settings cmake.define.ASSAY_WHEEL=all), set ASSAY_PROGRAM to "
            "build/simt/assay of the tree, or put it on PATH",
            UNSUPPORTED,
        )
    return found


def environment():
    """That of this process, with its search path, so that a worker finds what this process finds."""
    paths = [os.path.abspath(p) for p in sys.path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def run_program(arguments, program=None):
    """Returns the finished process with text output. ProgramError where it cannot be started."""
    command = [program or find_program(), *arguments]
    try:
        return subprocess.run(command, env=environment(), text=True, errors="replace", capture_output=True)
    except OSError as error:
        raise ProgramError(f"assay: {command[0]}: {error.strerror}") from error


_properties: typing.Dict[str, typing.Any] = {}


def list_properties(program=None):
    """What `assay list properties --json -` says of each."""
    program = program or find_program()
    if program not in _properties:
        ran = run_program(["list", "properties", "--json", "-"], program)
        if ran.returncode != 0:
            raise ProgramError(ran.stderr.strip() or f"assay: {program} lists no properties", ran.returncode)
        _properties[program] = json.loads(ran.stdout)["properties"]
    return _properties[program]
