#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks of the tree, as the programs that ci/test.sh runs, exit with 1 and with words on a tree that is wrong."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def append(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(text)


def seeds(tree):
    for number in range(101):
        append(tree / f"corpus/seeds/many/{number}", "x")


MISTAKES = [  # command, what makes the tree wrong, what is said of it
    ("docs.py check", lambda tree: append(tree / "HACKING.md", "\n[lost](nowhere.md)\n"), "nowhere.md"),
    ("docs.py results", lambda tree: append(tree / "kernels/bench/results/none.json", "{}"), 'none.json: no "device"'),
    ("tree.py shape", lambda tree: append(tree / "ci/long.py", "pass\n" * 601), "ci/long.py"),
    ("tree.py layers", seeds, "corpus/seeds/many"),
]


def git(tree, *arguments):
    subprocess.run(["git", *arguments], cwd=tree, check=True)


def ran(tree, command):
    script, *arguments = command.split()
    return subprocess.run([sys.executable, "-B", str(tree / "ci" / script), *arguments], cwd=tree, text=True, capture_output=True, check=False)


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        tree = pathlib.Path(work) / "tree"
        subprocess.run(["git", "clone", "-q", "--shared", ROOT, tree], check=True)
        for script in [*ROOT.glob("ci/*.py"), *ROOT.glob("ci/pages/*.py")]:  # as they are now
            shutil.copy(script, tree / script.relative_to(ROOT))
        git(tree, "-c", "user.name=test", "-c", "user.email=t@example.org", "commit", "-q", "--allow-empty", "-a", "-m", "as it is now")
        for command, spoil, expected in MISTAKES:
            spoil(tree)
            git(tree, "add", "-A")
            said = ran(tree, command)
            if said.returncode != 1 or expected not in said.stdout + said.stderr:
                print(f"{command}: expected {expected!r}, got {said.returncode}: {said.stdout}{said.stderr}")
                failed += 1
            git(tree, "reset", "-q", "--hard")
    print(f"programs_test: {len(MISTAKES)} trees, {failed} judged wrongly")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
