# SPDX-License-Identifier: Apache-2.0
"""Which tensor a candidate's parameter wants, by the names that engines have for them."""
import inspect

from .._judge.names import OTHERS, ours

#: What a parameter may be given, and the names for it that the judge has no argument for.
NAMES = {
    "q": ("queries",),
    "k_cache": ("key_cache", "k", "key", "keys"),
    "v_cache": ("value_cache", "v", "value", "values"),
    "kv_cache": (),
    "page_table": ("page_tables",),
    "seq_lens": ("seqlens", "lengths"),
    "sm_scale": (),
    "out": ("o",),
    "lse": (),
    "page_size": ("block_size",),
    "num_qo_heads": ("num_heads", "num_q_heads"),
    "num_kv_heads": (),
    "head_dim": ("head_size",),
    "max_seq_len": ("max_seqlen", "max_context_len"),
}
_OURS = {**{other: ours(other) for other in OTHERS if ours(other) in NAMES},
         **{other: name for name, others in NAMES.items() for other in (name, *others)}}  # fmt: skip
#: What a function with parameters of no known name is given.
_IN_ORDER = ("q", "k_cache", "v_cache", "page_table", "seq_lens")


def _hidden(function, signature):
    """Parameters of its code that a signature set by hand leaves out: nobody would ask what they do."""
    code = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code and hasattr(function, "__signature__") else ()
    return [name for name in names if name in _OURS and name not in signature]


class Arguments:
    """How a function is called: by name where it has names that are known, else in the order of _IN_ORDER."""

    def __init__(self, function):
        try:
            signature = inspect.signature(function).parameters
        except (TypeError, ValueError):  # of a compiled function nothing is known
            self.names, self.by_name = None, {}
            return
        if hidden := _hidden(function, signature):
            raise TypeError(f"the function takes {hidden[0]!r}, which its signature hides")
        named = [p for p in signature.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        self.by_name = {p.name: _OURS[p.name] for p in named if p.name in _OURS and p.kind is not p.POSITIONAL_ONLY}
        unknown = [p.name for p in named if p.name not in self.by_name and p.default is p.empty]
        if self.by_name and unknown:
            raise ValueError(f"assay: the function wants {unknown[0]!r}, expected names of {', '.join(NAMES)}")
        self.names = None if self.by_name else len(unknown) or len(_IN_ORDER)

    def call(self, function, given):
        """`given` has a value for every name of ours."""
        if self.by_name:
            return function(**{name: given[ours] for name, ours in self.by_name.items()})
        there = [given[name] for name in _IN_ORDER if given[name] is not None]
        return function(*there[: self.names])
