# SPDX-License-Identifier: Apache-2.0
"""Every test in a folder of its own: checks replay and write ./findings."""
import os
import pathlib
import shlex
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "examples"), str(ROOT / "corpus/functions")]
pytest_plugins = ["pytester"]


def pytest_configure(config):
    config.addinivalue_line("markers", "nightly: takes long, and others of its kind run at every change (AssayHelpers.cmake)")


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


class Program:
    """The program by its command line."""

    case = "assay-case 1\nproperty = within_budget\nfamily = merge_state\nrows = 2\nend\n"

    def run(self, *arguments):
        from assay import program

        return program.run_program([str(a) for a in arguments])

    def worker(self, target):
        return shlex.join([sys.executable, "-m", "assay.worker", target])

    def replay(self, worker, *more, text=case):
        """One case, on the kernels of a worker."""
        pathlib.Path("one.case").write_text(text)
        return self.run("replay", "one.case", "--worker", worker, *more)


@pytest.fixture
def program():
    return Program()


@pytest.fixture
def element_bits():
    """Encodings of the harness: element_bits("to", dtype, words)."""
    import numpy as np

    def convert(direction, dtype, words):
        words = np.ascontiguousarray(words, np.uint32)
        command = [os.environ["ASSAY_ELEMENT_BITS"], direction, dtype]
        ran = subprocess.run(command, input=words.tobytes(), capture_output=True, check=True)
        return np.frombuffer(ran.stdout, np.uint32)

    return convert
