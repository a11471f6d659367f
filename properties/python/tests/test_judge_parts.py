# SPDX-License-Identifier: Apache-2.0
"""Parts of the judge's package that no verdict shows: numbers, reports, limits, where libraries lie, what is refused and by which name."""
import io
import json
import logging
import math
import pathlib
import sys
import types
import zipfile

import numpy as np
import pytest
from assay import dump_files, flashinfer_calls, judge_inputs, judge_library, judge_parts, judge_record, judge_where, judging, vllm_calls, vllm_shadow
from assay.judge_report import AttentionError, JudgeReport
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
    with pytest.raises(ValueError, match=r"kv has 3 tensors, expected \(k, v\)"):
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
    wrong = judging.attention_call(rolled(out), call.q, (call.k, call.v), page_table=call.table, seq_lens=call.lens, cu_seqlens_q=call.cu, lse=lse, like="fa2")
    found = wrong.judge()
    for seconds, work in ((None, 1), (2.0, 1), (0.5, 1), (0, 1), (4.0, 2), (20.0, 10)):
        judge_where.notes(wrong, found, 3, seconds)
        left, until, rows, head, others, shift = given.pop()
        assert (left, until, shift) == (8 * judge_where.WORK * work, 2.0 if seconds is None else seconds, 3)
        assert rows[0] == found.worst["row"] and head == found.worst["head"] and set(rows) <= set(others) == set(range(7))


