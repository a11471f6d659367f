# SPDX-License-Identifier: Apache-2.0
"""Any call, in any layout, type and container, has the verdict and the rows of the same call in the plainest layout."""
import dataclasses
import importlib.util
import inspect
import math

import numpy as np
import pytest
from assay import elements, judging
from assay._judge import excerpt as judge_excerpt
from assay._judge import record as judge_record
from assay._judge import where as judge_where
from assay._judge.excerpt import excerpt
from drawn_calls import FP8, in_any_layout, logical_calls, mistakes, plainest, wide, written
from drawn_containers import in_any_container, in_container
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_judge import library  # noqa: F401  (a fixture)

TORCH = importlib.util.find_spec("torch") is not None
#: The same examples in every run, and no clock.
drawn = settings(derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))


def numbers(report):
    """All fields; by their text, so that NaN is NaN."""
    return repr(report)


def rows_of(call, slots=judge_excerpt.SLOTS):
    """Each row of a call, judged as the call that a file keeps, in pages of so many slots."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge_excerpt, "SLOTS", slots)
        reports = [excerpt(call, row).judge() for row in range(call.tensors["out"].shape[0])]
    return [(r.verdict, repr(r.ratio), repr(r.ratio_lse), r.findings, r.elements, r.claimed) for r in reports]


@settings(drawn, max_examples=70)
@given(logical_calls(), st.data())
def test_a_call_says_the_same_in_every_way(call, data):
    plain, there = plainest(call)
    expected = judging.attention_call(*plain, **there)
    told = in_any_container(data.draw, *in_any_layout(data.draw, call), TORCH)
    found = judging.attention_call(*told.arguments, **told.options)
    report, rows = expected.judge(), rows_of(expected)
    assert numbers(found.judge()) == numbers(report)
    assert rows_of(found, 2) == rows
    # The rows together are the call.
    assert [sum(row[i] for row in rows) for i in (3, 4, 5)] == [report.findings, report.elements, report.claimed]


@settings(drawn, max_examples=100)
@given(logical_calls(), st.data())
def test_right_outputs_are_inside_in_every_way(call, data):
    call = written(call)
    told = in_any_container(data.draw, *in_any_layout(data.draw, call), TORCH)
    report = judging.judge(*told.arguments, **told.options)
    assert report.passed, report


def differ(right, wrong):
    """Whether outputs are further apart than any kernel's are of what it rounds."""
    o, of_wrong = (np.nan_to_num(wide(call.out, call.out_dtype), posinf=1e30, neginf=-1e30) for call in (right, wrong))
    steps = {"e4m3": 0.25, "e5m2": 0.5}.get(right.out_dtype, 0.05) * (wide_room := 5 if right.kv_dtype in FP8 else 1)
    lse, of_wrong_lse = (np.nan_to_num(call.lse, neginf=-1e30) for call in (right, wrong))
    return (abs(o - of_wrong) > steps * abs(o).max(initial=0) + 1e-3).any() or (abs(lse - of_wrong_lse) > 0.1 * wide_room * (1 + abs(lse))).any()


@settings(drawn, max_examples=60)
@given(logical_calls(), st.data())
def test_a_mistake_of_a_kernel_is_found_and_named_in_every_way(call, data):
    """What it was told wrongly is among what is supposed, where that is not full."""
    words = data.draw(st.sampled_from(sorted(mistakes(call))))
    wrong = written(mistakes(call)[words])
    told = in_any_container(data.draw, *in_any_layout(data.draw, dataclasses.replace(call, out=wrong.out, lse=wrong.lse)), TORCH)
    made = judging.attention_call(*told.arguments, **told.options)
    report = made.judge()
    assert not (report.passed and differ(written(call), wrong)), (words, report)
    tensors, options = plainest(wrong)
    as_taken = judging.judge(*tensors, **options)
    assert as_taken.passed
    if not report.passed and as_taken.claimed == as_taken.elements:
        notes = judge_where.notes(made, report, seconds=math.inf)
        supposed = [note for note in notes if "would be inside" in note]
        assert any(note.endswith(f"would be inside if {words}") for note in supposed) or len(supposed) == 4, (words, notes)


@settings(drawn, max_examples=40)
@given(logical_calls(), st.data())
def test_a_file_of_a_row_says_what_the_row_says(call, data):
    told = in_any_container(data.draw, *in_any_layout(data.draw, call), TORCH)
    found = judging.attention_call(*told.arguments, **told.options)
    whole = found.judge()
    if not whole.passed:  # of more rows the first of those that are as far off
        again = judge_record.judge(judge_record.keep(found, whole, "files"))
        assert (again.verdict, repr(again.worst)) == (whole.verdict, repr(whole.worst))
    for row in range(found.tensors["out"].shape[0]):
        request, query, _ = found.request_of(row)
        part = excerpt(found, row)
        kept = judge_record.judge(judge_record.write(part, {"row": row, "request": request, "query": query}, "files"))
        alone = part.judge()
        alone.worst.update(row=row, request=request, query=query)
        assert numbers(kept) == numbers(alone)


