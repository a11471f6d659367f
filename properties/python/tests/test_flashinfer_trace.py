# SPDX-License-Identifier: Apache-2.0
"""The example that judges FlashInfer's own reference, where flashinfer-python is installed."""
import pytest

pytest.importorskip("torch")
pytest.importorskip("flashinfer")


def test_the_reference_counts_the_whole_last_page():
    import flashinfer_trace_reference as example

    whole, part = (example.judged(last) for last in (example.PAGE, example.PAGE - 1))
    assert whole.passed, whole
    # One key of score 0 is seen; the reference has the mean of both slots, and the LSE of two keys, which is 1 in base 2.
    assert part.verdict == "outside" and part.findings == 2, part
    assert part.worst["dim"] == -1 and part.worst["got"] == 1 and part.worst["exact"] == 0, part
