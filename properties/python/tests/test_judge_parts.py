# SPDX-License-Identifier: Apache-2.0
"""Parts of the judge's package that no verdict shows: numbers, reports, limits, where libraries lie, what is refused and by which name."""
import io
import json
import math
import pathlib
import zipfile

import assay
import numpy as np
import pytest
from assay import judging
from assay._engines import flashinfer_calls
from assay._judge import inputs as judge_inputs
from assay._judge import library as judge_library
from assay._judge import parts as judge_parts
from assay._judge import record as judge_record
from assay._judge import where as judge_where
from assay._judge.report import AttentionError, JudgeReport
from test_judge import Call, library  # noqa: F401  (a fixture)
from test_judge_command import kept, rolled

NAN = float("nan")


@pytest.mark.parametrize("value, kind, found", [
    (3, int, 3), (np.int64(3), int, 3), (3.0, int, 3), (np.array([3]), int, 3), (True, int, 1), (2.5, float, 2.5), (np.float32(0.5), float, 0.5), (0, float, 0.0),
])  # fmt: skip
def test_a_number_of_any_kind(value, kind, found):
    got = judge_inputs.number("x", value, kind)
    assert got == found and type(got) is kind and math.isnan(judge_inputs.number("x", NAN))


@pytest.mark.parametrize("value, kind", [(2.5, int), ("3", int), ("3", float), (None, float), (None, int), (NAN, int), (math.inf, int), ([1, 2], float), (np.ones(2), int)])
def test_what_is_no_number_is_named(value, kind):
    with pytest.raises(TypeError, match=f"assay: x is .*, expected {'a number' if kind is float else 'an integer'}$"):
        judge_inputs.number("x", value, kind)


def test_shapes_that_are_none_are_named():
    scale = judge_inputs.query_scale(np.float32([[2], [3]]), 2, 4)
    assert scale.shape == (2, 4) and scale.numpy().tolist() == [[2] * 4, [3] * 4]
    assert judge_inputs.query_scale(np.array(2, np.float32), 2, 4).shape == (1,) and judge_inputs.query_scale(np.ones((2, 1), np.float32), 2, 1).shape == (2, 1)
    for kv, name in (((np.zeros((2, 8), np.float16),) * 2, "k"), ((np.zeros((1, 2, 1, 8), np.float16), np.zeros((2, 8), np.float16)), "v")):
        with pytest.raises(ValueError, match=rf"assay: {name} has shape \[2, 8\], expected \[pages, slots, heads, dim\]"):
            judge_inputs.caches(kv, "NHD", None)
    with pytest.raises(ValueError, match=r"kv_cache has 3 tensors, expected \(k, v\)"):
        judge_inputs.caches((1, 2, 3), "NHD", None)
    with pytest.raises(ValueError, match="caches of 4 bits are not judged"):
        judge_inputs.caches((1, 2), "NHD", "nvfp4")


def report(**fields):
    worst = dict(row=2, head=3, dim=5, got=1.5, exact=1.0, radius=0.25, allowed=0.125, ratio=4.0, budget={"weights": 0.01, "merge": 0.0, "flush": 0.1}, reason="outside")
    plain = dict(verdict="outside", like="fa2", worst=worst, ratio=4.0, ratio_lse=0.5, budget=0.001, elements=9, claimed=8, findings=7, rows=6, rows_judged=5)
    plain["worst"] = {**worst, **fields.pop("worst", {})}
    return JudgeReport(**{**plain, **fields})


