# SPDX-License-Identifier: Apache-2.0
"""Encodings here are those of the harness, bit for bit."""
import numpy as np
import pytest

import assay
from assay.elements import STORED

BITS = {"fp16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8}


def words_of_floats():
    """Random words, and every boundary between two neighbours of each format with its own neighbours."""
    rng = np.random.default_rng(1)
    words = [rng.integers(0, 1 << 32, 200_000, dtype=np.uint64).astype(np.uint32)]
    for shift in (13, 16, 20, 21):  # fp32 cut to the fraction bits of fp16, bf16, e4m3, e5m2
        cut = rng.integers(0, 1 << 32, 20_000) >> shift << shift
        words += [(cut + (1 << (shift - 1)) + step & 0xFFFFFFFF).astype(np.uint32) for step in (-1, 0, 1)]
    small = np.float32(2.0) ** -np.arange(1, 40, 0.125, dtype=np.float32)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 480, 57344, 61440, 65504, 65519, 65520, 3.3895314e38]
    values = np.concatenate([small, -small, 3 * small, np.float32(special)])
    return np.concatenate(words + [values.astype(np.float32).view(np.uint32)])


@pytest.mark.parametrize("dtype", BITS)
def test_values_are_those_of_the_harness(dtype, element_bits):
    bits = np.arange(1 << BITS[dtype])
    got = assay.to_float32(bits.astype(f"uint{BITS[dtype]}").view(STORED[dtype]), dtype)
    expected = element_bits("from", dtype, bits).view(np.float32)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(expected[~np.isnan(got)]))


@pytest.mark.parametrize("dtype", BITS)
def test_rounding_is_that_of_the_harness(dtype, element_bits):
    words = words_of_floats()
    values = words.view(np.float32)
    got = assay.from_float32(values, dtype)
    assert got.dtype == STORED[dtype]
    expected = element_bits("to", dtype, words).astype(f"uint{BITS[dtype]}").view(STORED[dtype])
    number = ~np.isnan(values)
    np.testing.assert_array_equal(got.view(f"u{got.itemsize}")[number], expected.view(f"u{got.itemsize}")[number])
    assert np.isnan(assay.to_float32(got, dtype)[~number]).all()


def test_fp32_stays_as_it_is():
    values = np.float32([1, -0.0, np.inf, 1e-45])
    np.testing.assert_array_equal(assay.from_float32(values, "fp32").view(np.uint32), values.view(np.uint32))
    np.testing.assert_array_equal(assay.to_float32(values, "fp32"), values)


def test_shapes_and_strides_do_not_matter():
    array = np.arange(24, dtype=np.uint16).reshape(2, 3, 4)[:, ::2, 1:]
    np.testing.assert_array_equal(assay.to_float32(array, "bf16"), assay.to_float32(array.copy(), "bf16"))
    assert assay.from_float32(np.zeros((0, 3)), "e4m3").shape == (0, 3)
    for dtype, one in {"fp16": 0x3C00, "bf16": 0x3F80, "e4m3": 0x38, "e5m2": 0x3C}.items():
        scalar = assay.from_float32(1.0, dtype)
        assert scalar.shape == () and scalar.view(f"u{scalar.itemsize}") == one
        assert assay.to_float32(scalar, dtype) == 1.0 and assay.to_float32(scalar, dtype).dtype == np.float32


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="dtype is 'fp4', expected one of fp16"):
        assay.to_float32(np.zeros(1), "fp4")
    with pytest.raises(ValueError, match="an array of float64 holds no bf16, which is uint16"):
        assay.to_float32(np.zeros(1), "bf16")
    with pytest.raises(ValueError, match="expected one of"):
        assay.from_float32([0.0], "int32")


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32", "e4m3", "e5m2"])
def test_converted_arrays_are_copies_of_the_same_shape(dtype):
    values = np.float32([[0, 1], [0.5, -2]])
    stored = assay.from_float32(values, dtype)
    back = assay.to_float32(stored, dtype)
    assert back.dtype == np.float32 and back.shape == stored.shape == (2, 2) and back.tolist() == values.tolist()
    assert not np.shares_memory(back, stored) and not np.shares_memory(stored, values) and back.flags.writeable and stored.flags.writeable
