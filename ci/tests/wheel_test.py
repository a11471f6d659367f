# SPDX-License-Identifier: Apache-2.0
"""What an installed wheel does, in a folder of its own: the program, the judge, the plugin of pytest, the libraries.

Run by ci/wheel.sh with the Python of a virtual environment that holds the wheel and pytest alone."""
import ctypes
import importlib.metadata
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import assay

PACKAGE = pathlib.Path(assay.__file__).parent
ROADS = [["assay"], [sys.executable, "-m", "assay"], [str(PACKAGE / "bin/assay")]]
pytest_plugins = ["pytester"]
USER = """
import numpy as np, pytest

@pytest.mark.parametrize("size", [1.0, 1.25])
def test_values_are_averaged(assay_judge, size):
    q, k = np.zeros((1, 1, 8), np.float16), np.ones((1, 4, 1, 8), np.float16)
    assay_judge(np.full((1, 1, 8), size, np.float16), q, (k, k), seq_lens=[4])
"""


def run(*command):
    return subprocess.run(command, text=True, capture_output=True)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", ROADS)
def test_the_program_runs_and_is_of_the_same_version(command):
    ran = run(*command, "--version")
    assert ran.returncode == 0 and ran.stdout.split()[1].startswith(assay.__version__), ran


def test_the_program_checks_its_kernels_and_finds_its_findings():
    ran = run("assay", "check", "--kernel", "merge_state", "--property", "within_budget", "--cases", "20", "--quiet", "--json", "check.json")
    assert ran.returncode == 0, ran
    assert str(PACKAGE / "share/assay/findings") in json.dumps(json.loads(pathlib.Path("check.json").read_text()))


def test_a_kernel_in_python_is_checked():
    pathlib.Path("mine.py").write_text(
        "import assay\n"
        "def nothing(case): raise assay.Unsupported('never')\n"
        "result = assay.check(nothing, family='merge_state', declaration=assay.Declaration(), cases=1)\n"
        "print(result.exit_code)\n"
    )
    ran = run(sys.executable, "mine.py")
    assert ran.returncode == 0 and ran.stdout.strip() != "0", ran


def test_what_there_is_is_listed():
    assert {"judge", "assert_attention", "check", "kernel", "Declaration", "__version__"} <= set(dir(assay))
    assert all(getattr(assay, name) is not None for name in dir(assay)) and (PACKAGE / "py.typed").is_file()


def test_the_libraries_of_others_are_inside():
    assay.judge(*(np.ones((1, 1, 8), np.float16),) * 2, (np.ones((1, 1, 8), np.float16),) * 2, seq_lens=[1])
    loads = subprocess.run([PACKAGE / "bin/assay"], env={"LD_TRACE_LOADED_OBJECTS": "1"}, text=True, capture_output=True).stdout
    for listed in (loads, pathlib.Path("/proc/self/maps").read_text()):
        found = [line for line in listed.splitlines() if re.search("lib(mpfi|mpfr|gmp)", line)]
        assert found and all("/attention_assay.libs/" in line for line in found), found
    assert (PACKAGE.parent / "attention_assay.libs/libgmp10.copyright").is_file()


def test_the_judge_of_gpu_tensors_is_found_where_its_wheel_is():
    from assay._judge import library

    try:
        importlib.metadata.version("attention-assay-cuda")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("attention-assay-cuda is not installed")
    assert library.cuda_library().assay_judge_attention_cuda


def test_tensors_are_judged():
    q, k = np.zeros((1, 1, 8), np.float16), np.ones((1, 4, 1, 8), np.float16)
    assert assay.judge(np.ones((1, 1, 8), np.float16), q, (k, k), seq_lens=[4]).passed
    with pytest.raises(assay.AttentionError, match="outside: row 0"):
        assay.assert_attention(np.zeros((1, 1, 8), np.float16), q, (k, k), seq_lens=[4])


@pytest.mark.parametrize("command", ROADS)
def test_a_failed_call_is_judged_again(command):
    q, k = np.zeros((1, 1, 8), np.float16), np.ones((1, 4, 1, 8), np.float16)
    with pytest.raises(assay.AttentionError) as raised:
        assay.assert_attention(np.zeros((1, 1, 8), np.float16), q, (k, k), seq_lens=[4])
    ran = run(*command, "judge", str(raised.value.path))
    assert ran.returncode == 1 and "outside: row 0" in ran.stdout, ran


@pytest.mark.parametrize("options", [(), ("-p", "assay.pytest_plugin")])
def test_pytest_has_the_plugin_once(pytester, options):
    pytester.makepyfile(test_user=USER)
    ran = pytester.runpytest_subprocess(*options)
    ran.assert_outcomes(passed=1, failed=1)


def test_the_library_has_its_entry_points():
    library = ctypes.CDLL(str(PACKAGE / "lib/libassay_simt.so"))
    assert library.assay_merge_state and (PACKAGE / "include/assay/assay.h").is_file()


def test_the_torch_operators_are_there_and_find_their_library():
    folder = PACKAGE.parent / "assay_torch"
    assert (folder / "operators.py").is_file() and not (folder / "tests").exists()
    torch = pytest.importorskip("torch", minversion="2.4")
    import assay_torch

    lengths, cache = torch.tensor([3], dtype=torch.int32), torch.ones(1, 16, 1, 64, dtype=torch.float16)
    out = assay_torch.paged_attention(cache[:, 0], (cache, cache), torch.zeros(1, 1, dtype=torch.int32), lengths)
    assert (out == 1).all()
