# SPDX-License-Identifier: Apache-2.0
"""ASSAY_BUNDLE=PROGRAM puts that program into the wheel, which then is one of this platform only."""
import os
import pathlib
import shutil

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

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


setup(cmdclass={"build_py": BuildWithProgram}, distclass=PlatformDistribution)
