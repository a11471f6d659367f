# SPDX-License-Identifier: Apache-2.0
"""A call as a kernel sees it: parameters by their names in kernels/abi/assay.h, tensors as arrays."""
import types

import numpy as np

from .elements import STORED, from_float32, to_float32


class _Memory:
    """Tells NumPy of memory by its address: a cache whose page ids begin high starts outside its memory."""

    def __init__(self, keep, address, described):
        stored = STORED[described["dtype"]]
        self.keep = keep
        self.__array_interface__ = {
            "version": 3,
            "typestr": stored.str,
            "shape": tuple(described["shape"]),
            "strides": tuple(n * stored.itemsize for n in described["strides"]),
            "data": (address + described["offset"], False),
        }


def _is_tensor(value):
    return isinstance(value, dict) and "strides" in value


class Case:
    """One call. Attributes (KERNELS.md says which family has which):

    Parameters are numbers, or words: dtype and kv_dtype are fp16, bf16, fp32, e4m3 or e5m2, lse_base is
    "e" or the number 2. Tensors are NumPy arrays that share the memory of the harness, None where the call
    has none; inputs are read-only. bf16 is uint16 and fp8 is uint8: see load and store.
    """

    def __init__(self, call, keep, address):
        self._dtypes = {}
        self._writable = {}
        for name, value in self._fields(call, keep, address).items():
            if name == "levels":
                value = [types.SimpleNamespace(**self._fields(level, keep, address)) for level in value]
            setattr(self, name, value)
        self._count_tokens_from_0()

    def _count_tokens_from_0(self):
        """q, out and lse begin with the first request's token, which has another number in a part of a larger call."""
        if getattr(self, "qo_indptr", None) is None:
            return
        self.qo_indptr = self.qo_indptr - self.qo_indptr[0]
        self._dtypes[id(self.qo_indptr)] = "int32"
        self._writable[id(self.qo_indptr)] = self.qo_indptr

    def _fields(self, described, keep, address):
        return {
            name: self._array(value, keep, address) if _is_tensor(value) else value
            for name, value in described.items()
        }

    def _array(self, described, keep, address):
        writable = np.asarray(_Memory(keep, address, described))
        shown = writable[...]
        shown.flags.writeable = described["output"]
        # By identity: the arrays live as long as the case does.
        self._dtypes[id(shown)] = described["dtype"]
        self._writable[id(shown)] = writable
        return shown

    def load(self, array, dtype=None):
        """The values of a tensor of this case, or of a part of it with its dtype, as float32."""
        return to_float32(array, dtype or self._dtype_of(array))

    def store(self, array, values, dtype=None):
        """Rounds float32 values to the dtype of an output of this case, or of a part of it, and writes them."""
        array[...] = from_float32(values, dtype or self._dtype_of(array))

    def _dtype_of(self, array):
        if id(array) not in self._dtypes:
            raise ValueError("assay: not a whole tensor of this case: name the dtype, case.dtype or case.kv_dtype")
        return self._dtypes[id(array)]

    def torch(self):
        """This case with torch tensors in the place of arrays, of torch's own bf16 and fp8 types.

        They share the memory. Inputs can be written there, which is found. ImportError without torch.
        """
        import torch

        kinds = {
            "bf16": torch.bfloat16,
            "e4m3": getattr(torch, "float8_e4m3fn", None),
            "e5m2": getattr(torch, "float8_e5m2", None),
        }

        def tensor(value):
            if isinstance(value, types.SimpleNamespace):
                return types.SimpleNamespace(**{k: tensor(v) for k, v in vars(value).items()})
            if isinstance(value, list):
                return [tensor(v) for v in value]
            if not isinstance(value, np.ndarray):
                return value
            dtype, array = self._dtypes[id(value)], self._writable[id(value)]
            if dtype == "bf16":
                array = array.view(np.int16)  # which every torch takes
            out = torch.from_numpy(array)
            return out if kinds.get(dtype) is None else out.view(kinds[dtype])

        return types.SimpleNamespace(
            **{name: tensor(value) for name, value in vars(self).items() if not name.startswith("_")}
        )
