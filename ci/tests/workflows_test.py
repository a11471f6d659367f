#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""workflows.py sees what is wrong on purpose in a copy of .github."""
import contextlib
import functools
import io
import pathlib
import shutil
import subprocess
import sys
import tempfile
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "ci"))
import workflows  # noqa: E402

GATE, NIGHT, ACTION = "workflows/gate.yml", "workflows/campaign.yml", "actions/gate/action.yml"
RIGHT = [(GATE, "checkout@v4", "checkout@" + "0a" * 20), (GATE, "on: [pull_request]", "on: push")]
MISTAKES = [  # file, what stands there (or several), what stands there instead, what is said of it
    (GATE, "ci/gate.sh", "ci/gates.sh", "ci/gates.sh: cannot be run"),
    (GATE, "\"$BASE\"", "\"$BASE", "Couldn't parse"),
    (GATE, "\"$BASE\"", "${{ github.head_ref }}", "hand it over in env"),
    (GATE, "github.event", "gihub.event", "'gihub' in an expression"),
    (GATE, "timeout-minutes: 60", "name: gate", "no timeout-minutes"),
    (GATE, "checkout@v4", "checkout", "without a version"),
    (GATE, "permissions:\n  contents: read\n", "", "no permissions"),
    (GATE, "ubuntu-latest", "[self-hosted, gpu]", "a machine of one's own"),
    (GATE, ("ubuntu-latest", "[pull_request]"), ("[self-hosted, gpu]", "[pull_request_target]"), "a machine of one's own"),
    (GATE, "    runs-on: ubuntu-latest\n", "", "no runs-on"),
    (GATE, "checkout@v4", "checkout@main", "without a version"),
    (GATE, "actions/checkout@v4", "./nowhere", "./nowhere: no action there"),
    (GATE, "- uses: actions/checkout@v4", "- run: 'true'\n        uses: actions/checkout@v4", "one of them"),
    (GATE, "- run: ci/gate.sh --base \"$BASE\"\n        env", "- env", "one of them"),
    (GATE, "ci/gate.sh", "ci/docs_test.py", "ci/docs_test.py: cannot be run"),
    (GATE, "if: always()", "if: allways()", "'allways' in an expression"),
    (NIGHT, "inputs.hours", "input.hours", "'input' in an expression"),
    (ACTION, "inputs.base", "inputs.bases", "inputs.bases: not declared"),
    (ACTION, "using: composite", "using: node20", "no composite action"),
    (GATE, "jobs:", "jobs: [", "ParserError"),
    (GATE, "    steps:", "    container: debian:12\n    steps:", "'container' twice"),
    (NIGHT, "inputs.hours", "inputs.hour", "inputs.hour: not declared"),
    (ACTION, "inputs.budget }}", "inputs.budget }", "without its end"),
    (ACTION, "      shell: bash\n", "", "names its shell"),
    (ACTION, "    description: Time for everything", "    title: Time for everything", "no description"),
]


def as_program(folder):
    """(exit code, what is printed)."""
    ran = subprocess.run([sys.executable, "-B", ROOT / "ci/workflows.py", folder], text=True, capture_output=True, check=False)
    return ran.returncode, ran.stdout + ran.stderr


def said_of(folder):
    """The same in this process, where a script is looked at once."""
    with contextlib.redirect_stdout(io.StringIO()) as said, mock.patch.object(sys, "argv", ["workflows.py", str(folder)]):
        return workflows.main(), said.getvalue()


def main():
    failed, shell = 0, workflows.shell
    workflows.shell = functools.cache(lambda text: list(shell(text)))
    ways = [as_program, *[said_of] * (len(MISTAKES) - 1), as_program, *[said_of] * (len(RIGHT) - 1)]
    for run, (path, old, new, expected) in zip(ways, [*MISTAKES, *((*right, "workflows: ok") for right in RIGHT)]):
        with tempfile.TemporaryDirectory() as work:
            folder = pathlib.Path(work) / ".github"
            shutil.copytree(ROOT / ".github", folder)
            text = changed = (folder / path).read_text()
            pairs = list(zip(old, new)) if isinstance(old, tuple) else [(old, new)]
            for there, instead in pairs:
                changed = changed.replace(there, instead, 1)
            (folder / path).write_text(changed)
            code, said = run(folder)
            if any(there not in text for there, _ in pairs) or code != (expected != "workflows: ok") or expected not in said:
                print(f"{path}: {old!r} -> {new!r}: expected {expected!r}, got {code}: {said}")
                failed += 1
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work) / ".github"
        shutil.copytree(ROOT / ".github", folder)
        for path, *pairs in ((GATE, ("ci/gate.sh", "ci/gates.sh"), ("timeout-minutes: 60", "name: gate"), ("checkout@v4", "checkout"), ("github.event", "gihub.event")),
                             (NIGHT, ("inputs.hours", "inputs.hour")), (ACTION, ("      shell: bash\n", ""), ("inputs.base", "inputs.bases"))):  # fmt: skip
            text = (folder / path).read_text()
            for old, new in pairs:
                text = text.replace(old, new)
            (folder / path).write_text(text)
        code, said = said_of(folder)
        words = ("ci/gates.sh: cannot be run", "no timeout-minutes", "without a version", "'gihub' in an", "inputs.hour: not", "names its shell", "inputs.bases: not")
        if code != 1 or any(word not in said for word in words):
            print(f"several mistakes at once: {said}")
            failed += 1
    print(f"workflows_test: {len(MISTAKES)} mistakes, {len(RIGHT)} right changes, {failed} judged wrongly")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
