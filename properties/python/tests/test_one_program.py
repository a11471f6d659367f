# SPDX-License-Identifier: Apache-2.0
"""`assay` is one command line, whichever part of it is installed."""
import itertools
import os
import pathlib
import re
import subprocess
import sys

import assay
import pytest

PROGRAM = assay.find_program()
HELP = pathlib.Path(assay.__file__).with_name("help.txt").read_text()
MODULE = [sys.executable, "-m", "assay"]


def run(command, *words, **variables):
    told = {"PYTHONPATH": str(pathlib.Path(assay.__file__).parents[1]), "PATH": "/nowhere", **variables}
    return subprocess.run([*command, *words], env=told, text=True, capture_output=True, timeout=60)


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--version"], [], ["nosuch"], ["no\x1bsuch"], ["--quiet", "judge", "a.npz"]])
def test_the_package_alone_says_what_the_program_says(words):
    """Of --version the program says more: the package knows neither commit nor targets."""
    alone, whole, through = run(MODULE, *words), run([PROGRAM], *words), run(MODULE, *words, ASSAY_PROGRAM=PROGRAM)
    assert (through.returncode, through.stdout, through.stderr) == (whole.returncode, whole.stdout, whole.stderr)
    assert alone.returncode == whole.returncode == (0 if words[:1] in (["--help"], ["-h"], ["--version"]) else 2)
    if words == ["--version"]:
        assert re.match(r"assay [0-9]", alone.stdout) and alone.stdout.count("\n") == 1
    else:
        assert (alone.stdout, re.sub("'.*'", "", alone.stderr)) == (whole.stdout, re.sub("'.*'", "", whole.stderr))
    assert "\x1b" not in alone.stderr


def test_help_of_the_package_is_that_of_the_program():
    assert run([PROGRAM], "--help").stdout == HELP, f"run {PROGRAM} --help >properties/python/assay/help.txt"


@pytest.mark.parametrize("words", [["check"], ["list", "kernels"], ["--quiet", "check"]])
def test_a_command_of_the_program_says_who_brings_it(words):
    ran = run(MODULE, *words)
    assert ran.returncode == 3 and ran.stdout == ""
    assert re.fullmatch("assay: the program, .* was not found: .*ASSAY_WHEEL=all.*\n", ran.stderr), ran.stderr


def test_a_missing_numpy_is_no_finding(tmp_path):
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError(name='numpy')")
    ran = run(MODULE, "judge", "file", PYTHONPATH=f"{tmp_path}:{pathlib.Path(assay.__file__).parents[1]}")
    assert (ran.returncode, ran.stderr) == (3, "assay: judge needs the package numpy: pip install numpy brings it\n")


@pytest.mark.parametrize("how", ["", "exec "])
@pytest.mark.parametrize("variable", ["ASSAY_PROGRAM", "PATH"])
def test_a_script_that_starts_itself_ends(tmp_path, how, variable):
    wrapper = script(tmp_path / "assay", f'{how}{sys.executable} -m assay "$@"')
    ran = run(MODULE, "check", **{variable: wrapper if variable == "ASSAY_PROGRAM" else str(tmp_path)})
    assert (ran.returncode, ran.stderr) == (2, f"assay: {wrapper} starts the Python package and not the program\n")


@pytest.mark.parametrize("kinds", itertools.product(("nothing", "script", "program"), repeat=3), ids="-".join)
def test_the_first_program_of_the_path_is_taken_and_no_script_of_pip(tmp_path, monkeypatch, kinds):
    """The script's first line may be long: it names an interpreter in a deep folder."""
    texts = {"script": f"# {'deep/' * 60}\nfrom assay.__main__ import main", "program": "echo"}
    for at, kind in enumerate(kinds):
        (tmp_path / str(at)).mkdir()
        if kind in texts:
            script(tmp_path / str(at) / "assay", texts[kind])
    monkeypatch.setenv("PATH", os.pathsep.join(str(tmp_path / str(at)) for at in range(3)))
    assert assay.program.on_path() == (str(tmp_path / str(kinds.index("program")) / "assay") if "program" in kinds else None)


def test_a_wrapper_of_the_program_is_taken_and_what_the_program_starts_may_use_it_again(tmp_path):
    wrapper = script(tmp_path / "assay", f'exec {PROGRAM} "$@"')
    assert run(MODULE, "list", "kernels", ASSAY_PROGRAM=wrapper).returncode == 0
    script(tmp_path / "python3", f"ASSAY_PROGRAM={PROGRAM} exec {sys.executable} -m assay list kernels")  # what `judge` starts
    judges = script(tmp_path / "judges", f"exec {PROGRAM} judge")
    assert run(MODULE, "check", ASSAY_PROGRAM=judges, PATH=str(tmp_path)).returncode == 0


def test_the_program_judges_by_the_package():
    """The two have the same words and codes, the program with the judge's library beside it alone."""
    path = os.path.dirname(sys.executable)
    for words in (["--help"], [], ["none.npz"], ["--nosuch"]):
        through, here = run([PROGRAM], "judge", *words, PATH=path), run(MODULE, "judge", *words)
        assert (through.returncode, through.stdout, through.stderr) == (here.returncode, here.stdout, here.stderr)
