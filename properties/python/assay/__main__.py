# SPDX-License-Identifier: Apache-2.0
"""`python -m assay`, and `assay` where the package is installed: `judge`, `judge-callable` and `serve` here, everything else by
the program."""
import importlib
import os
import pathlib
import re
import sys
import traceback

from . import program

#: The program removes this from its environment: whoever starts here with it was taken for the program.
_PASSED_ON = "ASSAY_PASSED_ON"
#: Commands of this package, and the modules that have them.
_HERE = {"judge": "judge_command", "judge-callable": "_callable.command", "serve": "_callable.serve_command"}
_LACKING, _HARNESS = 3, 4  #: exit codes, those of the program


def main():
    words = sys.argv[1:]
    sys.exit(_here(words[0], words[1:]) if words and words[0] in _HERE else _pass_on(words))


def _say(line, code):
    print(line, file=sys.stderr)
    return code


def _here(command, arguments):
    try:
        module = importlib.import_module("." + _HERE[command], __package__)
        from ._judge.library import LibraryError
    except ModuleNotFoundError as error:
        return _say(f"assay: {command} needs the package {error.name}: pip install {error.name} brings it", _LACKING)
    try:
        return module.main(arguments)
    except LibraryError as error:
        return _say(error, _LACKING)
    except Exception:  # Python would exit with 1, which is a finding
        traceback.print_exc()
        return _HARNESS


def _pass_on(words):
    """Becomes the program; an exit code where that fails."""
    try:
        path = program.find_program()
        if os.environ.get(_PASSED_ON):
            raise program.ProgramError(f"assay: {path} starts the Python package and not the program", program.USAGE)
        os.execve(path, [path, *words], {**os.environ, _PASSED_ON: "1"})
    except program.NoProgramError as error:
        return _without_program(words, error)
    except program.ProgramError as error:
        return _say(error, error.exit_code)
    except OSError as error:
        return _say(f"assay: {path}: {error.strerror}", program.USAGE)


def _without_program(words, error):
    """Says what the program says of itself, and of each of its commands who brings it."""
    text = pathlib.Path(__file__).with_name("help.txt").read_text(encoding="utf-8")
    known = re.findall(r"^  ([a-z][a-z-]*) ", text, re.MULTILINE)
    if words[:1] in (["--help"], ["-h"]):
        print(text, end="")
        return 0
    if words[:1] == ["--version"]:
        from . import __version__

        print(f"assay {__version__}")
        return 0
    if not words:
        return _say(f"assay: A subcommand is required; one of {', '.join(known)}", program.USAGE)
    if words[0] not in known and not words[0].startswith("-"):
        return _say(f"assay: unknown command {words[0]!r}; known: {', '.join(known)}", program.USAGE)
    late = [word for word in words if word in _HERE]
    if late:
        return _say(f"assay: {late[0]}: stands before its options (assay {late[0]} --help)", program.USAGE)
    return _say(error, error.exit_code)


if __name__ == "__main__":
    main()
