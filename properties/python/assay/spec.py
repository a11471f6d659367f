# SPDX-License-Identifier: Apache-2.0
"""What is known of a kernel beside its code, and where a worker finds the code."""
import dataclasses
import importlib.resources
import importlib.util
import json
import os
import sys
import typing

from ._abi import FAMILY
from .declaration import Declaration

F = typing.TypeVar("F", bound=typing.Callable[..., typing.Any])
FAMILIES = {"paged": FAMILY["paged"], "paged_v1": FAMILY["paged"], "paged_v2": FAMILY["paged"], **FAMILY}
#: What `assay list kernels --json` has: names, what their numbers are called, and whether only paged kernels have them.
PROMISES = json.loads(importlib.resources.files(__package__).joinpath("promises.json").read_text())


def _value_of(promise, word):
    """The number of a promise's word, True and False for a yes or no; None where it is no word of it."""
    if promise["words"] == ["false", "true"]:
        return int(word) if isinstance(word, bool) else None
    return promise["words"].index(word) if word in promise["words"] else None


class _Checked:
    """The arguments of `kernel`, checked."""

    def __post_init__(self):
        if self.family not in FAMILIES:
            raise ValueError(f"assay: family is {self.family!r}, expected one of {', '.join(FAMILIES)}")
        for promise in PROMISES:
            name, words = promise["name"], [w.capitalize() if w in ("false", "true") else w for w in promise["words"]]
            given = getattr(self, name)
            number = _value_of(promise, given)
            if promise["capability"] and FAMILIES[self.family] != 0 and number:
                raise ValueError(f"assay: {name} is {given!r}, expected True of a paged kernel only")
            if number is None:
                raise ValueError(f"assay: {name} is {given!r}, expected one of {', '.join(words)}")
        if not isinstance(self.declaration, Declaration):
            raise TypeError(f"assay: declaration is {self.declaration!r}, expected an assay.Declaration")
        if self.supports is not None and not callable(self.supports):
            raise TypeError(f"assay: supports is {self.supports!r}, expected a function of a case")

    def to_json(self):
        """A row of the worker's hello."""
        return {
            "name": self.name,
            "family": FAMILIES[self.family],
            **{promise["name"]: _value_of(promise, getattr(self, promise["name"])) for promise in PROMISES},
            "arithmetic": self.declaration.to_json(),
        }


Spec = dataclasses.make_dataclass(
    "Spec",
    [("family", str), ("declaration", Declaration), ("name", str)]
    + [(p["name"], object, False if p["words"][0] == "false" else p["words"][0]) for p in PROMISES]
    + [("supports", object, None), ("cases", int, None), ("budget", str, None)],
    bases=(_Checked,),
    frozen=True,
    namespace={"__module__": __name__},
)


def kernel(*, family: str, declaration: Declaration, name: typing.Optional[str] = None, **fields: typing.Any) -> typing.Callable[[F], F]:
    """Marks a function as a kernel: it takes a Case, reads its inputs and writes its outputs.

    family            paged (also paged_v1, paged_v2), cascade, merge_state or merge_states
    declaration       an assay.Declaration
    name              1 to 100 printable characters without space, '/' and '#'; the function's without it
    determinism       none (default) or run_to_run: the same call gives the same bits
    batch_invariance  none (default), fixed or always: whether a row's bits may follow the other rows
    nan_contract      none (default), values, scores or all: which NaN must reach the outputs
    checks_arguments  False (default), or True of a kernel that refuses every call that assay.h forbids
    ragged_queries    False (default), or True of a paged kernel that takes qo_indptr: requests of unlike
                      numbers of query tokens
    shards            False (default), or True of a paged kernel that takes dcp_world_size > 0: keys of one rank
    page_lists        False (default), or True of a kernel that takes page_indptr: pages in lists of each
                      row's length, which may be lists of each kv head
    supports          a function of a Case that raises assay.Unsupported, or returns False or a reason,
                      for calls that the kernel does not take; without it the kernel itself is asked
    cases, budget     of the tests that pytest makes of it (budget: "10s")

    The function stays as it was and can be called. ValueError and TypeError name a wrong argument.
    """

    def mark(function: typing.Any) -> typing.Any:
        function.__assay__ = Spec(family, declaration, name or function.__name__, **fields)
        return function

    return mark


def target_of(function, what="the kernel"):
    """MODULE:NAME or FILE.py:NAME, under which another process finds a function."""
    name = getattr(function, "__qualname__", None)
    if name is None or not name.replace(".", "_").isidentifier():
        raise ValueError(
            f"assay: {what} ({name or function!r}) cannot be found by another process: "
            "define it with def in a module or a script, not inside a function"
        )
    module = function.__module__
    if module != "__main__":
        try:
            if importlib.util.find_spec(module) is not None:
                return f"{module}:{name}"
        except (ImportError, ValueError):
            pass
    code = getattr(function, "__code__", None)
    path = getattr(sys.modules.get(module), "__file__", None) or getattr(code, "co_filename", module)
    if not os.path.isfile(path):
        raise ValueError(f"assay: {what} ({name}) stands in no file ({path}): put it into one")
    return f"{os.path.abspath(path)}:{name}"


def worker_arguments(function, spec):
    """What `python3 -m assay.worker` needs to serve the function as `spec` says."""
    arguments = [target_of(function)]
    if spec is not getattr(function, "__assay__", None):
        described = dataclasses.asdict(spec)
        if spec.supports is not None:
            described["supports"] = target_of(spec.supports, "supports")
        arguments += ["--describe", json.dumps({k: v for k, v in described.items() if v is not None})]
    elif spec.supports is not None:
        target_of(spec.supports, "supports")
    return arguments
