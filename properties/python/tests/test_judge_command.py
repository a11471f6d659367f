# SPDX-License-Identifier: Apache-2.0
"""`assay judge` and `assay` in this process: what is printed, and the exit code, of files and folders in any number and order."""
import itertools
import os
import pathlib
import shlex
import sys

import assay
import numpy as np
import pytest
from assay import __main__, judge_command, judging
from assay._judge import record as judge_record
from assay._judge.excerpt import excerpt
from assay._judge.library import LibraryError
from flashinfer_dump import Dump
from test_flashinfer_dump import DECODE, decode, decode_call, rolled
from test_judge import Call, library  # noqa: F401  (a fixture)

ROW, PLACE = 4, {"row": 4, "request": 3, "query": 1}


def kept(spoil=lambda out: out):
    """The file of a row of a call whose outputs may be spoilt."""
    call = Call()
    out, lse = call.run()
    told = dict(page_table=call.table, seq_lens=call.lens, qo_indptr=call.cu, lse=lse, like="fa2")
    return str(judge_record.write(excerpt(judging.attention_call(spoil(out), call.q, (call.k, call.v), **told), ROW), PLACE, "kept"))


def dumped(name, *spoils):
    """A folder of one decode call for each of them, and of one call that is not judged."""
    dump = Dump(name)
    for spoil in spoils:
        call = decode_call()
        decode(dump, call, (spoil(call.run()[0]), call.run()[1]))
    dump.call("rmsnorm", None, (np.zeros(3, np.float32),))
    return name


def test_a_file_is_judged_and_said_in_its_words(capsys):
    right, wrong = kept(), kept(rolled)
    assert judge_command.main([right]) == 0
    assert capsys.readouterr() == (f"{right}: {judge_record.judge(right)}\n", "")
    report = judge_record.judge(wrong)
    assert judge_command.main([wrong, "--hint-seconds", "0"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert "\n".join(said).startswith(f"{wrong}: {report}\n  where: every head") and "row 4 (request 3 query 1)" in said[0]
    assert not [line for line in said if "would be inside" in line]


@pytest.mark.parametrize("path, words", [("none.npz", "No such file"), ("text.npz", "it is no .npz file")])
def test_what_is_no_file_of_a_call_is_named(capsys, path, words):
    pathlib.Path("text.npz").write_text("text")
    assert judge_command.main([path]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"assay judge: {path}: ") and words in err


def test_a_dump_is_judged_call_by_call(capsys):
    same = lambda out: out  # noqa: E731
    assert judge_command.main([dumped("right", same)]) == 0
    first, second, last = capsys.readouterr().out.splitlines()
    assert f": {DECODE}.run: inside, worst |error| / allowed " in first and " of O, " in first and first.endswith("like flashinfer_fa2")
    assert (second, last) == ("not judged (1): rmsnorm: rmsnorm is not known", "right: 1 calls judged, 0 findings, 1 calls not judged")
    assert judge_command.main([dumped("some", same, rolled, same), "--like", "flash", "--max-rows", "1", "--findings", "o'er there"]) == 1
    said = capsys.readouterr().out
    assert "some: 3 calls judged, 1 findings, 1 calls not judged" in said and said.count("inside, worst") == 2 and "like flash\n" in said
    assert "1 of 4 rows, like flash," in said
    (file,) = pathlib.Path("o'er there").iterdir()
    assert f"reproduce: python3 -m assay judge {shlex.quote(str(file))}\n" in said and not os.path.exists("findings")
    assert judge_command.main([dumped("wrong", rolled)]) == 1 and len(os.listdir("findings")) == 1
    assert "4 of 4 rows" in capsys.readouterr().out


def test_a_dump_without_a_call_to_judge_proves_nothing(capsys):
    assert judge_command.main([dumped("none")]) == 4
    out, err = capsys.readouterr()
    assert out.endswith("none: 0 calls judged, 0 findings, 1 calls not judged\n") and err == "assay judge: none: no call was judged\n"


@pytest.mark.parametrize("codes", itertools.permutations([0, 1, 2, 4], 2))
def test_of_several_paths_the_worst_counts(monkeypatch, codes):
    """Folders and files, and each is looked at."""
    seen = []
    for name in ("_dump", "_file"):
        monkeypatch.setattr(judge_command, name, lambda path, _, name=name: seen.append((name, path)) or int(path[-1]))
    os.mkdir(f"folder{codes[0]}")
    assert judge_command.main([f"folder{codes[0]}", f"file{codes[1]}"]) == max(codes)
    assert seen == [("_dump", f"folder{codes[0]}"), ("_file", f"file{codes[1]}")]


def test_judge_runs_here_and_the_rest_by_the_program(monkeypatch, capsys):
    def ended(*words):
        monkeypatch.setattr(sys, "argv", ["assay", *words])
        with pytest.raises(SystemExit) as raised:
            __main__.main()
        return raised.value.code

    monkeypatch.setattr(judge_command, "main", lambda arguments: seen.append(arguments) or 4)
    monkeypatch.setattr(os, "execve", lambda path, words, _: seen.append((path, words)))
    seen, found = [], assay.find_program()
    assert ended("judge", "a", "--max-rows", "3") == 4 and seen == [["a", "--max-rows", "3"]]
    ended("list", "judge")
    assert seen[1:] == [(found, [found, "list", "judge"])]
    for program in ("/nowhere/assay", "/dev/null", "/tmp"):
        monkeypatch.setenv("ASSAY_PROGRAM", program)
        assert ended("list") == 2 and capsys.readouterr().err == f"assay: ASSAY_PROGRAM={program}: is no program\n"


@pytest.mark.parametrize("error, code", [(LibraryError("not here"), 3), (ZeroDivisionError("not here"), 4)])
def test_what_keeps_the_judge_from_a_verdict_is_no_finding(monkeypatch, capsys, error, code):
    def fail(_):
        raise error

    monkeypatch.setattr(judge_command, "main", fail)
    assert __main__._here("judge", ["file"]) == code and "not here\n" in capsys.readouterr().err


def test_names_of_the_package():
    assert all(getattr(assay, name) is not None for name in assay.__all__)
    assert assay.judge is judging.judge and assay.flashinfer.install and assay.to_float32 is assay.elements.to_float32
    assert assay.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="module 'assay' has no attribute 'judgement'"):
        _ = assay.judgement
