# SPDX-License-Identifier: Apache-2.0
"""Elements that NumPy has no type for: bf16 as uint16, e4m3 and e5m2 as uint8, bit for bit."""
import typing

import numpy as np

if typing.TYPE_CHECKING:
    import numpy.typing as npt

#: NumPy's type of the memory of each dtype.
STORED = {
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(np.uint16),
    "fp32": np.dtype(np.float32),
    "e4m3": np.dtype(np.uint8),
    "e5m2": np.dtype(np.uint8),
    "int32": np.dtype(np.int32),
}
_LARGEST = {"fp16": 65504.0, "e4m3": 448.0, "e5m2": 57344.0}
#: A pool whose page ids begin so high holds gigabytes of addresses without memory.
_MOST = 1 << 30


def _e4m3_values():
    bits = np.arange(256)
    field, fraction = bits >> 3 & 15, bits & 7
    values = np.where(field == 0, np.ldexp(fraction, -9), np.ldexp(8.0 + fraction, field - 10))
    values = np.where(bits & 0x7F == 0x7F, np.nan, values)
    return np.where(bits & 0x80, -values, values).astype(np.float32)


_E4M3 = _e4m3_values()


def _check(dtype, known):
    if dtype not in known:
        raise ValueError(f"assay: dtype is {dtype!r}, expected one of {', '.join(known)}")


def to_float32(array: "npt.ArrayLike", dtype: str) -> "npt.NDArray[np.float32]":
    """The values of an array of a case as float32, exactly; shape as it is, a copy.

    dtype: fp16, bf16, fp32, e4m3 or e5m2 (case.dtype, case.kv_dtype). ValueError for another one, an
    array of another type than the dtype's, and a whole cache that holds more addresses than memory.
    """
    _check(dtype, ("fp16", "bf16", "fp32", "e4m3", "e5m2"))
    array = np.asarray(array)
    if array.dtype != STORED[dtype]:
        raise ValueError(f"assay: an array of {array.dtype} holds no {dtype}, which is {STORED[dtype]}")
    if array.size > _MOST:
        raise ValueError("assay: not all of this cache is memory: pick its pages first, k_cache[page_table[r, :n]]")
    if dtype == "bf16":
        return (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if dtype == "e4m3":
        return _E4M3[array]
    if dtype == "e5m2":
        # The upper half of fp16.
        return (array.astype(np.uint16) << np.uint16(8)).view(np.float16).astype(np.float32)
    return array.astype(np.float32)


def from_float32(values: "npt.ArrayLike", dtype: str) -> "npt.NDArray[typing.Any]":
    """Values rounded to dtype, to nearest even with subnormals, saturating to the largest finite one.

    values: anything of float32; dtype: fp16, bf16, fp32, e4m3 or e5m2. NaN stays NaN, and infinity
    becomes the largest finite value but for fp32. Returns an array of the dtype's memory type.
    """
    _check(dtype, ("fp16", "bf16", "fp32", "e4m3", "e5m2"))
    values = np.array(values, dtype=np.float32)
    if dtype == "fp32":
        return values
    if dtype == "bf16":
        return _to_bf16(values)
    clipped = np.clip(values, -_LARGEST[dtype], _LARGEST[dtype])
    if dtype == "fp16":
        return clipped.astype(np.float16)
    return _to_byte(clipped, *((3, -6, 0x7F) if dtype == "e4m3" else (2, -14, 0x7D)))


def _to_bf16(values):
    bits = values.view(np.uint32).astype(np.int64)
    rounded = bits + 0x7FFF + (bits >> 16 & 1) >> 16
    rounded = np.where(rounded & 0x7FFF >= 0x7F80, rounded & 0x8000 | 0x7F7F, rounded)
    return np.where(np.isnan(values), 0x7F81, rounded).astype(np.uint16)


def _to_byte(values, fraction_bits, least_exponent, nan):
    """Clipped values as sign, exponent and fraction in one byte."""
    nans = np.isnan(values)
    magnitude = np.abs(np.where(nans, np.float32(0), values).astype(np.float64))
    exponent = np.maximum(np.frexp(magnitude)[1] - 1, least_exponent)
    # Zero has no exponent of its own.
    exponent = np.where(magnitude == 0, least_exponent, exponent)
    # rint rounds half to even; a fraction that rounds up carries into the exponent.
    units = np.rint(np.ldexp(magnitude, fraction_bits - exponent)).astype(np.int64)
    bits = units + (exponent - least_exponent << fraction_bits)
    bits = np.where(nans, nan, bits) | np.where(np.signbit(values), 0x80, 0)
    return bits.astype(np.uint8)
