#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which results of benchmarks ci/results.py refuses."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import results  # noqa: E402

TABLE = """<!-- commits -->
| result | commit | reason |
|---|---|---|
| `{name}` | {commit} | {reason} |
<!-- /commits -->
"""


class Results(unittest.TestCase):
    """A repository of one commit, with a result in it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.git("init", "-q")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one")
        self.head = self.git("rev-parse", "--short=12", "HEAD").strip()

    def git(self, *arguments):
        return subprocess.run(["git", "-C", self.folder, *arguments], capture_output=True, text=True, check=True).stdout

    def complaints(self, **fields):
        result = {"device": "NVIDIA H200", "date": "2026-11-25", "commit": self.head, "cells": []} | fields
        (self.folder / "new.json").write_text(json.dumps(result))
        return list(results.check(self.folder))

    def test_a_commit_of_the_history_is_taken(self):
        self.assertEqual(self.complaints(), [])
        self.assertEqual(self.complaints(commit=f"{self.head}; merge_states: {self.head[:7]}"), [])

    def test_an_unknown_commit_is_refused(self):
        for commit in ("unknown", "not recorded", "", f"{self.head}-dirty", "0123456789ab"):
            with self.subTest(commit=commit):
                self.assertEqual(len(self.complaints(commit=commit)), 1)

    def test_device_and_date_are_asked_for(self):
        self.assertEqual(len(self.complaints(device="")), 1)
        self.assertEqual(len(self.complaints(date=None)), 1)

    def test_the_journal_excuses_with_a_reason(self):
        journal = self.folder / "journal.md"
        journal.write_text(TABLE.format(name="new.json", commit="not recorded", reason="no git there"))
        self.assertEqual(self.complaints(commit="not recorded"), [])
        self.assertIn("the file unknown", self.complaints(commit="unknown")[0])
        self.assertIn("needs no reason", self.complaints()[-1])
        journal.write_text(TABLE.format(name="old.json", commit="not recorded", reason="no git there"))
        self.assertIn("there is no old.json", self.complaints()[0])

    def test_no_page_is_made_of_a_refused_one(self):
        self.complaints(commit="unknown")
        with self.assertRaises(SystemExit):
            results.load(self.folder / "new.json")
        self.complaints()
        self.assertEqual(results.load(self.folder / "new.json")["commit"], self.head)


if __name__ == "__main__":
    unittest.main()
