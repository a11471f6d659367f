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


def __getattr__(name):
    if name == "__version__":  # said once, in CMakeLists.txt; a tree that is not installed has none
        import importlib.metadata

        try:
            return importlib.metadata.version("attention-assay")
        except importlib.metadata.PackageNotFoundError:
            return "0+tree"
    # NumPy is loaded when it is needed: a worker first says how many threads its libraries may start.
    if name in ("to_float32", "from_float32"):
        from . import elements

        return getattr(elements, name)
    if name in ("AttentionError", "JudgeReport", "assert_attention", "assert_merge", "judge", "judge_merge"):
        from . import judging

        return getattr(judging, name)
    if name == "flashinfer":
        import importlib

        return importlib.import_module(".flashinfer", __name__)
    raise AttributeError(f"module 'assay' has no attribute {name!r}")
