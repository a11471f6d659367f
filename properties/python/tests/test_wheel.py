# SPDX-License-Identifier: Apache-2.0
"""The wheel: what it holds, that pytest finds it, and that a bundled program is found last."""
import os
import shutil
import subprocess
import sys
import zipfile

import pytest
from conftest import HERE


def built(folder, bundle=None):
    """Path of a wheel, built from a copy: setuptools writes beside its sources."""
    shutil.copytree(HERE.parent, folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    environment = {**os.environ, "ASSAY_BUNDLE": bundle or "", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "-w", folder, folder / "source"]
    subprocess.run(pip, env=environment, check=True)
    return next(folder.glob("*.whl"))


def python_with(wheel, folder, *arguments):
    """Runs Python with nothing but the wheel; ASSAY_PROGRAM is not set, and PATH is the system's."""
    zipfile.ZipFile(wheel).extractall(folder / "installed")
    program = folder / "installed/assay/bin/assay"
    if program.exists():
        program.chmod(0o755)  # as pip does for what was executable
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder / "installed")}
    return subprocess.run([sys.executable, *arguments], env=environment, text=True, capture_output=True)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return built(tmp_path_factory.mktemp("plain"))


def test_holds_the_package_and_nothing_else(plain):
    assert plain.name.endswith("-py3-none-any.whl")
    names = {name for name in zipfile.ZipFile(plain).namelist() if ".dist-info/" not in name}
    package = HERE.parent / "assay"
    assert names == {f"assay/{path.relative_to(package)}" for pattern in ("*.py", "arithmetics/*.json") for path in package.glob(pattern)}


def test_pytest_finds_it(plain, tmp_path):
    ran = python_with(plain, tmp_path, "-m", "pytest", "--help")
    assert "--assay-cases=N" in ran.stdout, ran.stderr


def test_without_a_program_it_says_where_to_get_one(plain, tmp_path):
    ran = python_with(plain, tmp_path, "-c", "import assay; assay.find_program()")
    assert ran.returncode == 1 and "set ASSAY_PROGRAM" in ran.stderr


def test_a_bundled_program_is_found(tmp_path):
    wheel = built(tmp_path, bundle=os.environ["ASSAY_PROGRAM"])
    assert "-py3-none-linux_" in wheel.name  # of this platform only
    info = zipfile.ZipFile(wheel).getinfo("assay/bin/assay")
    assert info.external_attr >> 16 & 0o111
    code = "import assay, subprocess; subprocess.run([assay.find_program(), '--version'], check=True)"
    ran = python_with(wheel, tmp_path, "-c", code)
    assert ran.returncode == 0 and ran.stdout.startswith("assay "), ran.stderr
