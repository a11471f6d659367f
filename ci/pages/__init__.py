# SPDX-License-Identifier: Apache-2.0
"""The checks behind ci/docs.py, one module each."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TEMPLATES = "properties/plugins/templates/"  # pages of other projects: the files that they link to lie beside them there


def tree_files(root=ROOT):
    """Files of the tree that git does not ignore."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True)
    return {name for name in listed.stdout.splitlines() if (root / name).is_file()}
