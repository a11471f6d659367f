# SPDX-License-Identifier: Apache-2.0
"""Tensors of NumPy, torch and whatever speaks DLPack, as addresses and strides. Nothing is copied where strides allow."""
import math
import sys

import numpy as np

from ..elements import to_float32
from . import library

#: Names of element types, by what libraries call them. uint16 is bf16 (NumPy has none), as everywhere in
#: this package; uint8 is fp8 where the call says which.
NAMES = {
    "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
    "int32": "int32", "int64": "int64", "int8": "int8", "uint16": "bf16",
}  # fmt: skip


#: Arguments that are judged on a GPU where they lie, if libassay_judge_cuda is there; others are copied from it.
ON_GPU = ("out", "q", "k", "v", "kv_cache", "lse", "o_in", "lse_in")
_DLPACK_CUDA = 2
#: The address of what has no elements, for torch says 0 and the library then takes the argument for one that is not given.
_NOWHERE = 16


class Tensor:
    """One array of a caller: kept alive, with strides in elements and none of them negative; in host memory, or on a GPU."""

    def __init__(self, name, value, dtype=None):
        self.name, self.value, self.given, self.on_gpu = name, value, dtype, False
        torch = sys.modules.get("torch")
        if (torch is None or not isinstance(value, torch.Tensor)) and hasattr(value, "__dlpack_device__"):
            if value.__dlpack_device__()[0] == _DLPACK_CUDA:
                value = self._of_gpu(value)
                torch = sys.modules["torch"]
        if torch is not None and isinstance(value, torch.Tensor):
            value = value.detach()
            self.device = str(value.device)
            self.on_gpu = value.is_cuda and name in ON_GPU and library.cuda_library() is not None
            if value.device.type != "cpu" and not self.on_gpu:
                value = value.cpu()
            self.dtype_name = str(value.dtype).removeprefix("torch.")
            self.value, self.data = value, value.data_ptr() or _NOWHERE
            self.shape, self.stride = tuple(value.shape), tuple(value.stride())
        else:
            self.device = "cpu"
            if not isinstance(value, np.ndarray):
                value = self._from_other(value)
            if any(stride < 0 for stride in value.strides) or any(s % value.itemsize for s in value.strides):
                value = np.ascontiguousarray(value)
            self.dtype_name = value.dtype.name
            self.value, self.data = value, value.__array_interface__["data"][0]
            self.shape, self.stride = value.shape, tuple(s // value.itemsize for s in value.strides)
        if 0 in self.shape:  # NumPy's strides of what has no elements are 0, which says nothing
            self.stride = tuple(math.prod(max(n, 1) for n in self.shape[i + 1 :]) for i in range(len(self.shape)))

    def _of_gpu(self, value):
        """As a torch tensor of the same memory."""
        try:
            import torch
        except ImportError as error:
            raise TypeError(f"assay: {self.name} is a {type(value).__name__} on a GPU, which takes torch to be viewed") from error
        return torch.from_dlpack(value)

    def _from_other(self, value):
        if hasattr(value, "__dlpack__"):
            try:
                return np.from_dlpack(value)
            except (BufferError, RuntimeError, TypeError) as error:
                raise TypeError(f"assay: {self.name} is a {type(value).__name__} that NumPy cannot view: {error}") from error
        if isinstance(value, (list, tuple, int, float)):
            array = np.asarray(value)
            return array.astype({"i": np.int64, "f": np.float32}.get(array.dtype.kind, array.dtype))
        raise TypeError(f"assay: {self.name} is a {type(value).__name__}, expected a tensor")

    @property
    def dtype(self):
        if self.given and self.dtype_name == "uint8":
            return self.given
        if self.dtype_name not in NAMES:
            raise TypeError(f"assay: {self.name} is {self.dtype_name}, expected one of {', '.join(NAMES)}")
        return NAMES[self.dtype_name]

    def view(self, value):
        """Another view of the same tensor, or a copy that was needed."""
        return Tensor(self.name, value, self.given)

    def as_floats(self):
        """fp32, whatever float it was (scales, slopes, LSE)."""
        if self.dtype_name == "float32":
            return self
        if self.dtype_name == "uint16":  # bf16 of NumPy
            return self.view(to_float32(self.value, "bf16"))
        return self.view(self.value.float() if hasattr(self.value, "float") else self.value.astype(np.float32))

    def unit_rows(self):
        """Elements of the last axis side by side: a copy where they are not."""
        if self.shape and self.shape[-1] > 1 and self.stride[-1] != 1:
            contiguous = getattr(self.value, "contiguous", None)
            return self.view(contiguous() if contiguous else np.ascontiguousarray(self.value))
        return self

    def reshape(self, *shape):
        return self.view(self.value.reshape(*shape))

    def transpose(self, *axes):
        return self.view(self.value.permute(*axes) if hasattr(self.value, "permute") else self.value.transpose(axes))

    def on_host(self):
        """This one, or a copy of what lies on a GPU."""
        if not self.on_gpu:
            return self
        copy = Tensor("copy", self.value, self.given)  # a name that stays on no GPU
        copy.name = self.name
        return copy

    def numpy(self):
        """The same memory as a NumPy array, of a GPU's a copy: bf16 as uint16, fp8 as uint8."""
        return self.at(Ellipsis)

    def at(self, *index):
        """Some of its elements, by slices or arrays of numbers, as numpy() has them: of a GPU's these alone are copied."""
        if isinstance(self.value, np.ndarray):
            return self.value[index]
        torch = sys.modules["torch"]
        bits = self.value
        if self.dtype_name not in ("bool", "uint8"):  # a mask, or bytes
            stored = {"bf16": torch.int16, "e4m3": torch.uint8, "e5m2": torch.uint8}.get(self.dtype)
            bits = bits.view(stored) if stored else bits
        index = tuple(torch.as_tensor(i, device=bits.device) if isinstance(i, np.ndarray) else i for i in index)
        array = bits[index].cpu().numpy()
        return array.view(np.uint16) if self.dtype_name == "bfloat16" else array
