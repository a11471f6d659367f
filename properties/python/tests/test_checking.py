# SPDX-License-Identifier: Apache-2.0
"""What assay.check and a worker say to the program and to their user, without either."""
import dataclasses
import json
import os
import pathlib
import shlex
import subprocess
import sys
import types

import pytest
from assay import checking, declaration, loading, program, result, spec, worker, worker_errors
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(
    "only, text",
    [
        ("dtype=bf16", "dtype=bf16"),
        ({"dtype": "bf16"}, "dtype=bf16"),
        ({"head_dim": [64, 128]}, "head_dim=64/128"),
        ({"head_dim": (64, 128), "window_left": -1}, "head_dim=64/128,window_left=-1"),
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
    no = lambda case: False  # noqa: E731
    everything = dict(family=["paged_v1", "paged"], name=["a", "b"], cases=[3, 4], budget=["1s", "2s"], supports=[no, len],
                      declaration=[declaration.Declaration(), declaration.Declaration(max_splits=2)],
                      **{p["name"]: [False, True] if p["words"] == ["false", "true"] else p["words"] for p in spec.PROMISES})  # fmt: skip
    assert set(everything) == {field.name for field in dataclasses.fields(spec.Spec)}
    whole = {name: words[-1] for name, words in everything.items()}
    for name, words in everything.items():
        for word in words:
            function = types.SimpleNamespace(__assay__=spec.Spec(**whole))
            assert checking._spec_of(function, {**dict.fromkeys(whole), name: word}) == spec.Spec(**{**whole, name: word})
            assert checking._spec_of(kernel, {**whole, name: word}) == spec.Spec(**{**whole, name: word})
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
    *((dict(family=family, **{name: True}), f"{name} is True, expected True of a paged kernel only")
      for family in ("cascade", "merge_state", "merge_states") for name in ("ragged_queries", "shards")), (dict(declaration=3), "declaration is 3"), (dict(supports=3), "supports is 3"),
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
    def outer(depth):
        raising(None) if depth == 0 else outer(depth - 1)

    for depth in (0, 5):
        with pytest.raises(KeyError) as raised:
            outer(depth)
        said = worker.raised_text(raised.value)
        assert said.startswith("KeyError: 'lost'; at test_checking.py:") and said.index("in raising") < said.index("in outer")
        assert said.count("; at ") == 3


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


def test_a_program_in_the_wheel_comes_before_the_path(tmp_path, monkeypatch):
    monkeypatch.delenv("ASSAY_PROGRAM", raising=False)
    monkeypatch.setattr(program, "__file__", str(tmp_path / "program.py"))
    monkeypatch.setenv("PATH", str(tmp_path))
    for folder in (tmp_path, tmp_path / "bin"):
        folder.mkdir(exist_ok=True)
        (folder / "assay").write_text("#!/bin/sh\n")
        (folder / "assay").chmod(0o755)
        assert program.find_program() == str(folder / "assay")


ECHO = """#!{python}
import json, os, sys
print(json.dumps(dict(arguments=sys.argv[1:], path=os.environ["PYTHONPATH"], properties=[{{"name": sys.argv[0]}}])))
print("said", file=sys.stderr)
sys.exit({code})
"""


def stub(path, code=0):
    path.write_text(ECHO.format(python=sys.executable, code=code))
    path.chmod(0o755)
    return str(path)


def test_a_program_runs_with_the_search_path_of_this_process(tmp_path, monkeypatch):
    echo = stub(tmp_path / "echo", 3)
    monkeypatch.setattr(sys, "path", ["", "relative", "/absolute"])
    monkeypatch.setenv("ASSAY_PROGRAM", echo)
    for given in ((), (echo,)):
        ran = program.run_program(["a", "b c"], *given)
        told = json.loads(ran.stdout)
        assert (ran.returncode, ran.stderr, told["arguments"]) == (3, "said\n", ["a", "b c"])
        assert told["path"] == os.pathsep.join([str(tmp_path), str(tmp_path / "relative"), "/absolute"])
    with pytest.raises(program.ProgramError, match="assay: /nowhere/assay: No such file or directory") as raised:
        program.run_program([], "/nowhere/assay")
    assert raised.value.exit_code is None


def test_properties_are_those_of_the_program_and_asked_for_once(tmp_path, monkeypatch):
    first, second, broken = stub(tmp_path / "first"), stub(tmp_path / "second"), stub(tmp_path / "broken", 2)
    monkeypatch.setenv("ASSAY_PROGRAM", second)
    for _ in range(2):
        assert program.list_properties(first) == [{"name": first}] and program.list_properties() == [{"name": second}]
        (tmp_path / "first").write_text("no program any more")
    with pytest.raises(program.ProgramError, match="^said$") as raised:
        program.list_properties(broken)
    assert raised.value.exit_code == 2
    (tmp_path / "broken").write_text("#!/bin/sh\nexit 4\n")
    with pytest.raises(program.ProgramError, match="broken lists no properties") as raised:
        program.list_properties(broken)
    assert raised.value.exit_code == 4


def checked(monkeypatch, ended=(0, "out", "err"), report={"complete": True, "groups": [], "replayed": {"results": []}}, **options):
    """(what assay.check says, the arguments that the program is given, the program) of a program that writes such a report."""
    seen = []

    def run(arguments, given):
        seen.append((arguments, given))
        if report is not None:
            pathlib.Path(arguments[arguments.index("--json") + 1]).write_text(json.dumps(report))
        return subprocess.CompletedProcess(arguments, *ended)

    monkeypatch.setattr(checking, "run_program", run)
    said = checking.check(marked, **options)
    ((arguments, given),) = seen
    return said, arguments[: arguments.index("--json")], given


OPTIONS = ("cases", "budget", "property", "threads", "out", "patience")


@given(st.fixed_dictionaries({}, optional={name: st.sampled_from([0, 1, "", "60s", "x y"]) for name in (*OPTIONS, "seed")}))
@settings(derandomize=True, database=None, deadline=None, max_examples=60)
def test_every_option_is_handed_to_the_program(options):
    """In any combination; what is not given is not said, but for the seed."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        said, arguments, given = checked(monkeypatch, (0, "out", ""), program="there", only={"dtype": "bf16"}, **options)
    assert arguments[:3] == ["check", "--worker", checking.worker_command(marked, marked.__assay__)] and given == "there"
    told = dict(zip(arguments[3::2], arguments[4::2]))
    assert told == {"--seed": "1", "--only": "dtype=bf16", **{f"--{name}": str(value) for name, value in options.items()}}
    assert said.passed and (said.exit_code, said.text, said.cases if "cases" in said.report else 0) == (0, "out", 0)


def test_a_program_without_a_verdict_is_an_error(monkeypatch):
    for report, ended, words in ((None, (4, "", " not loaded\n"), "^not loaded$"), ({"complete": False}, (2, " refused \n", ""), "^refused$"), ({}, (3, "a", "b"), "^b$")):
        with pytest.raises(program.ProgramError, match=words) as raised:
            checked(monkeypatch, ended, report)
        assert raised.value.exit_code == ended[0]
    assert "--only" not in checked(monkeypatch, only={})[1] and "--only" not in checked(monkeypatch)[1]
    monkeypatch.setattr(worker_errors, "loading", True)
    with pytest.raises(worker_errors.LoadedSoFar):
        checking.check(marked)


def test_fields_given_to_a_check_reach_its_worker(monkeypatch):
    _, arguments, _ = checked(monkeypatch, name="other", supports=small, nan_contract="all", ragged_queries=True)
    command = shlex.split(arguments[2])
    assert command[:4] == [sys.executable, "-m", "assay.worker", f"{__name__}:marked"] and command[4] == "--describe"
    told = json.loads(command[5])
    assert told == {
        "family": "paged", "name": "other", "determinism": "run_to_run", "batch_invariance": "none", "nan_contract": "all",
        "checks_arguments": False, "ragged_queries": True, "shards": False, "page_lists": False,
        "supports": f"{__name__}:small", "declaration": dataclasses.asdict(declaration.Declaration()),
    }  # fmt: skip


def small(case):
    return True


def test_where_another_process_finds_a_function(monkeypatch, tmp_path):
    assert spec.target_of(small) == f"{__name__}:small" and spec.target_of(json.decoder.JSONDecoder.decode) == "json.decoder:JSONDecoder.decode"
    here = {"__name__": "nowhere_to_be_found"}
    exec(compile("def f(case): pass", str(tmp_path / "k.py"), "exec"), here)
    with pytest.raises(ValueError, match=r"the kernel \(f\) stands in no file"):
        spec.target_of(here["f"])
    (tmp_path / "k.py").touch()
    assert spec.target_of(here["f"]) == f"{tmp_path}/k.py:f"
    script = {"__name__": "__main__"}
    exec(compile("def f(case): pass", "k.py", "exec"), script)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / "k.py"), raising=False)
    assert spec.target_of(script["f"]) == f"{tmp_path}/k.py:f"
    for function, what in ((lambda case: None, "supports"), (object(), "the kernel")):
        with pytest.raises(ValueError, match=f"{what} .* cannot be found by another process"):
            spec.target_of(function, what)
    assert spec.worker_arguments(marked, marked.__assay__) == [f"{__name__}:marked"]
    for given in (lambdas.__assay__, dataclasses.replace(lambdas.__assay__, name="other")):
        with pytest.raises(ValueError, match="supports .* cannot be found"):
            spec.worker_arguments(lambdas, given)


@spec.kernel(family="paged", declaration=declaration.Declaration(), supports=lambda case: True, budget="10s")
def lambdas(case):
    return "ran"


def test_a_marked_function_stays_as_it_was():
    made = lambdas.__assay__
    assert lambdas(None) == "ran" and (made.name, made.budget, made.cases, made.determinism, made.ragged_queries) == ("lambdas", "10s", None, "none", False)


def test_a_file_is_loaded_up_to_its_first_check(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    pathlib.Path("beside.py").write_text("VALUE = 3\n")
    text = "import assay, beside\nruns = []\ndef f(case): return beside.VALUE\nruns.append(1)\nassay.check(f)\ndef g(case): pass\n"
    pathlib.Path("mine.py").write_text(text)
    made = loading.load("mine.py:f")
    assert made(None) == 3 and loading.load("mine.py:f") is made and not worker_errors.loading and made.__globals__["runs"] == [1]
    with pytest.raises(ValueError, match="mine.py has no g, or not before its first assay.check"):
        loading.load("mine.py:g")
    # A dataclass looks for its module by its name.
    pathlib.Path("held.py").write_text("from __future__ import annotations\nimport dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int = 3\ndef f(case): return A().x\n")
    assert loading.load("held.py:f")(None) == 3
    pathlib.Path("raises.py").write_text("1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        loading.load("raises.py:f")
    assert not worker_errors.loading
    for name in ("mine.py", "raises.py", "held.py", "beside"):
        sys.modules.pop(name, None)
