# SPDX-License-Identifier: Apache-2.0
"""On CPU tensors everywhere, and on CUDA tensors where a GPU answers (ASSAY_LIBRARY_SIMT, ASSAY_LIBRARY_CUDA: the libraries)."""
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "bench")]


def pytest_configure(config):
    config.addinivalue_line("markers", "nightly: takes long, and others of its kind run at every change (AssayHelpers.cmake)")


def pytest_generate_tests(metafunc):
    """A test with `device` runs on each that there is."""
    if "device" in metafunc.fixturenames:
        import torch

        kinds = ["cpu", "cuda:0"] if torch.cuda.is_available() else ["cpu"]
        metafunc.parametrize("device", [torch.device(kind) for kind in kinds], ids=kinds)


@pytest.fixture(autouse=True)
def unwritten_memory_shows():
    """What torch.empty gives holds NaN, or the largest integer: nobody is right because it was 0 by chance. On a GPU that
    would be one launch more, which tests count."""
    torch = sys.modules.get("torch")
    if torch is None or torch.cuda.is_available():
        yield
        return
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
