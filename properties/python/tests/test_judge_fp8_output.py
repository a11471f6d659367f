# SPDX-License-Identifier: Apache-2.0
"""Outputs in fp8, stored divided by a scale."""
import assay
import numpy as np
import pytest
from assay import from_float32, judging, to_float32
from test_judge import Call, library  # noqa: F401  (a fixture)

SCALE = np.array([0.003], np.float32)


def stored(call, dtype, scale=SCALE):
    """O of a right kernel in fp8, and its LSE: the product with the inverse, in fp32."""
    out, lse = exact(call)
    return from_float32((out.astype(np.float32) * (np.float32(1) / scale)).astype(np.float32), dtype), lse


def exact(call):
    """In fp32, before any 16 bits."""
    wide = call.copy(dtype="bf16")
    out, lse = wide.run()
    fine = []
    for row in range(len(call.q)):
        request = int(np.searchsorted(call.cu, row, side="right")) - 1
        end = int(call.lens[request] - (call.cu[request + 1] - row) + 1)
        pages = call.table[request, : -(-end // 4)]
        keys, values = (to_float32(c[pages].reshape(-1, 2, 32)[:end], "bf16").astype(np.float64) for c in (call.k, call.v))
        for head in range(6):
            x = keys[:, head // 3] @ to_float32(call.q[row, head], "bf16") * call.scale
            p = np.exp(x - x.max())
            fine.append(p @ values[:, head // 3] / p.sum())
    return np.array(fine).reshape(out.shape), lse


def made(call, out, lse, dtype, scale=SCALE, **options):
    given = dict(page_table=call.table, seq_lens=call.lens, qo_indptr=call.cu, lse=lse, like="fa2", out_dtype=dtype, o_scale=scale)
    return judging.attention_call(out, call.q, (call.k, call.v), **{**given, **options})


@pytest.mark.parametrize("dtype", ["e4m3", "e5m2"])
@pytest.mark.parametrize("scale", [0.003, 1.0, 0.25, 0.017])
def test_a_right_kernel_is_inside(dtype, scale):
    call, scale = Call(), np.array([scale], np.float32)
    report = made(call, *stored(call, dtype, scale), dtype, scale).judge()
    assert report.passed and report.claimed > 0.9 * report.elements and report.ratio > 0.5, report


WRONG = {
    "scale left out": lambda call: stored(call, "e4m3", np.ones(1, np.float32)),
    "scale in the place of its inverse": lambda call: stored(call, "e4m3", 1 / SCALE),
    "scale of another layer": lambda call: stored(call, "e4m3", SCALE * np.float32(1.2)),
    "written as e5m2": lambda call: (stored(call, "e5m2")[0], None),
    "two steps off": lambda call: (stored(call, "e4m3")[0] + np.where(np.arange(1344).reshape(7, 6, 32) == 700, 2, 0).astype(np.uint8), None),
    "rounded to zero": lambda call: (stored(call, "e4m3")[0] & np.uint8(0xFE), None),
    "heads exchanged": lambda call: (stored(call, "e4m3")[0][:, ::-1], None),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_output_is_found(wrong):
    call = Call()
    out, lse = WRONG[wrong](call)
    one = made(call, np.ascontiguousarray(out), lse, "e4m3")
    report = one.judge()
    assert report.verdict == "outside"


def test_what_fp8_has_no_room_for_is_not_claimed():
    call, scale = Call(), np.array([2e-4], np.float32)
    out, lse = stored(call, "e4m3", scale)
    report = made(call, out, lse, "e4m3", scale).judge()
    assert report.passed and 0 < report.claimed < report.elements


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(scale=np.ones(6, np.float32)), "o_scale's axis 0 is 6 long"),
        (dict(scale=np.zeros(1, np.float32)), "o_scale is outside"),
        (dict(dtype=None), "out is uint8"),
    ],
)
def test_what_does_not_fit_is_named(change, words):
    call = Call()
    with pytest.raises((ValueError, TypeError), match=words):
        made(call, *stored(call, "e4m3"), **{"dtype": "e4m3", **change}).judge()


def test_a_scale_of_bf16_and_a_merge_in_fp8_are_refused():
    call = Call()
    with pytest.raises(ValueError, match="o_scale is given and out is not fp8"):
        made(call, *call.run(), None).judge()
    states = np.zeros((2, 3, 1, 8), np.float32)
    with pytest.raises((ValueError, TypeError)):
        assay.judge_merge(np.zeros((3, 1, 8), np.uint8), states, states[..., 0])
