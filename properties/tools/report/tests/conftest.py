# SPDX-License-Identifier: Apache-2.0
"""The folder that report_samples wrote (ASSAY_REPORT_SAMPLES)."""
import os
import pathlib


def samples(extension):
    """Every report of a format; there must be some."""
    folder = pathlib.Path(os.environ["ASSAY_REPORT_SAMPLES"])
    found = sorted(folder.glob(f"*.{extension}"))
    assert found, f"no .{extension} in {folder}"
    return found


def pytest_generate_tests(metafunc):
    for extension in ("xml", "sarif", "html"):
        if extension in metafunc.fixturenames:
            metafunc.parametrize(extension, samples(extension), ids=lambda path: path.stem)
