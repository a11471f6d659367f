# SPDX-License-Identifier: Apache-2.0
"""What the package lists, and what it says of a processor that is too old for a wheel."""
import subprocess
import sys

import assay
import pytest
from assay import _processor

OLD = "processor : 0\nflags\t\t: fpu sse sse2 avx movbe\nprocessor : 1\n"


def test_everything_public_is_listed_and_there():
    assert set(assay.__all__) < set(dir(assay)) and all(getattr(assay, name) is not None for name in dir(assay))


def test_listing_loads_neither_numpy_nor_the_judge():
    said = "import sys, assay; dir(assay); print(sorted({'numpy', 'assay.judging', 'assay.flashinfer'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", said], text=True, capture_output=True).stdout == "[]\n"


def test_the_script_of_pip_is_not_the_program(tmp_path, monkeypatch):
    for folder, begin in (("venv", "#!/usr/bin/python3\nfrom assay.__main__ import main\n"), ("bin", "#!/bin/sh\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "assay").write_text(begin)
        (tmp_path / folder / "assay").chmod(0o755)
    monkeypatch.delenv("ASSAY_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'venv'}:{tmp_path / 'bin'}")
    assert assay.find_program() == str(tmp_path / "bin/assay")
    monkeypatch.setenv("PATH", str(tmp_path / "venv"))
    with pytest.raises(assay.ProgramError, match="install a wheel that has it"):
        assay.find_program()


def test_an_old_processor_is_told(tmp_path, monkeypatch):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(OLD)
    assert _processor.lacking(cpuinfo) == ["abm", "avx2", "bmi1", "bmi2", "f16c", "fma"]
    monkeypatch.setattr(_processor, "lacking", lambda: ["avx2", "fma"])
    with pytest.warns(RuntimeWarning, match="lacks avx2, fma, .* Illegal instruction"):
        _processor.warn.__wrapped__()


def test_a_processor_of_which_nothing_is_known_is_not_warned_of(tmp_path):
    (tmp_path / "arm").write_text("processor : 0\nFeatures : fp asimd\n")
    assert _processor.lacking(tmp_path / "arm") == _processor.lacking(tmp_path / "none") == []