@settings(drawn, max_examples=70)
@given(logical_calls(), st.data())
def test_a_layout_of_the_lse_is_seen_or_asked_for(call, data):
    """Without lse_layout a shape means what it means with the only layout that it fits, or both are named."""
    (out, q, kv), options = in_any_layout(data.draw, call)
    layout = options.pop("lse_layout")
    expected = judging.attention_call(out, q, kv, lse_layout=layout, **options).judge()
    try:
        assert numbers(judging.judge(out, q, kv, **options)) == numbers(expected)
    except ValueError as error:
        assert "assay: lse has shape" in str(error) and f"{layout!r}" in str(error)
        assert call.q.shape[1] in (call.q.shape[0], call.queries[0])


@st.composite
def merges(draw):
    rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    states, rows, heads, dim = (draw(st.integers(1, 3)) for _ in range(4))
    dtype = draw(st.sampled_from(["fp16", "bf16", "fp32"]))
    o, out = (elements.from_float32(rng.standard_normal(shape), dtype) for shape in ((states, rows, heads, dim), (rows, heads, dim)))
    lse_in, lse = (rng.standard_normal(shape).astype(np.float16).astype(np.float32) for shape in ((states, rows, heads), (rows, heads)))
    return out, o, lse_in, lse, dict(lse_base=draw(st.sampled_from(["e", 2])), empty_lse=draw(st.sampled_from(["-inf", "inf", "either"])))


@settings(drawn, max_examples=70)
@given(merges(), st.data())
def test_a_merge_says_the_same_in_every_way(merge, data):
    out, o, lse_in, lse, options = merge
    expected = judging.merge_call(out, o, lse_in, lse=lse, lse_layout="TH", **options)
    layout = data.draw(st.sampled_from(["TH", "HT"]))
    told = {"out": out, "o_in": o, "lse_in": lse_in, "lse": lse if layout == "TH" else np.ascontiguousarray(lse.T)}
    told = {name: in_container(data.draw, name, array, None, TORCH) for name, array in told.items()}
    for name in ("o_in", "lse_in"):
        if data.draw(st.booleans()) and hasattr(told[name], "shape"):
            told[name] = list(told[name])
    found = judging.merge_call(**told, lse_layout=layout, **options)
    assert numbers(found.judge()) == numbers(expected.judge())
    assert rows_of(found) == rows_of(expected)


RNG = np.random.default_rng(1)
Q, K, V = (RNG.standard_normal(shape).astype(np.float16) for shape in ((4, 2, 4), (2, 4, 1, 4), (2, 4, 1, 4)))
#: Calls of which one argument is then something else.
CALLS = {
    "dense": (judging.judge, dict(out=Q, q=Q, kv_cache=(K, V), seq_lens=[3, 4], leftpad=[0, 1], cache_batch_idx=[1, 0])),
    "CSR": (judging.judge, dict(out=Q, q=Q, kv_cache=(K, V), page_table=[1, 0], page_indptr=[0, 1, 2], last_page_len=[3, 4], qo_indptr=[0, 1, 4])),
    "table": (judging.judge, dict(out=Q, q=Q, kv_cache=np.stack([K, V], 1), page_table=[[1], [0]], seq_lens_before=[1, 2], lse=Q[..., 0].astype(np.float32))),
    "ragged": (judging.judge, dict(out=Q, q=Q, kv_cache=(K[0], V[0]), kv_indptr=[0, 3, 4], mask=np.ones(8, bool), mask_indptr=[0, 6, 8])),
    "bits": (judging.judge, dict(out=Q, q=Q, kv_cache=(K, V), seq_lens=[3, 4], packed_mask=np.array([63, 255], np.uint8))),
    "merge": (judging.judge_merge, dict(out=V, o_in=[K, V], lse_in=[K[..., 0].astype(np.float32)] * 2)),
}
CALLS["merge"][1].update(out=V[0].astype(np.float32), o_in=np.stack([K, V])[:, 0].astype(np.float32), lse_in=np.zeros((2, 4, 1), np.float32))


#: What a caller may hand over by mistake in the place of any argument.
NOTHING = [None, 0, 0.0, -1, 1 << 40, "", [], (), {}, np.zeros(0), np.zeros((0, 0, 0, 0), np.float16), np.array(None), float("nan"), object()]
#: An argument that is named in the place of another: what the call has then is too little, or does not fit beside it.
ALSO = {
    "out": ["lse"], "q": ["packed_mask"],
    "page_table": ["v_page_table", "page_indptr", "seq_lens"], "seq_lens": ["leftpad", "page_table"], "page_indptr": ["last_page_len", "seq_lens"],
    "last_page_len": ["seq_lens"], "seq_lens_before": ["seq_lens"], "kv_indptr": ["seq_lens", "page_table"],
    "cu_seqlens_k": ["seq_lens", "page_table"],
}


@pytest.mark.parametrize("name, made", [(name, made) for made, (judge, _) in CALLS.items() for name in inspect.signature(judge).parameters])
def test_nothing_in_the_place_of_an_argument(name, made):
    """It is refused by the argument's name, or says what a call says."""
    judge, call = CALLS[made]
    assert judge(**call).elements
    for value in NOTHING:
        try:
            report = judge(**{**call, name: value})
        except (TypeError, ValueError) as error:
            assert str(error).startswith("assay: ") and any(word in str(error) for word in [name, *ALSO.get(name, [])]), (value, error)
        else:
            assert report.rows == len(call["out"]), value
