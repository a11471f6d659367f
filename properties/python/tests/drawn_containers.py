# SPDX-License-Identifier: Apache-2.0
"""Arrays of a call that Hypothesis draws, as tensors of NumPy, torch or DLPack, at any strides."""
import types

import numpy as np
from hypothesis import strategies as st


class Exported:
    """What speaks DLPack and nothing else."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def _strided(draw, array):
    """The same elements at other strides: every second one of more, from the last to the first, or a part of more."""
    how = draw(st.sampled_from(["as it is", "gaps", "reversed", "part"]))
    if array.ndim == 0 or how == "as it is":
        return array
    axis = draw(st.integers(0, array.ndim - 1))
    at = [slice(None)] * array.ndim
    shape = list(array.shape)
    if how == "reversed":
        at[axis] = slice(None, None, -1)
        return np.ascontiguousarray(np.flip(array, axis))[tuple(at)]
    shape[axis] = 2 * shape[axis] if how == "gaps" else shape[axis] + 3
    at[axis] = slice(0, None, 2) if how == "gaps" else slice(2, 2 + array.shape[axis])
    more = np.zeros(shape, array.dtype)
    more[tuple(at)] = array
    return more[tuple(at)]


def _torch_of(array, dtype):
    import torch

    array = array if all(s >= 0 for s in array.strides) else array.copy()
    if array.dtype == np.uint16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    kinds = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
    made = torch.from_numpy(array)
    return made.view(kinds[dtype]) if array.dtype == np.uint8 and dtype in kinds else made


def in_container(draw, name, array, dtype, with_torch):
    """An array in one of the containers, perhaps of another type that holds its values."""
    if name in ("lse", "sm_scale", "logits_soft_cap") and array.dtype == np.float32 and np.array_equal(array.astype(np.float16), array, equal_nan=True) and draw(st.booleans()):
        array = array.astype(np.float16)
    if array.dtype == np.int64 and draw(st.booleans()):
        array = array.astype(np.int32)
    array = _strided(draw, array)
    kinds = ["numpy", *(["torch", "dlpack"] if with_torch else []), *(["list"] if array.ndim == 1 and array.dtype.kind == "i" and array.size else [])]
    kind = draw(st.sampled_from(kinds))
    if kind == "list":
        return array.tolist()
    if kind == "numpy" or array.dtype == np.bool_ and kind == "dlpack":
        return array
    tensor = _torch_of(array, dtype)
    stored = kind == "torch" or array.dtype in (np.uint16, np.uint8)  # NumPy has no such DLPack
    return tensor if stored else Exported(tensor)


def in_any_container(draw, arguments, options, with_torch):
    """The same tensors of NumPy, torch or DLPack, at any strides."""
    of = {"q": options.get("q_dtype"), "kv": options.get("kv_dtype"), "out": options.get("out_dtype")}
    put = lambda name, value: in_container(draw, name, value, of.get(name), with_torch)  # noqa: E731
    out, q, kv = arguments
    kv = put("kv", kv) if isinstance(kv, np.ndarray) else draw(st.sampled_from([tuple, list]))(put("kv", x) for x in kv)
    told = {name: put(name, value) if isinstance(value, np.ndarray) else value for name, value in options.items()}
    return types.SimpleNamespace(arguments=(put("out", out), put("q", q), kv), options=told)
