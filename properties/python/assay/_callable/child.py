# SPDX-License-Identifier: Apache-2.0
"""The candidate's process: loads a function and calls it with tensors that lie in shared memory.

Not started by hand: it speaks on descriptor 3 and maps descriptor 4. It is told nothing but tensors, so that a candidate
finds no seed, no expected value and no later input here.
"""
import argparse
import os
import sys

from . import isolation


def main():
    parser = argparse.ArgumentParser(prog="python3 -m assay._callable.child")
    parser.add_argument("target")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--adapter")
    options = parser.parse_args()
    for fd in (3, 4):
        os.set_inheritable(fd, False)
    away = isolation.enter()
    if not isolation.is_open(3):  # it ended before this process asked to end with it
        sys.exit(1)
    sys.path.append(os.getcwd())  # for MODULE:FUNCTION, behind everything else
    from .serving import serve  # NumPy starts threads, which may not be there when namespaces are made

    sys.exit(serve(options.target, options.adapter, options.device, away))


if __name__ == "__main__":
    main()
