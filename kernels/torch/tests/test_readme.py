# SPDX-License-Identifier: Apache-2.0
"""The lines of Python in the READMEs run as they stand, one block behind the other."""
import pathlib
import re

import pytest

torch = pytest.importorskip("torch", minversion="2.4")

ROOT = pathlib.Path(__file__).resolve().parents[3]


def blocks(path):
    return [text for text in re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), re.S)]


def test_the_lines_run(capsys):
    first = [text for text in blocks("README.md") if "import torch, assay_torch" in text]
    assert len(first) == 1 and len(first[0].splitlines()) <= 12
    names = {}
    exec(compile(first[0], "README.md", "exec"), names)
    assert "torch.Size([4, 32, 128])" in capsys.readouterr().out
    assert names["lse"][2].eq(-torch.inf).all() and names["out"][1].isfinite().all()
    further = blocks("kernels/torch/README.md")
    assert len(further) >= 1
    for text in further:
        exec(compile(text, "kernels/torch/README.md", "exec"), names)
    torch.testing.assert_close(names["planned"], names["out"])
    torch.testing.assert_close(names["of_tree"], names["out"], atol=2**-7, rtol=2**-7)
