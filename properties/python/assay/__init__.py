# SPDX-License-Identifier: Apache-2.0
"""Judges outputs of attention kernels, and kernels written in Python, by assay's oracle and properties.

    assay.assert_attention(out, q, (k_cache, v_cache), page_table=table, seq_lens=seq_lens, like="fa2")

    @assay.kernel(family="paged", declaration=assay.Declaration(exp2_rel_error=2.0**-21, ...))
    def attention(case): ...          # reads case.q, case.k_cache, ...; writes case.out, case.lse

    assay.check(attention, budget="60s").raise_for_findings()
"""
import importlib
import sys
import typing

# `python -m assay` finds modules in the working folder first, where a candidate may have left some.
if sys.argv[:1] == ["-m"] and " -m assay " in f"{' '.join(getattr(sys, 'orig_argv', []))} " and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

from .checking import check
from .declaration import Declaration
from .spec import kernel
from .program import ProgramError, find_program
from .result import Finding, FindingsError, Result, UnprovenError
from .worker_errors import Unsupported

if typing.TYPE_CHECKING:
    from . import arithmetic, flashinfer
    from ._callable.drawn import inputs
    from ._callable.fitting import fit
    from ._callable.invariance import BitsError, assert_batch_invariant, assert_deterministic
    from ._callable.judge import judge_callable
    from ._callable.process import Limits
    from ._callable.shape import Shape
    from .elements import from_float32, to_float32
    from .judging import AttentionError, JudgeReport, assert_attention, assert_merge, judge, judge_merge

    __version__: str

__all__ = [
    "AttentionError",
    "BitsError",
    "Declaration",
    "Finding",
    "FindingsError",
    "JudgeReport",
    "Limits",
    "ProgramError",
    "Result",
    "Shape",
    "UnprovenError",
    "Unsupported",
    "arithmetic",
    "assert_attention",
    "assert_batch_invariant",
    "assert_deterministic",
    "assert_merge",
    "check",
    "find_program",
    "fit",
    "flashinfer",
    "from_float32",
    "inputs",
    "judge",
    "judge_callable",
    "judge_merge",
    "kernel",
    "to_float32",
]
# NumPy is loaded when it is needed: a worker first says how many threads its libraries may start.
_LATER = dict.fromkeys(("to_float32", "from_float32"), "elements")
_LATER.update(dict.fromkeys(("AttentionError", "JudgeReport", "assert_attention", "assert_merge", "judge", "judge_merge"), "judging"))
_LATER.update(inputs="_callable.drawn", fit="_callable.fitting", judge_callable="_callable.judge", Limits="_callable.process", Shape="_callable.shape")
_LATER.update(dict.fromkeys(("BitsError", "assert_batch_invariant", "assert_deterministic"), "_callable.invariance"))


def __getattr__(name: str) -> typing.Any:
    if name == "__version__":  # said once, in CMakeLists.txt; a tree that is not installed has none
        from importlib import metadata

        try:
            return metadata.version("attention-assay")
        except metadata.PackageNotFoundError:
            return "0+tree"
    if name in _LATER:
        return getattr(importlib.import_module("." + _LATER[name], __name__), name)
    if name in ("arithmetic", "flashinfer"):
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'assay' has no attribute {name!r}")


def __dir__() -> typing.List[str]:
    return sorted([*__all__, "__doc__", "__version__"])
