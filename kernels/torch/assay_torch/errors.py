# SPDX-License-Identifier: Apache-2.0
"""A refused call as a Python exception: the status' name and the library's own message, which names argument and limit."""
from ._abi import HAZARD, STATUS


class AssayError(RuntimeError):
    """A call that was refused or failed. `status` is its assay_status. Nothing was launched."""

    status = STATUS["internal"]


class InvalidArgument(AssayError, ValueError):
    """An argument is missing, of the wrong type or shape, misaligned or out of its range."""

    status = STATUS["invalid_argument"]


class Unsupported(AssayError, NotImplementedError):
    """Well-formed, but not in this library or on this device."""

    status = STATUS["unsupported"]


class WorkspaceTooSmall(AssayError):
    """A plan that is too small for the call; the message names the bytes needed."""

    status = STATUS["workspace_too_small"]


class CapacityExceeded(AssayError):
    """More blocks, or tiles of a plan, than there can be."""

    status = STATUS["capacity_exceeded"]


class LaunchFailed(AssayError):
    """The CUDA runtime refused the launch."""

    status = STATUS["launch_failed"]


class Hazard(AssayError):
    """CPU only: the executor stopped the kernel."""

    status = HAZARD


BY_STATUS = {cls.status: cls for cls in AssayError.__subclasses__()}


def require(holds, what):
    """Raises InvalidArgument with `what()`, which builds text for a call that fails alone."""
    if not holds:
        raise InvalidArgument(what())
