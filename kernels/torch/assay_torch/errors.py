# SPDX-License-Identifier: Apache-2.0
"""A refused call as a Python exception: the status' name and the library's own message, which names argument and limit."""


class AssayError(RuntimeError):
    """A call that was refused or failed. `status` is its assay_status. Nothing was launched."""

    status = 7


class InvalidArgument(AssayError, ValueError):
    """An argument is missing, of the wrong type or shape, misaligned or out of its range."""

    status = 1


class Unsupported(AssayError, NotImplementedError):
    """Well-formed, but not in this library or on this device."""

    status = 2


class WorkspaceTooSmall(AssayError):
    """A plan that is too small for the call; the message names the bytes needed."""

    status = 3


class CapacityExceeded(AssayError):
    """More blocks, or tiles of a plan, than there can be."""

    status = 4


class LaunchFailed(AssayError):
    """The CUDA runtime refused the launch."""

    status = 5


class Hazard(AssayError):
    """CPU only: the executor stopped the kernel."""

    status = 6


BY_STATUS = {cls.status: cls for cls in AssayError.__subclasses__()}


def require(holds, what):
    """Raises InvalidArgument with `what()`, which builds text for a call that fails alone."""
    if not holds:
        raise InvalidArgument(what())
