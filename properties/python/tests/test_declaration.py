# SPDX-License-Identifier: Apache-2.0
"""What the package says of the C header is what stands there."""
import dataclasses
import json
import re
import subprocess
from ctypes import c_double, c_int32

import pytest
from conftest import ROOT

import assay
from assay import _abi, declaration, elements, spec


def test_fields_are_those_of_assay_arithmetic():
    fields = dataclasses.fields(assay.Declaration)
    assert _abi.Arithmetic._fields_[:-1] == [(field.name, c_double if field.type is float else c_int32) for field in fields]
    assert {field.name for field in fields if field.type is str} == set(declaration.WORDS)


def test_defaults_are_zero():
    assert set(assay.Declaration().to_json().values()) == {0}


def test_words_are_the_enumerators():
    words = {promise["name"]: promise["words"] for promise in spec.PROMISES}
    assert words["determinism"] == list(_abi.DETERMINISM)
    assert words["batch_invariance"] == list(_abi.BATCH_INVARIANCE)
    assert words["nan_contract"] == ["none", *_abi.NAN_CONTRACT, "all"] and list(_abi.NAN_CONTRACT.values()) == [1, 2]


def test_promises_are_those_of_the_program(tmp_path):
    """promises.json is a copy: paste what this finds."""
    kernels = tmp_path / "kernels.json"
    subprocess.run([assay.find_program(), "list", "kernels", "--json", kernels], check=True, capture_output=True)
    assert json.loads(kernels.read_text())["promises"] == spec.PROMISES


def test_elements_are_those_of_calls():
    assert set(elements.STORED) - {"int32"} == {"fp16", "bf16", "fp32", "e4m3", "e5m2"}


@pytest.mark.parametrize("field", dataclasses.fields(assay.Declaration), ids=lambda f: f.name)
def test_every_field_is_held_to_its_type(field):
    with pytest.raises((TypeError, ValueError), match=field.name):
        assay.Declaration(**{field.name: "no such word"}).to_json()


@pytest.mark.parametrize("field", ["family", "determinism", "batch_invariance", "nan_contract"])
def test_words_of_a_kernel_are_known(field):
    good = {"family": "paged", "declaration": assay.Declaration(), "name": "k"}
    with pytest.raises(ValueError, match=f"{field} is 'odd', expected one of"):
        spec.Spec(**{**good, field: "odd"})


def test_page_explains_every_field():
    page = (ROOT / "properties/plugins/DECLARATION.md").read_text()
    for field in dataclasses.fields(assay.Declaration):
        assert re.search(rf"^\| `{field.name}` \|", page, re.M), field.name


def test_a_declaration_may_start_from_a_named_one():
    start = assay.Declaration.like("triton_flash")
    assert start.p_format == "call" and start.max_splits > 0
    assert dataclasses.replace(start, tile_tokens=64).tile_tokens == 64
    with pytest.raises(ValueError, match="like is 'fa9', expected one of assay, "):
        assay.Declaration.like("fa9")