def test_a_report_in_words():
    last = "  8 of 9 elements judged, 5 of 6 rows, like fa2, allowed is 1.0e-03 of |O| in the median"
    assert str(report()).splitlines() == [
        "outside: row 2 head 3 dim 5 is 1.5, exact 1 +- 0.25: outside", "  off by 0.5, allowed is 0.125 (4 times that)", "  allowed for flush 0.1, weights 0.01",
        "  7 of 8 elements are not inside", last,
    ]  # fmt: skip
    of_request = report(worst=dict(dim=-1, request=1, query=0, allowed=0.0, budget={"merge": 0.0}))
    assert str(of_request).splitlines() == ["outside: row 2 (request 1 query 0) head 3 the LSE is 1.5: outside", "  7 of 8 elements are not inside", last]
    assert "exact" not in str(report(worst=dict(allowed=math.inf)))
    assert str(report(order="tiles of 64")).splitlines()[-1] == "  order of keys: tiles of 64"
    inside = report(verdict="inside", ratio=0.5)
    assert str(inside).splitlines() == ["inside: worst |error| / allowed is 0.5 of O, 0.5 of the LSE", last] and inside and inside.raise_for_findings() is inside
    assert report(ratio_lse=NAN).ratios == "4 of O, no LSE" and not report() and not report(verdict="undecided")
    with pytest.raises(AttentionError) as raised:
        report().raise_for_findings()
    assert str(raised.value) == str(report()) and raised.value.path is None and raised.value.notes == []
    told = AttentionError(report(), pathlib.Path("a b.npz"), ["one"])
    assert str(told) == f"{report()}\none\n  reproduce: python3 -m assay judge 'a b.npz'" and told.notes == ["one"] and told.report.ratio == 4


def test_more_seconds_may_take_more_work(monkeypatch):
    """A call that is too large for all suppositions gets as much as its time allows, never less than of the usual time."""
    given = []
    monkeypatch.setattr(judge_where, "suppositions", lambda call, rows, head, others, work, shift: given.append((work.left, work.until - now(), rows, head, others, shift)) or [])
    now = lambda: 100.0  # noqa: E731
    monkeypatch.setattr(judge_parts.Work, "clock", staticmethod(now))
    call = Call()
    out, lse = call.run()
    wrong = judging.attention_call(rolled(out), call.q, (call.k, call.v), page_table=call.table, seq_lens=call.lens, qo_indptr=call.cu, lse=lse, like="fa2")
    found = wrong.judge()
    for seconds, work in ((None, 1), (2.0, 1), (0.5, 1), (0, 1), (4.0, 2), (20.0, 10)):
        judge_where.notes(wrong, found, 3, seconds)
        left, until, rows, head, others, shift = given.pop()
        assert (left, until, shift) == (8 * judge_where.WORK * work, 2.0 if seconds is None else seconds, 3)
        assert rows[0] == found.worst["row"] and head == found.worst["head"] and set(rows) <= set(others) == set(range(7))


def test_work_is_spent_by_products_and_by_time():
    call = Call()
    out, _ = call.run()
    whole = judging.attention_call(out, call.q, (call.k, call.v), page_table=call.table, seq_lens=call.lens, qo_indptr=call.cu, like="fa2")
    part = judge_where.excerpt(whole, 0)
    assert judge_parts.cost_of(whole, 0) == 6 * (37 * 64 + 8192) + 37 * 2048 and judge_parts.cost_of(whole, 3) == 6 * (64 * 64 + 8192) + 64 * 2048
    cost = judge_parts.cost_of(part)
    work = judge_parts.Work(2 * cost)
    assert work.judge(part).passed and work.judge(part, as_it_is=True).passed and work.left == 0
    with pytest.raises(judge_parts.Spent):
        work.judge(part)
    with pytest.raises(judge_parts.Spent):
        judge_parts.Work(9 * cost, 0).judge(part)


