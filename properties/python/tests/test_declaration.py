# SPDX-License-Identifier: Apache-2.0
"""What the package says of the C header is what stands there."""
import dataclasses
import json
import re
import subprocess

import pytest
from conftest import ROOT

import assay
from assay import declaration, elements, spec, worker

PLUGIN_H = (ROOT / "kernels/abi/plugin.h").read_text()
ASSAY_H = (ROOT / "kernels/abi/assay.h").read_text()
CODE = re.sub(r"/\*.*?\*/", "", PLUGIN_H + ASSAY_H, flags=re.S)


def fields_of(struct):
    body = re.search(r"typedef struct %s \{(.*?)\}" % struct, CODE, re.S).group(1)
    found = []
    for line in re.findall(r"([^;]+);", body):
        kind, names = line.split(None, 1)
        found += [(kind, name.strip()) for name in names.split(",")]
    return found


def enumerators(prefix):
    found = re.findall(r"\b%s(\w+) = (\d+)" % prefix, CODE)
    assert found, prefix
    return {name.lower(): int(value) for name, value in found}


def test_fields_are_those_of_assay_arithmetic():
    words = {"assay_format": str, "assay_exponential": str, "assay_accumulator": str, "int32_t": int, "double": float}
    mirrored = [(field.type, field.name) for field in dataclasses.fields(assay.Declaration)]
    assert [(words[kind], name) for kind, name in fields_of("assay_arithmetic")] == mirrored


def test_defaults_are_zero():
    assert set(assay.Declaration().to_json().values()) == {0}


def test_words_are_the_enumerators():
    assert declaration.FORMATS == enumerators("ASSAY_FORMAT_")
    assert declaration.EXPONENTIALS == enumerators("ASSAY_EXP_")
    assert declaration.ACCUMULATORS == enumerators("ASSAY_ACCUMULATOR_")
    words = {promise["name"]: promise["words"] for promise in spec.PROMISES}
    assert words["determinism"] == list(enumerators("ASSAY_DETERMINISM_"))
    assert words["batch_invariance"] == list(enumerators("ASSAY_BATCH_"))
    families = enumerators("ASSAY_FAMILY_")
    assert spec.FAMILIES == {**families, "paged_v1": families["paged"], "paged_v2": families["paged"]}
    nan = enumerators("ASSAY_NAN_")
    assert words["nan_contract"] == ["none", *nan, "all"] and list(nan.values()) == [1, 2]


def test_promises_are_those_of_the_program(tmp_path):
    """promises.json is a copy: paste what this finds."""
    kernels = tmp_path / "kernels.json"
    subprocess.run([assay.find_program(), "list", "kernels", "--json", kernels], check=True, capture_output=True)
    assert json.loads(kernels.read_text())["promises"] == spec.PROMISES


def test_version_and_statuses_are_those_of_the_header():
    version = [int(re.search(r"define ASSAY_ABI_%s (\d+)" % word, ASSAY_H).group(1)) for word in ("MAJOR", "MINOR")]
    assert list(declaration.ABI) == version
    assert worker.OK == int(re.search(r"ASSAY_OK = (\d+)", CODE).group(1))
    assert worker.UNSUPPORTED == int(re.search(r"ASSAY_UNSUPPORTED = (\d+)", CODE).group(1))
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
