# SPDX-License-Identifier: Apache-2.0
"""Bits that must not follow the batch or the run."""
import subprocess
import sys

import numpy as np
import pytest
from conftest import HERE

import assay
import callables

SHAPE = "batch=5,heads=4/2,keys=200,head_dim=64"


def splits_by_the_batch(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return callables._attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, lambda *a: callables._splits(*a, parts=1 + 8 // len(q)), fp32=True)


def splits_by_the_table(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return callables._attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, lambda *a: callables._splits(*a, parts=page_table.shape[1]), fp32=True)


def adds_in_the_order_of_pages(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    first = iter(page_table[:, 0].tolist())
    return callables._attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, lambda *a: callables._tiles(*a, tile=16, order=1 - 2 * (next(first) % 2)), fp32=True)


def first_request_otherwise(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    turn = iter(range(len(q)))
    return callables._attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, lambda *a: callables._tiles(*a, tile=64 if next(turn) else 16), fp32=True)


def tokens_of_a_chunk(q, k_cache, v_cache, page_table, seq_lens, sm_scale, tile=64):
    """Causal; [batch, q_len, heads, dim] or, of one token each, [batch, heads, dim]."""
    tokens = q if q.ndim == 4 else q[:, None]
    out = np.zeros(tokens.shape, np.float32)
    for token in range(tokens.shape[1]):
        lengths = np.maximum(seq_lens - (tokens.shape[1] - 1 - token), 0)
        out[:, token] = callables._attend(tokens[:, token], k_cache, v_cache, page_table, lengths, sm_scale, lambda *a: callables._tiles(*a, tile=tile), fp32=True)
    return out.reshape(q.shape)


def tiles_by_the_chunk(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return tokens_of_a_chunk(q, k_cache, v_cache, page_table, seq_lens, sm_scale, tile=16 if q.ndim == 4 and q.shape[1] > 3 else 64)


@pytest.mark.parametrize("function, shape, calls", [
    (callables.plain, SHAPE, 2 * 14), (callables.splits, SHAPE, 2 * 14), (callables.tiles, "batch=1,heads=4/2,keys=200,head_dim=64", 2 * 2),
    (tokens_of_a_chunk, SHAPE + ",q_len=4", 2 * 15),
], ids=lambda given: getattr(given, "__name__", ""))  # fmt: skip
def test_functions_whose_bits_follow_no_batch_pass(function, shape, calls):
    assert assay.assert_batch_invariant(function, shape, seed=1, device="numpy", draws=2) == calls
    assert assay.assert_deterministic(function, shape, seed=1, device="numpy", runs=3) == 3


def test_a_part_of_a_batch_has_its_own_shape():
    whole = assay.inputs(SHAPE, "ragged", seed=1)
    for requests in ([3], [4, 0], [0, 1, 2, 3, 4] * 2):
        part = whole.part(requests)
        assert part.shape.batch == len(part.q) == len(part.seq_lens) == len(part.page_table) == len(requests)
        assert (part.shape.keys, whole.shape.batch) == (whole.shape.keys, 5)


@pytest.mark.parametrize("function, said", [
    (splits_by_the_batch, "alone gives other bits than the batch of 5"), (splits_by_the_table, "in a table of its own pages gives other bits"),
    (adds_in_the_order_of_pages, "the batch in other pages gives other bits"), (first_request_otherwise, "request [1-4] alone gives other bits"),
], ids=lambda given: getattr(given, "__name__", ""))  # fmt: skip
def test_what_the_bits_follow_is_said(function, said):
    with pytest.raises(assay.BitsError, match=said) as error:
        assay.assert_batch_invariant(function, SHAPE, seed=1, device="numpy", draws=6)  # pages may lie elsewhere and be even as before
    assert "the batch is inside" in str(error.value) and "head" in str(error.value)


def test_chunks_of_a_prefill_are_compared():
    with pytest.raises(assay.BitsError, match="the first 2 query tokens of each request gives other bits .* query [01] head"):
        assay.assert_batch_invariant(tiles_by_the_chunk, SHAPE + ",q_len=4", seed=1, device="numpy")


def test_runs_that_differ_are_said():
    with pytest.raises(assay.BitsError, match="run 1 gives other bits than the batch of 5: .* head . dim"):
        assay.assert_deterministic(callables.other_bits_each_time, SHAPE, seed=1, device="numpy")


def test_the_side_that_is_wrong_is_named():
    def wrong_alone(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
        lengths = np.maximum(seq_lens - 1, 1) if len(q) == 1 else seq_lens
        return callables.plain(q, k_cache, v_cache, page_table, lengths, sm_scale)

    with pytest.raises(assay.BitsError, match="the batch is inside, request . alone is outside"):
        assay.assert_batch_invariant(wrong_alone, SHAPE, seed=1, device="numpy")


def test_attention_of_other_libraries_is_asked():
    pytest.importorskip("torch")
    command = [sys.executable, "-B", str(HERE.parent / "adapters/batch_bits.py"), "--draws", "1"]
    ran = subprocess.run([*command, "sdpa_math_fp32", "sdpa_flash_bf16"], text=True, capture_output=True)
    said = ran.stdout.splitlines()
    assert ran.returncode == 0 and [line.partition(":")[0] for line in said] == [
        f"{name} {what}" for name in ("sdpa_math_fp32", "sdpa_flash_bf16") for what in ("runs", "batches")], ran.stderr
    assert "'sdpa', expected some of sdpa_math_bf16" in subprocess.run([*command, "sdpa"], text=True, capture_output=True).stderr
