# SPDX-License-Identifier: Apache-2.0
"""Words of the judge of functions: shapes, the fields of an object, verdicts in JSON and in words, the command."""
import argparse
import json
import math
import pathlib
import sys

import pytest
from assay._callable import command, process, task, verdict
from assay._callable.shape import Shape
from hypothesis import given
from hypothesis import strategies as st

INF = math.inf


# Shapes


@given(st.integers(1, 99), st.integers(1, 9), st.integers(1, 9), st.integers(1, 512), st.integers(1, 999), st.integers(0, 99), st.sampled_from(["bf16", "fp16"]))
def test_a_shape_is_its_text(batch, group, heads, dim, keys, page, dtype):
    shape = Shape(batch, group * heads, heads, dim, keys, page, 1, dtype)
    assert Shape.parse(str(shape)) == shape == Shape.parse(f" batch={batch}, heads={group * heads}/{heads},head_dim={dim},keys={keys},,page_size={page},dtype={dtype}".replace(",,", ","))
    slots = keys if page == 0 else math.ceil(keys / page) * page
    assert shape.columns == (0 if page == 0 else slots // page)
    assert shape.nbytes == 2 * (2 * batch * slots * heads * dim + 2 * batch * group * heads * dim)


def test_what_a_shape_may_be():
    assert Shape.parse("") == Shape(8, 32, 8, 128, 1024, 16, 1, "bf16") and Shape.parse("heads=4") == Shape.parse("heads=4/4")
    for name, most in (("batch", 65536), ("head_dim", 512), ("q_len", 4096), ("page_size", 65536)):
        small = dict(batch=1, num_qo_heads=1, num_kv_heads=1, head_dim=1, keys=4096)
        assert getattr(Shape(**{**small, name: most}), name) == most
        for value in (most + 1, -1, True, 1.0, "1"):
            with pytest.raises(ValueError, match=f"^assay: shape: {name} is {value!r}, expected {int(name != 'page_size')} to {most}$"):
                Shape(**{**small, name: value})
    for text, words in (("heads=6/4", "heads is 6/4, expected a multiple of the second number"), ("q_len=9,keys=8", "q_len is 9, expected at most keys, 8"),
                        ("batch", "'batch', expected heads=Q/KV or one of batch, num_qo_heads, num_kv_heads, head_dim, keys, page_size, q_len, dtype with =VALUE"),
                        ("heads=a/1", "'heads=a/1', expected a whole number"), ("dtype=int8", "dtype is 'int8', expected one of bf16, fp16"),
                        ("batch=65536,keys=4096", "its tensors have 1025 GiB, expected at most 16")):  # fmt: skip
        with pytest.raises(ValueError) as error:
            Shape.parse(text)
        assert str(error.value) == f"assay: shape: {words}"
    with pytest.raises(TypeError, match="^assay: shape is a int, expected a text or a Shape$"):
        Shape.parse(3)


# Fields


def refused(call, *given):
    with pytest.raises(task.FieldError) as error:
        call(*given)
    begin = f"assay: {error.value.field}: " if error.value.field else "assay: "
    assert str(error.value).startswith(begin)
    return error.value.field, str(error.value)[len(begin) :]


@pytest.mark.parametrize("text, words", [
    (b'{"a": 1, "b": 2, "a": 3}', "'a' is there twice"), (b'{"a": {"b": 1, "b": 2}}', "'b' is there twice"), (b"[1]", "a JSON list, expected an object"), (b"3", "a JSON int, expected an object"),
    (b'{"a": NaN}', "no JSON: ValueError: NaN is no number of JSON"), (b"\xff", "no JSON: UnicodeDecodeError: "), (b"{", "no JSON: JSONDecodeError: "),
    (b" " * ((1 << 20) + 1), "the object has more than 1048576 bytes"), (b"[" * 99999, "no JSON: RecursionError"),
], ids=range(9))  # fmt: skip
def test_what_is_no_object_is_refused(text, words):
    field, said = refused(task.parsed, text)
    assert field == "" and (said == words or words.startswith("no JSON") and said.startswith(words)) and len(said) < 300
    assert task.parsed(b'{"a": [1.5, null], "\xc3\xa9": "x"}' + b" " * 100) == {"a": [1.5, None], "\u00e9": "x"}


TARGET = {"target": "f.py:name"}


@pytest.mark.parametrize("given, field, words", [
    ({}, "target", "missing"), ({"target": 3}, "target", "3, expected a text"), ({"target": "name"}, "target", "'name', expected FILE.py:NAME or MODULE:NAME"),
    ({"target": ":name"}, "target", "':name', expected FILE"), ({"target": "f.py:"}, "target", "'f.py:', expected FILE"), ({"target": "-f.py:name"}, "target", "'-f.py:name', expected FILE"),
    ({"target": "f\x00:name"}, "target", "'f\\x00:name' has characters that cannot be printed"), ({"target": "f:" + "n" * 4095}, "target", "4097 characters, expected at most 4096"),
    ({"target": "x" * 100}, "target", "'" + "x" * 79 + "..., expected FILE"), ({**TARGET, "adapter": "a"}, "adapter", "'a', expected FILE"), ({**TARGET, "seeds": 1}, "seeds", "no field, expected target, shape, adapter"),
    ({**TARGET, "a\nb": 1}, "?", "no field"), ({**TARGET, "x" * 50: 1}, "x" * 40, "no field"), ({**TARGET, "shape": "keys=a"}, "shape", "'keys=a', expected a whole number"),
    ({**TARGET, "shape": "x" * 1001}, "shape", "1001 characters, expected at most 1000"), ({**TARGET, "like": "fa9"}, "like", "'fa9', expected one of "), ({**TARGET, "device": None}, "device", "None, expected one of auto, cpu, cuda, numpy"),
    ({**TARGET, "lse_base": 2.0}, "lse_base", "2.0, expected one of e, 2"), ({**TARGET, "lse_base": True}, "lse_base", "True, expected one of e, 2"),
    ({**TARGET, "explain": 1}, "explain", "1, expected one of True, False"), ({**TARGET, "keep_going": "yes"}, "keep_going", "'yes', expected one of True, False"),
    ({**TARGET, "deterministic": None}, "deterministic", "None, expected one of True, False"), ({**TARGET, "assume": "empty"}, "assume", "'empty', expected a list"),
    ({**TARGET, "assume": ["no_pages"]}, "assume", "'no_pages', expected one of no_empty_requests, "), ({**TARGET, "assume": ["one_shape"] * 11}, "assume", "11 words, expected at most 10"),
    *(({**TARGET, "seed": seed}, "seed", f"{seed!r}, expected a whole number from 0 to {(1 << 63) - 1}") for seed in (-1, 1 << 63, True, 1.0, "1")),
    ({**TARGET, "id": True}, "id", "True, expected a text or a whole number"), ({**TARGET, "id": None}, "id", "None, expected a text or a whole number"),
    ({**TARGET, "id": 1 << 63}, "id", f"{1 << 63}, expected a whole number below {1 << 63}"), ({**TARGET, "id": "x" * 257}, "id", "257 characters, expected at most 256"),
])  # fmt: skip
def test_a_field_that_does_not_fit_is_named(given, field, words):
    at, said = refused(task.arguments, given)
    begun = words.endswith(("expected FILE", "no field", "shape, adapter", "expected one of ", ", "))
    assert at == field and (said.startswith(words) if begun else said == words), said


def test_fields_that_fit_and_defaults():
    everything = {**TARGET, "shape": "keys=64", "adapter": None, "like": "fa2", "assume": ["one_shape"] * 10, "seed": 0, "deterministic": True, "device": "numpy", "keep_going": False,
                  "explain": True, "lse_base": 2}  # fmt: skip
    assert task.arguments({**everything, "id": "a"}) == {**everything, "shape": str(Shape.parse("keys=64"))}
    assert task.arguments({**TARGET, "seed": None}, {"seed": 5, "like": "fa2"}) == {**TARGET, "seed": None, "like": "fa2"}
    assert task.arguments({"target": "a:b.py:n", "adapter": "m:f", "seed": (1 << 63) - 1}) == {"target": "a:b.py:n", "adapter": "m:f", "seed": (1 << 63) - 1}
    assert [task.identity(given) for given in ({}, {"id": 0}, {"id": "x" * 256}, {"id": 1 - (1 << 63)})] == [None, 0, "x" * 256, 1 - (1 << 63)]
    assert [task.whole(2, 4)(text) for text in ("2", "4")] == [2, 4] and [task.positive(text) for text in ("0.5", "1e3")] == [0.5, 1000]
    for text in ("1", "5"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"^{text}, expected 2 to 4$"):
            task.whole(2, 4)(text)
    for text in ("0", "-1", "nan", "inf", "x"):
        with pytest.raises(ValueError):
            task.positive(text)


# Verdicts


def stage(name="s", said="pass", **more):
    return verdict.StageResult(name, "words", said, **more)


def made(said="pass", stages=(), fit="fp32", rungs=0, **more):
    plain = dict(verdict=said, target="f.py:f", shape="batch=1", like="fa2", seed=3, stages=list(stages), arithmetic=fit, arithmetic_says="all in fp32", rungs=rungs,
                 about={"device": "cpu", "isolation": "process", "tensors": "NumPyTensors", "ready": True}, seconds=1.23456)  # fmt: skip
    return verdict.Verdict(**{**plain, **more})


def test_the_worst_verdict_and_what_follows_from_it():
    order = ["pass", "contract", "undecided", "arithmetic", "finding"]
    for at, said in enumerate(order):
        assert all(verdict.worst([said, other]) == order[max(at, below)] for below, other in enumerate(order))
        assert made(said).exit_code == {"pass": 0, "undecided": 4}.get(said, 1) and bool(made(said)) == made(said).passed == (said == "pass")
        assert made(said, rungs=3).score == (pytest.approx(0.94) if said in ("pass", "contract") else 0) and made(said, rungs=60).score == 0
    assert verdict.worst([]) == "undecided"


def test_a_verdict_in_json_and_in_words():
    stages = [stage(ratio=0.25, seconds=0.5), stage("t", "finding", cause="why", ratio=INF), stage("u", "contract")]
    said = made("finding", stages).to_json()
    assert said == {"verdict": "finding", "target": "f.py:f", "shape": "batch=1", "like": "fa2", "seed": 3, "score": 0, "arithmetic": "fp32", "arithmetic_says": "all in fp32",
                    "tensors": "NumPyTensors", "device": "cpu", "isolation": "process", "seconds": 1.235, "stages": [one.to_json() for one in stages]}  # fmt: skip
    assert said["stages"][:2] == [{"stage": "s", "says": "words", "verdict": "pass", "ratio": 0.25, "cause": "", "seconds": 0.5},
                                  {"stage": "t", "says": "words", "verdict": "finding", "ratio": sys.float_info.max, "cause": "why", "seconds": 0.0}]  # fmt: skip
    assert said["stages"][2]["ratio"] is None and json.loads(json.dumps(said, allow_nan=False)) == said and made(rungs=7).to_json()["score"] == 0.86
    assert str(made("finding", stages)).splitlines() == [
        "finding: f.py:f, batch=1", "  t: finding inf of what is allowed: why", "  u: contract", "  its outputs fit fp32: all in fp32",
        "  1 of 3 stages pass, like fa2, seed 3, cpu, isolation: process, 1.2 s",
    ]  # fmt: skip
    assert str(made("finding", fit="", about={})).splitlines()[1:] == ["  0 of 0 stages pass, like fa2, seed 3, no device, isolation: none, 1.2 s"]
    assert str(stage(ratio=0.5)) == "s: pass 0.5 of what is allowed"


# The command


def test_the_words_of_the_command(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(command, "judge_callable", lambda *given, **more: asked.append((given, more)) or made("contract", [stage("u", "contract")]))
    words = ["f.py:f", "--shape", "keys=9", "--adapter", "a:b", "--like", "fa2", "--assume", "one_shape,,finite_pool", "--deterministic", "--device", "numpy", "--lse-base", "2", "--seed", "4", "--keep-going", "--capturable",
             "--explain", "--load-seconds", "5", "--call-seconds", "6", "--gigabytes", "0.5"]  # fmt: skip
    assert command.main(words) == 1 and capsys.readouterr().out.startswith("contract: f.py:f, batch=1\n")
    ((given, more),) = asked
    assert given == ("f.py:f", "keys=9") and more.pop("each") is None and more.pop("limits") == process.Limits(5, 6, 0.5)
    assert more == dict(adapter="a:b", like="fa2", assume=("one_shape", "finite_pool"), deterministic=True, device="numpy", lse_base=2, seed=4, capturable=True, keep_going=True, explain=True)
    assert command.main(["f.py:f", "--json", "-"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["stages"] == 1 and said.err.startswith("contract: ")
    given, more = asked[1]
    assert given == ("f.py:f", "") and more.pop("limits") == process.Limits() and (more.pop("each")(stage()), json.loads(capsys.readouterr().out)["stage"]) == (None, "s")
    assert more == dict(adapter=None, like=command.arithmetic.WIDEST, assume=(), deterministic=False, device="auto", lse_base="e", seed=None, capturable=False, keep_going=False, explain=False)
    assert command.main(["f.py:f", "--json", "v.json"]) == 1 and json.loads(pathlib.Path("v.json").read_text())["stages"][0]["stage"] == "u"
    monkeypatch.setattr(command, "judge_callable", lambda *given, **more: (_ for _ in ()).throw(ValueError("assay: shape: no")))
    capsys.readouterr()
    assert command.main(["f.py:f"]) == 2 and capsys.readouterr() == ("", "assay judge-callable: shape: no\n")
    for wrong, words in (([], "one of a target and --batch is needed"), (["f:f", "--batch", "b"], "one of a target and --batch is needed"), (["f:f", "--jobs", "2"], "--jobs and --html are for --batch"),
                         (["f:f", "--html", "h"], "--jobs and --html are for --batch"), (["--batch", "b", "--jobs", "0"], "0, expected 1 to 256"), (["f:f", "--gigabytes", "0"], "invalid positive value")):  # fmt: skip
        with pytest.raises(SystemExit) as ended:
            command.main(wrong)
        assert ended.value.code == 2 and words in capsys.readouterr().err, wrong


def test_the_words_of_a_batch(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(command.batch, "run", lambda *given: asked.append(given) or 7)
    assert command.main(["--batch", "b", "--json", "r", "--html", "h", "--jobs", "3", "--shape", "keys=9", "--seed", "2", "--assume", "one_shape", "--gigabytes", "2"]) == 7
    defaults = dict(shape="keys=9", adapter=None, like=command.arithmetic.WIDEST, assume=["one_shape"], seed=2, deterministic=False, device="auto", capturable=False, keep_going=False, explain=False, lse_base="e")
    assert asked == [("b", "r", "h", 3, process.Limits(gigabytes=2), defaults)]
    assert command.main(["--batch", "b"]) == 7 and asked[1][:4] == ("b", None, None, 1)
    for error, code, words in ((OSError(2, "gone", "b"), 2, "assay judge-callable: [Errno 2] gone: 'b'\n"), (KeyboardInterrupt(), 130, "assay judge-callable: interrupted; with the same --json FILE the next run goes on\n")):
        monkeypatch.setattr(command.batch, "run", lambda *given: (_ for _ in ()).throw(error))  # noqa: B023
        assert (command.main(["--batch", "b"]), capsys.readouterr()) == (code, ("", words))
