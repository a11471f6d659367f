# SPDX-License-Identifier: Apache-2.0
"""ASSAY_BUNDLE=PROGRAM puts that program into the wheel, which then is one of this platform only."""
import os
import pathlib
import shutil

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70
    from wheel.bdist_wheel import bdist_wheel

BUNDLE = os.environ.get("ASSAY_BUNDLE")


class BuildWithProgram(build_py):
    def run(self):
        super().run()
        if BUNDLE:
            to = pathlib.Path(self.build_lib, "assay", "bin")
            to.mkdir(parents=True, exist_ok=True)
            shutil.copy(BUNDLE, to / "assay")


class PlatformDistribution(Distribution):
    def has_ext_modules(self):
        return bool(BUNDLE)


class PlatformWheel(bdist_wheel):
    def get_tag(self):
        tag = super().get_tag()
        # The program asks for a platform, not for a Python.
        return ("py3", "none", tag[2]) if BUNDLE else tag


setup(cmdclass={"build_py": BuildWithProgram, "bdist_wheel": PlatformWheel}, distclass=PlatformDistribution)
