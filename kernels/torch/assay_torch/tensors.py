# SPDX-License-Identifier: Apache-2.0
"""What the first call of a shape checks of its tensors, and their strides as the C ABI wants them."""
import torch

from ._abi import DTYPE
from .errors import InvalidArgument, Unsupported, require

#: assay_dtype by torch's name.
DTYPES = {"float16": DTYPE["fp16"], "bfloat16": DTYPE["bf16"], "float32": DTYPE["fp32"], "float8_e4m3fn": DTYPE["e4m3"], "float8_e5m2": DTYPE["e5m2"]}
FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def facts(tensor):
    """What decides a call of this tensor, but for its address. None of None. AttributeError of what is no tensor."""
    return None if tensor is None else (tensor.shape, tensor.stride(), tensor.dtype, tensor.get_device())


def no_tensor(**arguments):
    """The exception for a call of which one argument is no tensor."""
    for name, value in arguments.items():
        if value is not None and not isinstance(value, torch.Tensor):
            return InvalidArgument(f"{name} is a {type(value).__name__}, expected a tensor")
    return InvalidArgument("an argument is no tensor")


def only_tensors(**arguments):
    """Refuses by name what is no tensor, but for None."""
    for value in arguments.values():
        if value is not None and not isinstance(value, torch.Tensor):
            raise no_tensor(**arguments)


def dtype_number(name, dtype):
    """assay_dtype of a torch dtype."""
    word = str(dtype).removeprefix("torch.")
    if word not in DTYPES:
        raise Unsupported(f"{name} is {word}, supported are {', '.join(DTYPES)}")
    return DTYPES[word]


def same_device(first, **tensors):
    """Every tensor (or None) is where the first one, (name, tensor), is."""
    for name, tensor in tensors.items():
        if tensor is not None and tensor.device != first[1].device:
            raise InvalidArgument(f"{name} is on {tensor.device}, expected {first[1].device} as {first[0]}")


def check(name, tensor, dtype, shape):
    """dtype and shape; a None in the shape is any number."""
    require(tensor.dtype == dtype, lambda: f"{name} is {tensor.dtype}, expected {dtype}")
    fits = tensor.dim() == len(shape) and all(want in (None, got) for want, got in zip(shape, tensor.shape))
    require(fits, lambda: f"{name} is {list(tensor.shape)}, expected {['any' if n is None else n for n in shape]}")


def unit_rows(name, tensor):
    """The last axis lies side by side."""
    require(
        tensor.shape[-1] <= 1 or tensor.stride(-1) == 1,
        lambda: f"{name} has stride {tensor.stride(-1)} in its last axis, expected 1",
    )


def strides(tensor, single):
    """Strides in elements; `single` for an axis with one piece at most, along which nobody steps and torch may say any."""
    return [stride if count > 1 else single for count, stride in zip(tensor.shape, tensor.stride())]


def vector(name, tensor, length, device_of):
    """An optional fp32 vector without gaps, of `length`."""
    if tensor is None:
        return
    same_device(device_of, **{name: tensor})
    check(name, tensor, torch.float32, (length,))
    unit_rows(name, tensor)


def scale_stride(name, tensor, num_kv_heads, device_of):
    """Of an optional scale of one or of num_kv_heads elements: 0 for the same everywhere, 1 for one per kv head."""
    if tensor is None:
        return 0
    if tensor.numel() == 1:
        same_device(device_of, **{name: tensor})
        require(tensor.dtype == torch.float32, lambda: f"{name} is {tensor.dtype}, expected torch.float32")
        return 0
    vector(name, tensor, num_kv_heads, device_of)
    return 1


def refuse_gradient(name, *tensors):
    """The kernels have no backward: a call that would have to be differentiated is refused by name, not silently cut."""
    if torch.is_grad_enabled():
        for tensor in tensors:
            if tensor is not None and tensor.requires_grad:
                raise Unsupported(f"{name} has no gradient, and an input requires one: detach it, or call it under torch.no_grad()")
