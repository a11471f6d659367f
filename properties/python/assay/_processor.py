# SPDX-License-Identifier: Apache-2.0
"""A word before a wheel's code ends in SIGILL: it is compiled for x86-64-v3 (Haswell of 2013, Zen of 2017)."""
import functools
import warnings

NEEDED = frozenset(("abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"))


def lacking(path="/proc/cpuinfo"):
    """What of it this processor lacks; nothing where that cannot be known."""
    try:
        with open(path, encoding="utf-8") as file:
            flags = next((line.partition(":")[2].split() for line in file if line.startswith("flags")), NEEDED)
    except OSError:
        return []
    return sorted(NEEDED.difference(flags))


@functools.cache
def warn():
    missing = lacking()
    if missing:
        warnings.warn(
            f"assay: this processor lacks {', '.join(missing)}, which wheels are compiled for: the process may end with "
            "Illegal instruction. Build assay on this machine (pip install . at the root of the tree)",
            RuntimeWarning,
            stacklevel=2,
        )