def test_work_is_spent_by_products_and_by_time():
    call = Call()
    out, _ = call.run()
    whole = judging.attention_call(out, call.q, (call.k, call.v), page_table=call.table, seq_lens=call.lens, cu_seqlens_q=call.cu, like="fa2")
    part = judge_where.excerpt(whole, 0)
    assert judge_parts.cost_of(whole, 0) == 6 * (37 * 64 + 8192) + 37 * 2048 and judge_parts.cost_of(whole, 3) == 6 * (64 * 64 + 8192) + 64 * 2048
    cost = judge_parts.cost_of(part)
    work = judge_parts.Work(2 * cost)
    assert work.judge(part).passed and work.judge(part, as_it_is=True).passed and work.left == 0
    with pytest.raises(judge_parts.Spent):
        work.judge(part)
    with pytest.raises(judge_parts.Spent):
        judge_parts.Work(9 * cost, 0).judge(part)


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Folders in which the library may lie, in the order in which they are looked at."""
    for name in ("ASSAY_JUDGE_LIBRARY", "ASSAY_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(judge_library, "__file__", str(tmp_path / "package/judge_library.py"))
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
        (dict(header=dict(queries=judge_record.MOST_QUERIES + 1)), "queries is 1048577"), (dict(header=dict(format=2)), "format is 2, expected 1"),
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


def layer(backend, **changes):
    """The arguments of a call of a layer of vLLM, some of them changed."""
    impl = dict(attn_type="decoder", kv_cache_dtype="auto", scale=1.0, sinks=None, alibi_slopes=None, logits_soft_cap=0, sliding_window=None if backend == "FLASH_ATTN" else -1)
    metadata = dict(query_start_loc=np.array([0, 1]), seq_lens=np.array([3]), block_table=np.array([[0]]), causal=True)
    owner = dict(isa="vec", _k_scale=np.ones(1, np.float32), _v_scale=np.ones(1, np.float32), _k_scale_float=1.0, _v_scale_float=1.0)
    for held in (impl, metadata, owner):
        held.update({name: changes.pop(name) for name in list(changes) if name in held})
    metadata.update({name: changes.pop(name) for name in list(changes) if name != "supports_quant_query_input"})
    q, cache = np.zeros((1, 2, 8), np.float16), np.zeros((2, 1, 4, 16), np.uint8 if impl["kv_cache_dtype"] != "auto" else np.float16)
    spaces = [types.SimpleNamespace(**held) for held in ({**impl, **changes}, owner, metadata)]
    return vllm_calls.BACKENDS[backend](spaces[0], spaces[1], q, cache, q, spaces[2], 0)


@pytest.mark.parametrize("backend, changes, words", [
    *((b, dict(attn_type="encoder"), "attention of an encoder") for b in vllm_calls.BACKENDS), *((b, dict(causal=np.ones(1)), "causal is a tensor") for b in vllm_calls.BACKENDS),
    *((b, dict(block_table=np.array([[n]])), f"block_table names page {n} of 2") for b in vllm_calls.BACKENDS for n in (-1, 2)),
    *((b, {name: 1}, f"{name} is given") for b in ("CPU_ATTN", "side_by_side") for name in ("dynamic_causal", "encoder_cache")),
    *(("FLASH_ATTN", {name: 1}, f"{name} is given") for name in ("mm_prefix_query_range_tensor", "rswa_prefix_lens", "dcp_context_kv_lens")),
    ("FLASH_ATTN", dict(use_cascade=True), "a cascade over a common prefix"), ("CPU_ATTN", dict(isa="amx"), "K is packed for isa amx"),
    ("FLASH_ATTN", dict(kv_cache_dtype="fp8", supports_quant_query_input=True), "q is quantised"),
])  # fmt: skip
def test_what_is_not_judged_of_vllm_is_named(backend, changes, words):
    with pytest.raises(vllm_calls.NotJudged, match=words):
        layer(backend, **changes)
    assert judging.judge(**layer(backend)).rows == 1
    assert judging.judge(**layer("FLASH_ATTN", use_cascade=False, supports_quant_query_input=True)).rows == 1 and layer("CPU_ATTN", isa="vec16")


def shadowed(shadow, result, backend="CPU_ATTN"):
    """forward of a layer that gives this result, looked at."""
    made = types.SimpleNamespace(impl=types.SimpleNamespace(forward=lambda *a, **k: result), attn_backend=types.SimpleNamespace(get_name=lambda: backend))
    shadow.attach(made)
    return made.impl.forward


def test_what_a_shadow_says(caplog, monkeypatch):
    caplog.set_level(logging.INFO, "vllm.assay")
    shadow = vllm_shadow.Shadow(1)
    shadow.summary()
    assert not caplog.records  # nothing was called
    monkeypatch.setattr(vllm_shadow, "BETWEEN_SUMMARIES", 2)
    good, bad = report(verdict="inside", ratio=0.5), report()
    for n, said in enumerate([report(verdict="inside", ratio=NAN), good, good, report(verdict="inside", ratio=0.25)], 1):
        shadow.counters.calls += 1
        shadow._judge(types.SimpleNamespace(judge=lambda said=said: said))
        assert shadow.counters.judged == n and shadow.counters.worst == (0 if n == 1 else 0.5)
    summaries = [line.split("assay: ")[1] for line in caplog.text.splitlines() if " calls, " in line]
    assert summaries == [f"{n} calls, {n} judged, 0 findings, worst |error| / allowed 0.5" for n in (2, 4)]
    assert len(caplog.records) == 3 and caplog.records[0].getMessage().startswith("assay: the first judged call is inside")
    caplog.clear()
    monkeypatch.setattr(vllm_shadow, "BETWEEN_SUMMARIES", 1000)
    monkeypatch.setattr(judge_record, "keep", lambda call, report, folder: f"{folder}/one")
    for _ in range(40):
        shadow._judge(types.SimpleNamespace(judge=lambda: bad))
    texts = [r.getMessage() for r in caplog.records]
    assert len(texts) == 30 and all("reproduce: python3 -m assay judge assay_vllm/one" in t for t in texts[:20]) and not any("reproduce" in t for t in texts[20:])
    assert shadow.counters.findings == 40 and shadow.files == 20 and shadow.counters.worst == 4
    caplog.clear()
    for _ in range(15):
        shadow._failed(ValueError("x" * 300))
    assert [r.getMessage() for r in caplog.records] == [f"assay: a call was not judged: ValueError: {'x' * 188}"] * 10
    shadow.counters.not_judged["why"] += 2
    assert str(shadow.counters).endswith(f"worst |error| / allowed 4; 2 not judged: why; 15 errors: ValueError: {'x' * 188}")


def test_a_shadow_looks_by_position_and_by_name():
    """The result is what forward returns where no output is given; an argument that is none is counted and not raised."""
    seen = []
    shadow = vllm_shadow.Shadow(2, rows=5)
    shadow._look = lambda name, impl, given, query, result: seen.append((name, sorted(given), query.tolist(), result))
    forward = shadowed(shadow, "result", "FLASH_ATTN")
    q = np.arange(3)
    for i in range(4):
        assert forward("layer", q, "key", "value", "cache", "metadata", output="out") == "result" and shadow.counters.calls == i + 1
    assert forward("layer", q, "key", "value", "cache", None) == "result" and shadow.counters.calls == 4
    assert seen == [("FLASH_ATTN", sorted(vllm_shadow._ARGUMENTS), [0, 1, 2], "result")] * 2
    assert forward(attn_metadata=1) == "result" and not shadow.counters.errors
    assert forward(attn_metadata=1) == "result" and list(shadow.counters.errors) == ["KeyError: 'query'"]


@pytest.mark.parametrize("every, layers", [(2, 2), (3, 3), (3, 2), (1, 2)])
def test_of_each_layer_one_call_in_so_many(every, layers):
    """However many layers are called in turn."""
    shadow, seen = vllm_shadow.Shadow(every), []
    shadow._look = lambda name, *given: seen.append(name)
    forwards = [shadowed(shadow, None, f"layer {i}") for i in range(layers)]
    for _ in range(6):
        for forward in forwards:
            forward(None, np.zeros(1), None, None, None, "metadata")
    assert shadow.counters.calls == 6 * layers and [seen.count(f"layer {i}") for i in range(layers)] == [6 // every] * layers


def test_a_layer_that_cannot_be_wrapped_ends_nothing():
    made, shadow = type("Attention", (), {}), vllm_shadow.Shadow(1)
    assert vllm_shadow.install(made, shadow) is shadow and vllm_shadow.install(made, vllm_shadow.Shadow(1)) is shadow
    made()
    assert list(shadow.counters.errors) == ["AttributeError: 'Attention' object has no attribute 'attn_backend'"]


SAFE = {"F8_E4M3": ("e4m3", np.uint8), "F8_E5M2": ("e5m2", np.uint8), "U8": (None, np.uint8), "BF16": (None, np.uint16), "I64": (None, np.int64), "BOOL": (None, bool), "F64": (None, float)}


@pytest.mark.parametrize("dtype", SAFE)
def test_types_of_safetensors(tmp_path, dtype):
    kind, stored = SAFE[dtype]
    array = np.arange(6).astype(stored).reshape(2, 3)
    header = json.dumps({"__metadata__": {}, "x": {"dtype": dtype, "shape": [2, 3], "data_offsets": [8, 8 + array.nbytes]}}).encode()
    path = tmp_path / "inputs.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8) + array.tobytes())
    (held,) = dump_files._tensors(path).values()
    assert held.dtype == stored and np.asarray(held).tolist() == array.tolist() and getattr(held, "kind", None) == kind and getattr(held[:1], "kind", None) == kind


def test_limits_of_a_dump(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    assert dump_files._tensors(tmp_path / "inputs.pt") == {}
    torch.save([torch.ones(3)], tmp_path / "list.pt")
    torch.save({"x": torch.ones(3), "y": 3, 4: torch.ones(1)}, tmp_path / "dict.pt")
    assert list(dump_files._tensors(tmp_path / "dict.pt")) == ["x"]
    with pytest.raises(dump_files.DumpError, match="list.pt holds no tensors by name"):
        dump_files._tensors(tmp_path / "list.pt")
    (tmp_path / "metadata.jsonl").write_text('{"a": 1}\n\n{"b": 2}\n \n')
    assert dump_files._last_record(tmp_path / "metadata.jsonl") == {"b": 2}
    monkeypatch.setattr(dump_files, "MOST_TEXT", 20)
    with pytest.raises(dump_files.DumpError, match="metadata.jsonl has 21 bytes, at most 20 are read"):
        dump_files._last_record(tmp_path / "metadata.jsonl")
    monkeypatch.setattr(dump_files, "MOST_TEXT", 21)
    assert dump_files._last_record(tmp_path / "metadata.jsonl") == {"b": 2}
    with zipfile.ZipFile(tmp_path / "many.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(1 << 20))
    monkeypatch.setattr(dump_files, "MOST_TENSORS", (1 << 20) - 1)
    with pytest.raises(dump_files.DumpError, match="many.pt holds 1048576 bytes, at most 1048575 are read"):
        dump_files._tensors(tmp_path / "many.pt")
    for version, refused in (("2.5.9", True), ("1.13.0+cpu", True), ("2.6.0", False), ("2.10", False), ("3.0", False)):
        monkeypatch.setattr(torch, "__version__", version)
        if refused:
            with pytest.raises(dump_files.DumpError, match=f"dict.pt is not read by torch {version.split('+')[0]}"):
                dump_files._tensors(tmp_path / "dict.pt")
        else:
            assert dump_files._tensors(tmp_path / "dict.pt")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(dump_files.DumpError, match="dict.pt needs torch, which is not installed"):
        dump_files._tensors(tmp_path / "dict.pt")


@pytest.mark.parametrize("text, names, defaults", [
    ("(self, a: int, b=2, /, c: str = 'x', *args, d, e=None, **more) -> None", ["self", "a", "b", "c"], {"b": 2, "c": "x", "e": None}),
    ("(a=[1], b=f())", ["a", "b"], {"a": [1]}), ("()", [], {}), ("<unavailable>", [], {}), (None, [], {}), ("(a=1", [], {}),
])  # fmt: skip
def test_names_and_defaults_of_a_signature(text, names, defaults):
    assert dump_files._signature(text) == (names, defaults)


@pytest.mark.parametrize("word, fits", [("-inf", [-math.inf]), ("inf", [math.inf]), ("+inf", [math.inf]), ("either", [-math.inf, math.inf])])
def test_words_for_the_lse_of_a_row_without_keys(word, fits):
    out, cache, lse = np.zeros((1, 2, 8), np.float16), np.zeros((1, 4, 1, 8), np.float16), np.zeros((1, 2), np.float32)
    for written in (-math.inf, math.inf, 0.0, 1e30):
        told = dict(lse=lse + np.float32(written), empty_lse=word, lse_layout="TH")
        assert judging.judge(out, out, (cache, cache), seq_lens=[0], **told).passed == (written in fits)
        states, given = np.zeros((2, 1, 2, 8), np.float16), np.full((2, 1, 2), -np.inf, np.float32)
        assert judging.judge_merge(out, states, given, **told).passed == (written in fits)


@pytest.mark.parametrize("word, base", [("e", math.e), ("natural", math.e), (2, 2), ("2", 2)])
def test_words_for_the_base_of_an_lse(word, base):
    """Of a row with three keys whose scores are 0."""
    out, cache = np.zeros((1, 2, 8), np.float16), np.zeros((1, 4, 1, 8), np.float16)
    for written in (math.e, 2):
        lse = np.full((1, 2), math.log(3) / math.log(written), np.float32)
        assert judging.judge(out, out, (cache, cache), seq_lens=[3], lse=lse, lse_base=word, lse_layout="TH").passed == (written == base)
