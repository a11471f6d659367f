# SPDX-License-Identifier: Apache-2.0
"""Every JSON result of a benchmark names its device, its date and a commit of this history."""
import json
import pathlib
import re
import subprocess
import sys

from . import ROOT

FOLDER = ROOT / "kernels/bench/results"


def git(folder, *arguments):
    return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)


def complaint(result, folder):
    """Empty, or why nobody can measure the result again."""
    for field in ("device", "date"):
        if not result.get(field):
            return f"no \"{field}\""
    commit = str(result.get("commit", ""))
    hashes = re.findall(r"\b[0-9a-f]{7,40}\b", commit)
    if not hashes or "dirty" in commit:
        return f"its \"commit\" is \"{commit}\": name the one that was built, without changes"
    if git(folder, "rev-parse", "--is-shallow-repository").stdout.strip() == "false":  # the whole history is here
        for name in hashes:
            if git(folder, "cat-file", "-e", f"{name}^{{commit}}").returncode != 0:
                return f"commit {name} is not in this history"
    return ""


def load(path):
    """A result to make a page of; a bad one ends the script."""
    path = pathlib.Path(path)
    result = json.loads(path.read_text())
    if wrong := complaint(result, path.parent):
        sys.exit(f"{path}: {wrong}")
    return result


def check(folder=FOLDER):
    for path in sorted(folder.glob("*.json")):
        if wrong := complaint(json.loads(path.read_text()), folder):
            yield f"{path.name}: {wrong}"
