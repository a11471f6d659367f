#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks of the tree, as the programs that ci/test.sh runs, exit with 1 and with words on a tree that is wrong."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FIGURES = "kernels/torch/TESTS.md"


def append(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(text)


def replace(path, old, new):
    text = path.read_text()
    assert old in text, f"{old} is not in {path}"
    path.write_text(text.replace(old, new, 1))


def seeds(tree):
    for number in range(101):
        append(tree / f"corpus/seeds/many/{number}", "x")


MISTAKES = [  # command, what makes the tree wrong, what is said of it
    ("pages.py", lambda tree: append(tree / "ci/SHAPE.md", "\n[lost](nowhere.md)\n"), "nowhere.md"),
    ("results.py", lambda tree: append(tree / "kernels/bench/results/none.json", "{}"), 'none.json: no "device"'),
    ("results.py kernels/bench", lambda tree: append(tree / "kernels/bench/none.json", "{}"), 'none.json: no "device"'),
    ("page_figures.py", lambda tree: replace(tree / FIGURES, "180.27", "181.27"), "no cell has all figures"),
    (f"page_figures.py {FIGURES}", lambda tree: replace(tree / FIGURES, "180.27", "181.27"), "no cell has all figures"),
    ("tree.py shape", lambda tree: append(tree / "ci/long.py", "pass\n" * 301), "NO REASON"),
    ("tree.py layers", lambda tree: append(tree / "ci/long.py", "pass\n" * 601), "ci/long.py"),
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
        for script in ROOT.glob("ci/*.py"):  # as they are now
            shutil.copy(script, tree / "ci")
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
