# SPDX-License-Identifier: Apache-2.0
"""assay gate on a repository of kernels in Python: the project of `assay new plugin`, and changes of it."""
import json
import os
import subprocess
import sys

import pytest

PROGRAM = os.environ["ASSAY_PROGRAM"]


def run(*command):
    return subprocess.run(command, text=True, capture_output=True, check=False)


def git(*words):
    ran = run("git", "-c", "user.name=t", "-c", "user.email=t@example.com", *words)
    assert ran.returncode == 0, ran


@pytest.fixture
def project(tmp_path, monkeypatch):
    """What the program writes, committed."""
    ran = run(PROGRAM, "new", "plugin", str(tmp_path / "mine"), "--merge", "--python", "--name", "quick")
    assert ran.returncode == 0, ran
    monkeypatch.chdir(tmp_path / "mine")
    edit("python3 -m", f"{sys.executable} -m", "assay.toml")  # the one that has NumPy
    git("init", "--quiet", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--quiet", "--message", "base")


def gate():
    ran = run(PROGRAM, "--json", "gate.json", "gate", "--base", "main", "--cases", "3")
    with open("gate.json") as file:
        return ran, json.load(file)


def edit(before, after, path="kernel.py"):
    with open(path) as file:
        text = file.read()
    assert before in text
    with open(path, "w") as file:
        file.write(text.replace(before, after))


def test_a_right_change_passes_and_a_wrong_one_is_red(project):
    edit("alive", "living")
    ran, document = gate()
    assert ran.returncode == 0, ran
    assert [kernel["name"] for kernel in document["kernels"]] == ["quick_state", "quick_states"]
    edit("case.dtype) / total", "case.dtype) / total * 1.01")
    ran, document = gate()
    assert ran.returncode == 1, ran
    new = [line for line in document["red"] if line["id"] == "new-finding"]
    assert new and "-m assay.worker kernel.py:merge_state kernel.py:merge_states'" in ran.stdout, ran
