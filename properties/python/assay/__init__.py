# SPDX-License-Identifier: Apache-2.0
"""Judges attention kernels written in Python by assay's properties and oracle.

    @assay.kernel(family="paged", declaration=assay.Declaration(exp2_rel_error=2.0**-21, ...))
    def attention(case): ...          # reads case.q, case.k_cache, ...; writes case.o, case.lse

    assay.check(attention, budget="60s").raise_for_findings()
"""
from .checking import check
from .declaration import Declaration
from .spec import kernel
from .program import ProgramError, find_program
from .result import Finding, FindingsError, Result, UnprovenError
from .worker_errors import Unsupported

__all__ = [
    "AttentionError",
    "Declaration",
    "Finding",
    "FindingsError",
    "JudgeReport",
    "ProgramError",
    "Result",
    "UnprovenError",
    "Unsupported",
    "assert_attention",
    "assert_merge",
    "check",
    "find_program",
    "from_float32",
    "judge",
    "judge_merge",
    "kernel",
    "to_float32",
]
__version__ = "0.1.0"


def __getattr__(name):
    # NumPy is loaded when it is needed: a worker first says how many threads its libraries may start.
    if name in ("to_float32", "from_float32"):
        from . import elements

        return getattr(elements, name)
    if name in ("AttentionError", "JudgeReport", "assert_attention", "assert_merge", "judge", "judge_merge"):
        from . import judging

        return getattr(judging, name)
    raise AttributeError(f"module 'assay' has no attribute {name!r}")
