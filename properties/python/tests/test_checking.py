# SPDX-License-Identifier: Apache-2.0
"""What assay.check and a worker say to the program and to their user, without either."""
import pytest
from assay import checking, declaration, loading, program, result, spec, worker, worker_errors


@pytest.mark.parametrize(
    "only, text",
    [
        ("dtype=bf16", "dtype=bf16"),
        ({"dtype": "bf16"}, "dtype=bf16"),
        ({"head_dim": [64, 128]}, "head_dim=64/128"),
        ({"head_dim": (64, 128), "window": 0}, "head_dim=64/128,window=0"),
    ],
)
def test_fields_of_only(only, text):
    assert checking._only_text(only) == text


def kernel(case):
    return None


def marked(case):
    return None


spec.kernel(family="paged", declaration=declaration.Declaration(), name="mine", determinism="run_to_run")(marked)


def test_what_is_given_stands_in_the_place_of_the_mark():
    assert checking._spec_of(marked, {"name": None, "cases": None}) is marked.__assay__
    changed = checking._spec_of(marked, {"name": "other", "determinism": None})
    assert (changed.name, changed.family, changed.determinism) == ("other", "paged", "run_to_run")
    made = checking._spec_of(kernel, {"family": "cascade", "declaration": declaration.Declaration(), "name": None})
    assert (made.name, made.family) == ("kernel", "cascade")
    for fields, missing in (({"family": "paged"}, "declaration"), ({"declaration": declaration.Declaration()}, "family"), ({}, "family")):
        with pytest.raises(TypeError, match=f"{missing} is missing"):
            checking._spec_of(kernel, fields)


def test_a_hello_has_the_numbers_of_the_header():
    row = marked.__assay__.to_json()
    assert row.pop("arithmetic") == declaration.Declaration().to_json()
    assert row == {"name": "mine", "family": 0, **dict.fromkeys((p["name"] for p in spec.PROMISES), 0), "determinism": 1}
    numbers = {family: spec.Spec(family, declaration.Declaration(), "k").to_json()["family"] for family in spec.FAMILIES}
    assert numbers == {"paged": 0, "paged_v1": 0, "paged_v2": 0, "cascade": 1, "merge_state": 2, "merge_states": 3}


@pytest.mark.parametrize("fields, words", [
    (dict(family="tree"), "family is 'tree'"), (dict(determinism="yes"), "determinism is 'yes'"), (dict(nan_contract=""), "nan_contract is ''"),
    (dict(batch_invariance="no"), "batch_invariance is 'no'"), (dict(ragged_queries=1), "ragged_queries is 1"),
    (dict(family="cascade", ragged_queries=True), "ragged_queries is True"), (dict(declaration=3), "declaration is 3"), (dict(supports=3), "supports is 3"),
])  # fmt: skip
def test_a_wrong_field_is_named(fields, words):
    with pytest.raises((ValueError, TypeError), match=words):
        spec.Spec(**{"family": "paged", "declaration": declaration.Declaration(), "name": "k", **fields})


def test_text_of_a_report_is_one_line_of_printable_characters():
    assert worker.plain("a\nb\tc\x07d\u00e9~") == "a b c?d?~"
    assert worker.plain("x" * worker.MOST_TEXT) == "x" * worker.MOST_TEXT
    assert worker.plain("x" * (worker.MOST_TEXT + 1)) == "x" * worker.MOST_TEXT + "..."


def raising(case):
    raise KeyError("lost")


def test_an_exception_is_told_with_its_innermost_frame_first():
    def outer():
        raising(None)

    with pytest.raises(KeyError) as raised:
        outer()
    said = worker.raised_text(raised.value)
    assert said.startswith("KeyError: 'lost'; at test_checking.py:") and said.index("in raising") < said.index("in outer")


def served(function, supports=None):
    kernel = object.__new__(worker.Served)
    kernel.function, kernel.spec = function, spec.Spec("paged", declaration.Declaration(), "k", supports=supports)
    return kernel


def refusing(case):
    raise worker_errors.Unsupported("too wide")


def test_a_worker_asks_and_runs():
    ran = []
    runs = lambda case: ran.append(case)  # noqa: E731
    assert served(runs).call("a", False) == (worker.OK, "") and ran == ["a"]
    assert served(runs).call("b", True) == (worker.OK, "") and ran == ["a", "b"]  # without supports() the kernel itself is asked
    for answer in (True, None):
        assert served(runs, lambda case, answer=answer: answer).call("c", True) == (worker.OK, "") and ran == ["a", "b"]
        assert served(runs, lambda case, answer=answer: answer).call("c", False)[0] == worker.OK and ran.pop() == "c"
    for answer, words in ((False, "supports() returned False"), ("no windows", "no windows")):
        assert served(runs, lambda case, answer=answer: answer).call("d", False) == (worker.UNSUPPORTED, words) and ran == ["a", "b"]
    assert served(refusing).call("e", False) == (worker.UNSUPPORTED, "too wide")
    assert served(runs, refusing).call("e", True) == (worker.UNSUPPORTED, "too wide")
    with pytest.raises(TypeError, match="the kernel returned a int: results go into"):
        served(lambda case: 3).call("f", False)


@pytest.mark.parametrize("target, words", [
    ("nothing", "is not MODULE:FUNCTION"), (":f", "is not MODULE:FUNCTION"), ("m:", "is not MODULE:FUNCTION"), ("no_such_module:f", "no module 'no_such_module'"),
    ("none.py:f", "none.py: no such file"), ("json:nothing", "json has no nothing"), ("json:decoder", "is no function"), ("json:decoder.nothing", "json has no decoder.nothing"),
])  # fmt: skip
def test_a_target_that_is_none_is_named(target, words):
    with pytest.raises((ValueError, ImportError, FileNotFoundError), match=words):
        loading.load(target)


def test_a_target_is_found_by_a_dotted_name():
    import json

    assert loading.load("json:decoder.JSONDecoder") is json.decoder.JSONDecoder


def test_lines_of_a_detail_that_are_left_out_are_counted():
    assert result._first_lines("a\nb\nc\n", 3) == ["a", "b", "c"]
    assert result._first_lines("a\nb\nc\nd", 2) == ["a", "b", "(2 lines more in detail)"]


def test_a_program_is_found_in_its_order(tmp_path, monkeypatch):
    made = tmp_path / "assay"
    made.write_text("#!/bin/sh\n")
    monkeypatch.delenv("ASSAY_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(program.ProgramError, match="was not found"):
        program.find_program()
    monkeypatch.setenv("ASSAY_PROGRAM", str(made))
    with pytest.raises(program.ProgramError, match="is no program"):
        program.find_program()
    made.chmod(0o755)
    assert program.find_program() == str(made)
    monkeypatch.delenv("ASSAY_PROGRAM")
    assert program.find_program() == str(made)
