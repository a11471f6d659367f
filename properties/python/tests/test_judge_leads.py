# SPDX-License-Identifier: Apache-2.0
"""The cause of a wrong call is named where a change of its inputs explains every element that fails, and only there."""
import itertools
import subprocess
import sys

import assay
import numpy as np
import pytest
from assay import elements
from assay._judge import parts as judge_parts
from test_judge import library  # noqa: F401  (a fixture)
from test_judge_where import failed

G = np.random.default_rng(1)
Q, K, V = (G.standard_normal(shape).astype(np.float16) for shape in ((6, 4, 16), (2, 48, 4, 16), (2, 48, 4, 16)))


def attend(q, k, v, see=True):
    """O and LSE in fp64 of q [rows, heads, dim], k and v [keys, heads, dim]."""
    scores = np.einsum("nhd,lhd->nhl", *(x.astype(np.float64) for x in (q, k))) / np.sqrt(q.shape[2])
    scores = np.where(see, scores, -np.inf)
    weights = np.exp(scores - scores.max(2, keepdims=True))
    out = np.einsum("nhl,lhd->nhd", weights / weights.sum(2, keepdims=True), v.astype(np.float64))
    return out.astype(np.float16), (scores.max(2) + np.log(weights.sum(2))).astype(np.float32)


def said(out, lse, q, kv_cache, **options):
    return "\n".join(failed(out, q, kv_cache, lse=lse, **options).notes)


def below(rows, keys=48):
    """Causal order of the newest rows."""
    return (np.arange(keys) <= keys - rows + np.arange(rows)[:, None])[:, None]


def test_an_lse_written_with_its_axes_exchanged():
    out, lse = attend(Q, K[0], V[0], below(6))
    both = {"HT": (lse.reshape(4, 6), "TH"), "TH": (np.ascontiguousarray(lse.T).reshape(6, 4), "HT")}
    for claimed, (given, written) in both.items():
        assert f"rows 0 to 5 would be inside if lse_layout were {written!r}" in said(out, given, Q, (K[:1], V[:1]), seq_lens=[48], lse_layout=claimed)


