# SPDX-License-Identifier: Apache-2.0
"""Dumps of FlashInfer with anything in their files: nothing is raised, nothing hangs, what is not read is named."""
import os
import pathlib
import re

import numpy as np
import pytest
from assay._engines import dump_judge
from flashinfer_dump import Dump
from test_flashinfer_dump import DECODE, cascade, decode, decode_call, files_of, merges, outcomes
from test_judge import library  # noqa: F401  (a fixture)

WORDS = (b"-1", b"1e999", b"null", b"[]", b"{}", b"99999999999999999999", b'"x"', b"true", b"NaN", b"0", b"[" * 200)


def damaged(data, draw):
    """The bytes with some changed, cut off, taken out, or with a number or word of a text replaced."""
    data, way = bytearray(data), draw.integers(4)
    if way == 0:
        for _ in range(draw.integers(1, 5)):
            data[draw.integers(len(data))] = draw.integers(256)
    elif way == 1:
        del data[draw.integers(len(data)) :]
    elif way == 2:
        begin, end = sorted(draw.integers(len(data), size=2))
        del data[begin:end]
    else:
        words = list(re.finditer(rb'-?\d+(\.\d+)?|"[^"]*"|null|true|false', bytes(data[:20000])))
        if words:
            word = words[draw.integers(len(words))]
            data[word.start() : word.end()] = WORDS[draw.integers(len(WORDS))]
    return bytes(data)


@pytest.mark.parametrize("form", ["safetensors", "pt"])
def test_every_byte_of_a_dump_may_be_wrong(form):
    if form == "pt":
        pytest.importorskip("torch")
    dump, draw = Dump("dump", form), np.random.default_rng(1)
    decode(dump, decode_call())
    cascade(dump, levels=3)
    merges(dump)
    files = {path: path.read_bytes() for path in sorted(pathlib.Path("dump").rglob("*")) if path.is_file()}
    names, judged = list(files), 0
    for _ in range(150):
        path = names[draw.integers(len(names))]
        path.write_bytes(damaged(files[path], draw))
        for _, name, outcome, _ in dump_judge.judged("dump", max_rows=1):
            assert isinstance(name, str)
            judged += not isinstance(outcome, str)
        path.write_bytes(files[path])
    assert judged > 150


@pytest.mark.parametrize("name", ["metadata.jsonl", "inputs.safetensors", "outputs.safetensors"])
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_is_named(name, make):
    decode(Dump("dump"), decode_call())
    path = files_of("run") / name
    path.unlink()
    make(path)
    assert outcomes()[f"{DECODE}.run"] == [f"{name} is no file"]


def test_a_session_that_is_no_file_says_no_order():
    decode(Dump("dump"), decode_call())
    os.unlink("dump/session.jsonl")
    os.mkfifo("dump/session.jsonl")
    assert outcomes() == {f"{DECODE}.run": ["inside"]}