def test_places_are_looked_at_with_the_same_work_until_it_is_spent():
    seen = []

    def look_at(place, more, survey, work):
        work.left -= 1
        if work.left < 0:
            raise judge_parts.Spent
        seen.append((place, more, survey, work))

    for work, count in ((2, 2), (9, 4), (0, 0)):
        seen.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(judge_where, "WORK", work)
            judge_where._as_far_as_it_reaches(look_at, [(place, "more") for place in range(4)], "survey")
        assert [place for place, *_ in seen] == list(range(count)) and len({id(of) for *_, of in seen}) <= 1 and all(one[1:3] == ("more", "survey") for one in seen)


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Folders in which the library may lie, in the order in which they are looked at."""
    for name in ("ASSAY_JUDGE_LIBRARY", "ASSAY_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(judge_library, "__file__", str(tmp_path / "package/_judge/library.py"))
    monkeypatch.setenv("PATH", str(tmp_path / "there/bin"))
    made = [tmp_path / name for name in ("package/lib", "there/bin", "there/lib", "there/lib/x86_64-linux-gnu")]
    for folder in made:
        folder.mkdir(parents=True, exist_ok=True)
    program = tmp_path / "there/bin/assay"
    program.touch()
    program.chmod(0o755)
    return made


def test_the_library_is_looked_for_in_its_order(places, monkeypatch, tmp_path):
    with pytest.raises(judge_library.LibraryError, match="libassay_judge.so was not found: set ASSAY_JUDGE_LIBRARY"):
        judge_library.find_library()
    for folder in reversed(places):
        (folder / judge_library.NAME).touch()
        assert judge_library.find_library() == str(folder / judge_library.NAME)
    (places[0] / judge_library.NAME).unlink()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / judge_library.NAME).touch()
    monkeypatch.setenv("ASSAY_PROGRAM", str(tmp_path / "other/assay"))
    assert judge_library.find_library() == str(tmp_path / "other" / judge_library.NAME)
    monkeypatch.setenv("ASSAY_JUDGE_LIBRARY", "/given")
    assert judge_library.find_library() == "/given"
    for path in ("/given", str(tmp_path / "text")):
        (tmp_path / "text").write_text("no library")
        monkeypatch.setenv("ASSAY_JUDGE_LIBRARY", path)
        with pytest.raises(judge_library.LibraryError, match=f"assay: {path}: "):
            judge_library.library.__wrapped__()


def npz(path, header=None, **arrays):
    """The arrays of a file of a call with another header and others beside them."""
    with np.load(path) as held:
        there = {name: held[name] for name in held.files}
    if header is not None:
        there["header"] = np.frombuffer(json.dumps({**json.loads(there["header"].tobytes()), **header}).encode(), np.uint8)
    np.savez("changed.npz", **{**there, **arrays})
    return "changed.npz"


def test_files_that_are_none_of_a_call_are_named():
    path = kept()
    assert judge_record.judge(npz(path)).passed
    for changed, words in (
        (dict(header=dict(place={"rows": 1})), "place is not a table of row, request, query"), (dict(header=dict(place={"row": 1.5})), "place.row is 1.5, expected an integer"),
        (dict(header=dict(place={"row": -(1 << 31) - 1})), "place.row is"), (dict(header=dict(queries=0)), "queries is 0, expected an integer, 1 .. 1048576"),
        (dict(header=dict(queries=judge_record.MOST_QUERIES + 1)), "queries is 1048577"), (dict(header=dict(format=1)), "format is 1, expected 2"),
        (dict(header=dict(kind="other")), "kind is 'other'"), (dict(header=dict(like="x" * 65)), "dtypes or like is missing"), (dict(q=np.zeros((1,) * 5, np.uint16)), "at most 4 axes"),
        (dict(header=dict(scalars={})), "scalars has not the fields"), (dict(q=np.zeros((2, 6, 32), np.uint16)), "q has shape .* expected one row"),
        (dict(more=np.zeros(1)), "it holds 'more.npy', which is no array of attention"), (dict(q=np.asfortranarray(np.zeros((1, 6, 32), np.uint16))), None),
        (dict(q=np.zeros((1, 6, 32), np.float32)), "q is float32, expected uint16"),
    ):  # fmt: skip
        if words is not None:
            with pytest.raises(judge_record.RecordError, match=words):
                judge_record.judge(npz(path, **changed))
    for place in ({"row": (1 << 31), "query": -(1 << 31)}, {}):
        assert judge_record.read(npz(path, dict(place=place)))[1] == place
    data = io.BytesIO(pathlib.Path(npz(path)).read_bytes())
    with zipfile.ZipFile(data, "a") as archive, pytest.warns(UserWarning):
        archive.writestr("q.npy", b"")
    pathlib.Path("twice.npz").write_bytes(data.getvalue())
    with pytest.raises(judge_record.RecordError, match="it holds a name twice"):
        judge_record.read("twice.npz")


def test_a_merge_in_place_with_a_mask_is_not_judged():
    o, lse = np.zeros((2, 1, 8), np.float16), np.zeros((2, 1), np.float32)
    given = dict(v=o, s=lse, v_other=o, s_other=lse)
    ask = lambda **more: flashinfer_calls.Calls().calls_of("merge_state_in_place", None, {**given, **more}, (), [o, lse])  # noqa: E731
    assert ask()[0].judge().rows == 2
    with pytest.raises(flashinfer_calls.NotJudged, match="a mask of rows"):
        ask(mask=np.ones(2, bool))


@pytest.mark.parametrize("word, fits", [("-inf", [-math.inf]), ("inf", [math.inf]), ("+inf", [math.inf]), ("either", [-math.inf, math.inf])])
def test_words_for_the_lse_of_a_row_without_keys(word, fits):
    out, cache, lse = np.zeros((1, 2, 8), np.float16), np.zeros((1, 4, 1, 8), np.float16), np.zeros((1, 2), np.float32)
    for written in (-math.inf, math.inf, 0.0, 1e30):
        told = dict(lse=lse + np.float32(written), empty_lse=word, lse_layout="TH")
        assert judging.judge(out, out, (cache, cache), seq_lens=[0], **told).passed == (written in fits)
        states, given = np.zeros((2, 1, 2, 8), np.float16), np.full((2, 1, 2), -np.inf, np.float32)
        assert judging.judge_merge(out, states, given, **told).passed == (written in fits)


@pytest.mark.parametrize("word, base", [("e", math.e), (2, 2)])
def test_words_for_the_base_of_an_lse(word, base):
    """Of a row with three keys whose scores are 0."""
    out, cache = np.zeros((1, 2, 8), np.float16), np.zeros((1, 4, 1, 8), np.float16)
    for written in (math.e, 2):
        lse = np.full((1, 2), math.log(3) / math.log(written), np.float32)
        assert judging.judge(out, out, (cache, cache), seq_lens=[3], lse=lse, lse_base=word, lse_layout="TH").passed == (written == base)


@pytest.mark.parametrize("word", ["natural", "base2", "2", 10, None])
def test_other_words_for_the_base_of_an_lse_are_refused(word):
    out, cache = np.zeros((1, 2, 8), np.float16), np.zeros((1, 4, 1, 8), np.float16)
    with pytest.raises(ValueError, match=f"^assay: lse_base is {word!r}, expected 'e' or 2$"):
        judging.judge(out, out, (cache, cache), seq_lens=[3], lse_base=word)


def test_other_names_of_ragged_lengths_are_named_as_they_are_given():
    """In what this package says, and in what the library says."""
    out, cache = np.zeros((2, 1, 8), np.float16), np.zeros((4, 1, 8), np.float16)
    for queries, keys in (("qo_indptr", "kv_indptr"), ("cu_seqlens_q", "cu_seqlens_k")):
        ask = lambda ends, of_keys, **more: judging.judge(out, out, (cache, cache), **{queries: ends, keys: of_keys}, **more)  # noqa: B023, E731
        assert ask([0, 1, 2], [0, 3, 4]).rows == 2
        for ends, of_keys, more, words in (
            ([[0, 1, 2]], [0, 3, 4], {}, f"{queries} has 2 axes"),
            ([0, 3, 2], [0, 3, 4], {}, f"{queries}.2. is smaller"),
            ([0, 1, 2], [0.5, 3, 4], {}, f"{keys} is float32"),
            ([0, 1, 2], [0, 3, 4], {"seq_lens": [3, 1]}, f"{keys} says what page_table and seq_lens would"),
            ([0, 1, 2], [0, 3, 9], {}, keys),
        ):
            with pytest.raises((TypeError, ValueError), match=f"^assay: {words}"):
                ask(ends, of_keys, **more)


@pytest.mark.parametrize("dims, looked_at", [(1, [0]), (5, [0, 1, 2, 3, 4]), (8, list(range(8))), (15, [0, 2, 4, 6, 8, 10, 12, 14])])
def test_dims_that_are_looked_at_are_spread_from_the_first_to_the_last(dims, looked_at):
    out, cache = np.ones((1, 1, dims), np.float16), np.zeros((1, 4, 1, dims), np.float16)
    call = judging.attention_call(out, out, (cache, cache), seq_lens=[4])
    assert [element.dim for element in judge_where.look(call, 0).elements] == looked_at


Q, K, V, OUT = (np.ones(shape, np.float16) for shape in ((4, 2, 16), (2, 4, 1, 16), (2, 4, 1, 8), (4, 2, 8)))
ATTENTION = dict(out=OUT, q=Q, kv_cache=(K, V), seq_lens=[3, 4], lse=np.ones((4, 2), np.float32))
MERGE = dict(out=OUT, o_in=[OUT, OUT], lse_in=np.ones((2, 4, 2), np.float32), lse=np.ones((4, 2), np.float32))
BOTH = [
    (dict(lse_base=2), dict(lse_base=1)), (dict(empty_lse="inf"), dict(empty_lse=1)), (dict(empty_lse="either"), dict(empty_lse=2)), (dict(max_rows=2), dict(max_rows=2)),
    (dict(threads=2), dict(threads=2)), (dict(like=assay.Declaration(tile_tokens=7)), dict(tile_tokens=7)),
]  # fmt: skip
NUMBERS = [(assay.judge, ATTENTION, *option) for option in [
    *BOTH, (dict(causal=False), dict(causal=0)), (dict(window_left=3), dict(window_left=3)), (dict(window_right=2), dict(window_right=2)), (dict(window_left=None, window_right=None), {}),
    (dict(logits_soft_cap=1.5), dict(logits_soft_cap=1.5)), (dict(sm_scale=0.5), dict(sm_scale=0.5)), (dict(mask=np.ones(14, bool)), dict(causal=0)),
    (dict(mask=np.ones(14, bool), causal=True), {}),
]] + [(assay.judge_merge, MERGE, *option) for option in BOTH]  # fmt: skip


def numbers_told(monkeypatch, function, arguments):
    """What the library is told beside arrays: numbers of the call and of the arithmetic."""
    def call(entry, params):
        fields = {**{name: getattr(params, name) for name, _ in params._fields_}, **{name: getattr(params.arithmetic, name) for name, _ in params.arithmetic._fields_}}
        told.append({name: value for name, value in fields.items() if isinstance(value, (int, float)) and name != "struct_size"})
        return real(entry, params)

    told, real = [], judge_library.call
    with monkeypatch.context() as patch:
        patch.setattr(judge_library, "call", call)
        report = function(**arguments)
    return told[0], report


@pytest.mark.parametrize("function, arguments, option, changes", NUMBERS, ids=lambda x: "-".join(x) if isinstance(x, dict) and len(x) < 3 else "")
def test_an_option_changes_its_own_number(monkeypatch, function, arguments, option, changes):
    plain, _ = numbers_told(monkeypatch, function, {**arguments, "like": assay.Declaration()})
    told, report = numbers_told(monkeypatch, function, {**arguments, "like": assay.Declaration(), **option})
    assert {name: value for name, value in told.items() if value != plain[name]} == changes and report.like == "its declaration"
    common = dict(lse_base=0, empty_lse=0, max_rows=0, threads=0)
    assert common.items() <= plain.items()
    if function is assay.judge:  # the scale is that of q, whatever V's elements are
        assert dict(causal=1, window_left=-1, window_right=-1, logits_soft_cap=0, sm_scale=0.25).items() <= plain.items()
    assert numbers_told(monkeypatch, function, {**arguments, "like": "fa2"})[1].like == "fa2"


@pytest.mark.parametrize("function, arguments", [(assay.assert_attention, ATTENTION), (assay.assert_merge, MERGE)])
def test_where_a_failed_call_is_kept_and_how_long_it_is_looked_at(monkeypatch, function, arguments):
    seen, wrong = [], {**arguments, "out": arguments["out"] + 9}
    monkeypatch.setattr(judge_record, "keep", lambda call, report, folder: seen.append(folder) or "file")
    monkeypatch.setattr(judge_where, "notes", lambda call, report, seconds=None: seen.append(seconds) or ["  note"])
    for options, expected, path in ((dict(), ["findings", None], "file"), (dict(findings="there", hint_seconds=3), ["there", 3], "file"), (dict(findings=None), [None], None)):
        with pytest.raises(assay.AttentionError) as raised:
            function(**wrong, **options)
        assert seen == expected and (raised.value.path, raised.value.notes) == (path, ["  note"]) and isinstance(raised.value.report, assay.JudgeReport)
        assert ("reproduce: python3 -m assay judge file" in str(raised.value)) == (path is not None)
        seen.clear()
