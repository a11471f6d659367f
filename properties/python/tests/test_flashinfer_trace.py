# SPDX-License-Identifier: Apache-2.0
"""The example that judges FlashInfer's own reference, where flashinfer-python is installed."""
import pytest

pytest.importorskip("torch")
pytest.importorskip("flashinfer")


def test_the_reference_counts_the_whole_last_page():
    import flashinfer_trace_reference as example

    whole, part = (example.judged(last) for last in (example.PAGE, example.PAGE - 1))
    assert whole.passed, whole
    # One key of value 1 is seen; the reference has the mean of both slots, and the LSE of two keys.
    assert part.verdict == "outside" and part.findings == 2 and part.worst["got"] == 0.5 and part.worst["exact"] == 1, part
