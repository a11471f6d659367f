# SPDX-License-Identifier: Apache-2.0
"""What a kernel, or the script that it stands in, may say other than a result."""


class Unsupported(Exception):
    """Raised by a kernel for a call that it does not take, with the reason, before it writes anything."""


class LoadedSoFar(BaseException):
    """Ends the execution of a script in a worker where it would begin a check of its own."""


#: Whether this process is a worker that reads its kernels.
loading = False
