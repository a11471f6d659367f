# SPDX-License-Identifier: Apache-2.0
"""What a candidate is asked, stage by stage: regimes of values, and calls one after another."""
import dataclasses
import typing

import numpy as np

from .drawn import inputs
from .regimes import REGIMES

#: Words for what an interface may exclude, and the stages that they leave out.
ASSUMPTIONS = {
    "no_empty_requests": ("empty",),
    "finite_pool": ("nan_behind",),
    "full_lengths": ("one_changes", "ragged", "short", "equal_keys", "counts", "nan_behind", "empty", "new_lengths"),
    "one_shape": ("other_shape",),
    "output_until_next_call": ("earlier_output",),
}
#: Regimes that an interface may exclude: whatever fails there is said as contract.
CONTRACT = ("nan_behind", "empty")


@dataclasses.dataclass(frozen=True)
class Asked:
    """One call whose outputs are judged."""

    inputs: typing.Any
    results: dict


class Fault(Exception):
    """What a stage saw that needs no bound: an input that the call changed, bits that differ."""


class ContractFault(Exception):
    """The same where an interface may allow it."""


@dataclasses.dataclass(frozen=True)
class Stage:
    name: str
    says: str
    run: typing.Callable  #: of a Session: yields Asked


class Session:
    """What stages share: the candidate, the shape, and seeds that the caller's seed gives."""

    def __init__(self, candidate, shape, seed):
        self.candidate, self.shape = candidate, shape
        self._seeds = np.random.default_rng(seed)

    def inputs(self, regime, shape=None):
        return inputs(shape or self.shape, regime, int(self._seeds.integers(1 << 62)))

    def ask(self, given, **options):
        return Asked(given, self.candidate.call(given, **options))


def _of_regime(name):
    def run(session):
        yield session.ask(session.inputs(name))

    return Stage(name, REGIMES[name].says, run)


def _inputs_unchanged(session):
    given = session.inputs("ragged")
    asked = session.ask(given, inputs_back=True)
    for name, array in given.tensors().items():
        after = asked.results.get(f"input {name}")
        if after is None or after.tobytes() != np.ascontiguousarray(array).tobytes():
            raise Fault(f"the call changed {name}")
    yield asked


def _new_bytes(regime):
    """The same storage with other values, after calls that could have been remembered."""

    def run(session):
        first = session.inputs("ordinary")
        for _ in range(12):
            session.ask(first, store="kept")
        yield session.ask(session.inputs(regime), store="kept")

    return run


def _one_changes(session):
    """Calls that differ from the first in one tensor alone: whoever recognises a call by another one gives its output."""
    first, other = session.inputs("strong_edges"), session.inputs("strong_edges")
    session.ask(first)
    for name in ("q", "k_cache", "v_cache"):
        yield session.ask(first.with_tensors(**{name: getattr(other, name)}))
    yield session.ask(first.with_tensors(seq_lens=np.maximum(first.seq_lens // 2, session.shape.q_len).astype(np.int32)))
    if first.page_table is not None and session.shape.batch > 1:
        yield session.ask(first.with_tensors(page_table=np.roll(first.page_table, 1, axis=0)))


def _other_shape(session):
    """Two shapes in turn: what is made for one call and kept is wrong for the next."""
    small = dataclasses.replace(session.shape, batch=max(1, session.shape.batch // 2), keys=max(session.shape.q_len, session.shape.keys // 2 + 3))
    for given in (session.inputs("ragged"), session.inputs("ragged", small), session.inputs("ragged")):
        yield session.ask(given)


def _earlier_output(session):
    first = session.ask(session.inputs("ordinary"), keep=True)
    second = session.ask(session.inputs("ordinary"))
    yield second
    if second.results["earlier"].tobytes() != first.results["out"].tobytes():
        raise ContractFault("the output of one call is overwritten by the next")


def _same_twice(session):
    given = session.inputs("strong_edges")
    first, second = session.ask(given), session.ask(given)
    if first.results["out"].tobytes() != second.results["out"].tobytes():
        raise Fault("two calls with the same inputs give other bits")
    yield second


def _busy(session):
    """Inputs that are still being written on the caller's stream when the call is made."""
    session.ask(session.inputs("ordinary"), store="busy")
    yield session.ask(session.inputs("ragged"), store="busy", busy=True)


STAGES = (
    *(_of_regime(name) for name in ("counts", "ordinary", "ragged", "strong_last", "strong_first", "strong_edges", "large_scores", "small",
                                    "magnitudes", "short", "equal_keys")),
    Stage("inputs_unchanged", "the call leaves its inputs as they were", _inputs_unchanged),
    Stage("one_changes", "calls that differ in one tensor alone", _one_changes),
    Stage("new_values", "the same storage with other values, after 12 calls", _new_bytes("strong_edges")),
    Stage("new_lengths", "the same storage with other lengths and pages, after 12 calls", _new_bytes("ragged")),
    Stage("other_shape", "another shape between two calls", _other_shape),
    Stage("busy", "inputs that are still being written on the caller's stream (on a GPU)", _busy),
    *(_of_regime(name) for name in ("nan_behind", "empty")),
    Stage("earlier_output", "an output stays as it is when the next call is made", _earlier_output),
)  # fmt: skip
#: Not asked unless it is promised.
REPEATABLE = Stage("same_twice", "the same call twice gives the same bits", _same_twice)


def chosen(assume, device):
    """The stages without what is assumed."""
    left_out = set()
    for word in assume:
        if word not in ASSUMPTIONS:
            raise ValueError(f"assay: assume is {word!r}, expected {', '.join(ASSUMPTIONS)}")
        left_out.update(ASSUMPTIONS[word])
    return [stage for stage in STAGES if stage.name not in left_out and (stage.name != "busy" or device == "cuda")]