@pytest.mark.parametrize("claimed, written", [("BHQ", "BQH"), ("BQH", "BHQ")])
def test_an_lse_of_a_batch_written_with_its_axes_exchanged(claimed, written):
    out, lse = zip(*(attend(Q[r : r + 3], K[r // 3], V[r // 3], below(3)) for r in (0, 3)))
    lse = np.stack(lse) if written == "BQH" else np.ascontiguousarray(np.stack(lse).swapaxes(1, 2))
    given = lse.reshape(2, 4, 3) if claimed == "BHQ" else lse.reshape(2, 3, 4)
    words = said(np.concatenate(out), given, Q, (K, V), seq_lens=[48, 48], lse_layout=claimed)
    assert f"would be inside if lse_layout were {written!r}" in words


@pytest.mark.parametrize("left_out", [["q_scale"], ["k_scale", "v_scale"], ["q_scale", "k_scale"], ["q_scale", "k_scale", "v_scale"]])
def test_scales_left_out(left_out):
    codes = [elements.from_float32(x.astype(np.float32), "e4m3") for x in (Q[:1], K[0], V[0])]
    scales = dict(q_scale=2.0, k_scale=0.75, v_scale=3.0)
    used = {name: 1.0 if name in left_out else scale for name, scale in scales.items()}
    q, k, v = (elements.to_float32(x, "e4m3") * used[name] for x, name in zip(codes, scales))
    out, lse = attend(q, k, v)
    words = said(out, lse, codes[0], (codes[1][None], codes[2][None]), q_dtype="e4m3", kv_dtype="e4m3", seq_lens=[48], like="sdpa_math",
                 **{name: [scale] for name, scale in scales.items()})  # fmt: skip
    assert f"row 0 would be inside if there were no {' and '.join(left_out)}" in words


def paged(x):
    return x.reshape(3, 16, 4, 16)


@pytest.mark.parametrize("length, words", [(32, "a whole page behind the last key counted"), (36, "every slot of its last page counted")])
@pytest.mark.parametrize("tables", [dict(page_table=[[0, 1, 2]]), dict(page_table=[0, 1, 2], page_indptr=[0, 3])])
def test_pages_read_too_far(length, words, tables):
    out, lse = attend(Q[:1], K[0], V[0])
    assert f"row 0 would be inside if {words}" in said(out, lse, Q[:1], (paged(K[0]), paged(V[0])), seq_lens=[length], **tables)


def test_no_page_is_read_that_is_not_there():
    """The table ends with the request, or its next entry is no page of the pool."""
    out, lse = attend(Q[:1], K[0], V[0])
    for tables in (dict(page_table=[[0, 1]]), dict(page_table=[[0, 1, -1]]), dict(page_table=[[0, 1, 3]]), dict(page_table=[0, 1], page_indptr=[0, 2])):
        assert "page" not in said(out, lse, Q[:1], (paged(K[0]), paged(V[0])), seq_lens=[32], **tables)


def test_the_cache_of_another_request():
    out, lse = (np.concatenate(x) for x in zip(*(attend(Q[r : r + 1], K[0], V[0]) for r in range(2))))
    assert "row 1 would be inside if it had the cache of request 0" in said(out, lse, Q[:2], (K, V), seq_lens=[48, 48])
    tables = dict(page_table=[0, 1, 2, 3, 4, 5], page_indptr=[0, 3, 6], seq_lens=[48, 48])
    kv = [np.concatenate([paged(x[0]), paged(x[1])]) for x in (K, V)]
    assert "row 1 would be inside if it had the pages of request 0" in said(out, lse, Q[:2], kv, **tables)


@pytest.mark.parametrize("page", [-1, 6, 7])
def test_a_table_of_another_request_that_names_no_page_is_left_alone(page):
    """Behind its own 40 keys a request's table may hold anything."""
    out, lse = (np.concatenate(x) for x in zip(*(attend(Q[r : r + 1], K[0, :n], V[0, :n]) for r, n in ((0, 20), (1, 48)))))
    kv = [np.concatenate([paged(x[0]), paged(x[1])]) for x in (K, V)]
    words = said(out, lse, Q[:2], kv, page_table=[[0, 1, page], [3, 4, 5]], seq_lens=[20, 48])
    assert "had the pages" not in words and "could not be looked at" not in words


@pytest.mark.parametrize("length", [20, 48])
@pytest.mark.parametrize("tables", [dict(page_table=[[0, 1, 2], [3, 4, 5]]), dict(page_table=[0, 1, 2, 3, 4, 5], page_indptr=[0, 3, 6])])
def test_the_pages_of_a_request_of_another_length(length, tables):
    """Request 1 reads as many pages as its own 40 keys take, and request 0 has fewer keys, or more."""
    requests = [attend(Q[:1], K[0, :length], V[0, :length]), attend(Q[1:2], K[0, :40], V[0, :40])]
    out, lse = (np.concatenate(x) for x in zip(*requests))
    kv = [np.concatenate([paged(x[0]), paged(x[1])]) for x in (K, V)]
    assert "row 1 would be inside if it had the pages of request 0" in said(out, lse, Q[:2], kv, seq_lens=[length, 40], **tables)


@pytest.mark.parametrize(
    "asked, causal, seen, words",
    [
        ((31, 0), True, slice(15, 48), "window_left were 32"),
        ((31, -1), True, slice(17, 48), "window_left were 30"),
        ((31, 2), False, slice(15, 48), "window_left were 32"),
    ],
)
def test_a_window_in_the_words_of_the_caller(asked, causal, seen, words):
    out, lse = attend(Q[:1], K[0, seen], V[0, seen])
    assert f"row 0 would be inside if {words}" in said(out, lse, Q[:1], (K[:1], V[:1]), seq_lens=[48], window_left=asked[0], window_right=asked[1], causal=causal)


def test_the_right_side_of_a_window():
    """Six rows see keys up to 42 + r + right of 48."""
    at = np.arange(48) - 42 - np.arange(6)[:, None]
    for left, words in ((8, "window_right were 2"), (9, "window_left were 9 and window_right were 2")):
        out, lse = attend(Q, K[0], V[0], ((at <= 2) & (at >= -left))[:, None])
        assert f"would be inside if {words}" in said(out, lse, Q, (K[:1], V[:1]), seq_lens=[48], window_left=8, window_right=1, causal=False)


def test_a_hint_fits_every_element_that_fails():
    """The last key is left out in every row; one more element is wrong in a row, or in a head, behind those looked at first."""
    out, lse = attend(Q, K[0], V[0], np.arange(48) < 42 + np.arange(6)[:, None, None])
    words = "would be inside if the last key did not count"
    options = dict(seq_lens=[48], like="fa2")
    assert f"rows 0 to 5 {words}" in said(out, lse, Q, (K[:1], V[:1]), **options)
    for row in range(6):
        other = out.copy()
        other[row, 3, 15] += 1
        assert "would be inside" not in said(other, lse, Q, (K[:1], V[:1]), **options)


@pytest.mark.parametrize("spoilt", [None, *range(12)])
def test_a_hint_on_heads_fits_every_head_of_every_row(spoilt):
    """12 heads read the keys of the other kv head, and one of them is wrong otherwise, too."""
    q = G.standard_normal((5, 12, 16)).astype(np.float16)
    k, v = (np.repeat(x[0, :, :2], 6, axis=1) for x in (K, V))
    out, lse = attend(q, k[:, ::-1], v, below(5))
    if spoilt is not None:
        out[4, spoilt, 3] += 1
    words = said(out, lse, q, (K[:1, :, :2], V[:1, :, :2]), seq_lens=[48])
    expected = "of rows 0 to 4 would be inside: heads 0 to 5 with K of kv head 1, heads 6 to 11 with K of kv head 0"
    assert (expected in words) == (spoilt is None) == ("would be inside" in words)


def test_rows_exchanged():
    out, lse = (x.copy() for x in attend(Q, K[0], V[0], below(6)))
    for x in (out, lse):
        x[[1, 4]] = x[[4, 1]]
    options = dict(seq_lens=[48])
    assert "row 1 would be inside as row 4, row 4 as row 1" in said(out, lse, Q, (K[:1], V[:1]), **options)
    out[2] += 1
    assert "would be inside" not in said(out, lse, Q, (K[:1], V[:1]), **options)


@pytest.fixture
def second_a_look(monkeypatch):
    """Processor time that passes by a second at each look."""
    monkeypatch.setattr(judge_parts.Work, "clock", itertools.count().__next__)


def test_suppositions_stop_after_two_seconds_unless_more_are_asked_for(second_a_look):
    """The cause is the third thing that is tried, and each takes a look or two."""
    out, lse = attend(Q[:1], K[0], V[0])
    call = dict(out=out, lse=lse, q=Q[:1], kv_cache=(K[:1], V[:1]), seq_lens=[48], sm_scale=0.5)
    assert said(**call).startswith("  where: ") and "would be" not in said(**call)
    assert "would be" not in said(**call, hint_seconds=0)
    assert "sm_scale were 0.25, its square" in said(**call, hint_seconds=100)
    with pytest.raises(TypeError, match="assay: hint_seconds is 'long', expected a number"):
        assay.assert_attention(**call, hint_seconds="long")


def test_the_command_takes_the_time_too(tmp_path):
    out, lse = attend(Q[:1], K[0], V[0])
    with pytest.raises(assay.AttentionError) as raised:
        assay.assert_attention(out, Q[:1], (K[:1], V[:1]), seq_lens=[48], lse=lse, sm_scale=0.5, findings=tmp_path)
    for seconds, there in (("0", False), ("1e9", True)):
        command = [sys.executable, "-m", "assay", "judge", "--hint-seconds", seconds, str(raised.value.path)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 1 and ("sm_scale were 0.25, its square" in ran.stdout) == there, ran
