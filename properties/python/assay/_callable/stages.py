# SPDX-License-Identifier: Apache-2.0
"""What a candidate is asked, stage by stage: regimes of values, and calls one after another."""
import dataclasses
import typing

import numpy as np

from ..elements import from_float32, to_float32
from .drawn import inputs, one_strong
from .regimes import REGIMES

#: Words for what an interface may exclude, and the stages that they leave out.
ASSUMPTIONS = {
    "no_empty_requests": ("empty", "one_active"),
    "finite_pool": ("nan_behind", "after_nan"),
    "full_lengths": ("one_changes", "ragged", "short", "longest_first", "shared_pages", "zero_key", "low_scores", "wide_keys", "equal_keys", "counts",
                     "nan_behind", "empty", "one_active",
                     "new_lengths"),
    "one_shape": ("other_shape", "inputs_kept", "busy_first", "graph_other_shape"),
    "output_until_next_call": ("earlier_output",),
}
NAN_BITS = 0x7FC0  #: a NaN of bf16
_LOW_BITS = np.uint16(15)  #: of an element, which whoever looks at a part of it may leave out
#: Regimes that an interface may exclude: whatever fails there is said as contract.
CONTRACT = ("nan_behind", "empty", "one_active")


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
    gpu: bool = False  #: whether it shows nothing without one
    parameter: str = ""  #: what a function must have for it

    def missing(self, about):
        """Why it is not asked of a candidate, or ""."""
        if self.gpu and about["device"] != "cuda":
            return "it needs tensors on a GPU"
        return f"the function has no {self.parameter}" if self.parameter and self.parameter not in about["parameters"] else ""


class Session:
    """What stages share: the candidate, the shape, and seeds that the caller's seed gives."""

    def __init__(self, candidate, shape, seed, assume=()):
        self.candidate, self.shape, self.full = candidate, shape, "full_lengths" in assume
        self._seeds = np.random.default_rng(seed)

    def shape_of(self, keys, batch=None):
        return dataclasses.replace(self.shape, batch=batch or self.shape.batch, keys=max(self.shape.q_len, keys))

    def inputs(self, regime, shape=None):
        """In that regime, or with as strong keys where all lengths are full."""
        regime = "strong_edges" if self.full and REGIMES[regime].lengths != "full" else regime
        return inputs(shape or self.shape, regime, int(self._seeds.integers(1 << 62)))

    def with_one_other(self, given, name):
        """The same but for one element that an output follows: with it the score of a strong key has the other sign, or its value is
        another one."""
        at, (request, head) = one_strong(given, np.random.default_rng(int(self._seeds.integers(1 << 62))))
        array, dim = getattr(given, name).copy(), int(self._seeds.integers(given.shape.head_dim))
        place = (request, *([-1] if given.shape.q_len > 1 else []), head, dim) if name == "q" else (*at, dim)
        value = to_float32(array[place], given.shape.dtype)
        array[place] = from_float32(value + 8 if name == "v_cache" else -2 * given.shape.head_dim * value, given.shape.dtype)
        return given.with_tensors(**{name: array})

    def ask(self, given, **options):
        return Asked(given, self.candidate.call(given, **options))


def _of_regime(name, **more):
    def run(session):
        yield session.ask(session.inputs(name))

    return Stage(name, REGIMES[name].says, run, **more)


def _same_inputs(given, asked, what):
    for name, array in given.tensors().items():
        after = asked.results.get(f"input {name}")
        if after is None or after.tobytes() != np.ascontiguousarray(array).tobytes():
            raise Fault(f"{what} changed {name}")


def _inputs_unchanged(session):
    given = session.inputs("ragged")
    asked = session.ask(given, store="unchanged", inputs_back="unchanged")
    _same_inputs(given, asked, "the call")
    yield asked


def _inputs_kept(session):
    """What a function makes for the first call of a shape, a captured graph for one, may hold that call's tensors."""
    shape = session.shape_of(session.shape.keys // 2 + 7)
    first = session.inputs("ragged", shape)
    session.ask(first, store="first")
    asked = session.ask(session.inputs("ragged", shape), inputs_back="first")
    _same_inputs(first, asked, "a later call")
    yield asked


def _after_nan(session):
    """What a call leaves in a workspace is NaN in every split of every row, and the next call has rows of fewer splits."""
    given = session.inputs("ordinary")
    nan = np.full_like(given.v_cache, NAN_BITS if given.v_cache.dtype == np.uint16 else np.nan)
    session.ask(given.with_tensors(v_cache=nan))
    yield session.ask(session.inputs("short"))


def _new_bytes(regime):
    """The same storage with other values, after calls that could have been remembered."""

    def run(session):
        first = session.inputs("ordinary")
        for _ in range(12):
            session.ask(first, store="kept")
        other = session.inputs(regime)
        for name in ("v_cache", "k_cache"):
            if other.seq_lens.tolist() == first.seq_lens.tolist():
                yield session.ask(first.with_tensors(**{name: getattr(other, name)}), store="kept")
        yield session.ask(other, store="kept")

    return run


def _one_changes(session):
    """Calls that differ from the first in one element, in one tensor alone, or in the order of its rows: whoever recognises a call by less
    than all gives its output."""
    first = session.inputs("strong_edges")
    session.ask(first)
    for name in ("q", "k_cache", "v_cache"):
        yield session.ask(session.with_one_other(first, name))
        if len(getattr(first, name)) > 1:
            yield session.ask(first.with_tensors(**{name: np.roll(getattr(first, name), 1, axis=0)}))
    yield session.ask(first.with_tensors(v_cache=(first.v_cache.view(np.uint16) ^ _LOW_BITS).view(first.v_cache.dtype)))
    yield session.ask(first.with_tensors(seq_lens=np.maximum(first.seq_lens // 2, session.shape.q_len).astype(np.int32)))
    if first.page_table is not None and session.shape.batch > 1:
        yield session.ask(first.with_tensors(page_table=np.roll(first.page_table, 1, axis=0)))


def _small(session):
    return session.shape_of(session.shape.keys // 2 + 3, max(1, session.shape.batch // 2))


def _other_shape(session):
    """Two shapes in turn: what is made for one call and kept is wrong for the next."""
    for given in (session.inputs("ragged"), session.inputs("ragged", _small(session)), session.inputs("ragged")):
        yield session.ask(given)


def _replayed(session, captured, between):
    """A graph captured with full lengths, and replayed with others after a call of the shape `between`."""
    store = f"graph, {captured}"
    yield session.ask(session.inputs("ordinary", captured), store=store, graph="capture")
    session.ask(session.inputs("ragged", between))
    yield session.ask(session.inputs("ragged", captured), store=store, graph="replay")


def _graph(session):
    """What the host read or remembered at the capture stays in a graph."""
    yield from _replayed(session, session.shape, session.shape)


def _graph_other_shape(session):
    """A call of a larger or smaller shape may move, free or fill a workspace that a graph still uses. A new process has seen no shape: what
    an earlier stage has let grow would grow no more."""
    session.candidate.close()
    yield from _replayed(session, _small(session), session.shape)
    yield from _replayed(session, session.shape, _small(session))


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
    """Inputs that are still being written on the caller's stream when the call is made: in the storage of an earlier call, and
    in new storage, for which a function may capture a graph on a stream of its own. The first new ones may lie where those of an
    earlier call lay, and then have a graph."""
    session.ask(session.inputs("ordinary"), store="busy")
    yield session.ask(session.inputs("ragged"), store="busy", busy=True)
    for number in range(4):
        yield session.ask(session.inputs("ragged"), store=f"busy, new {number}", busy=True)


def _busy_first(session):
    """The same at the first call of a shape, which may run on a stream of the function's own, to be captured."""
    yield session.ask(session.inputs("ragged", session.shape_of(session.shape.keys // 2 + 5)), store="busy first", busy=True)


STAGES = (
    *(_of_regime(name) for name in ("counts", "ordinary", "ragged", "strong_last", "strong_first", "strong_edges", "large_scores", "small",
                                    "magnitudes", "short", "longest_first", "shared_pages", "zero_key", "low_scores", "wide_keys", "equal_keys")),
    *(_of_regime(name, parameter="sm_scale") for name in ("small_scale", "large_scale")),
    Stage("inputs_unchanged", "the call leaves its inputs as they were", _inputs_unchanged),
    Stage("inputs_kept", "inputs of the first call of a shape are as they were after a later one", _inputs_kept),
    Stage("one_changes", "calls that differ in one element, in one tensor alone, or in an order", _one_changes),
    Stage("new_values", "the same storage with other values, after 12 calls", _new_bytes("strong_edges")),
    Stage("new_lengths", "the same storage with other lengths and pages, after 12 calls", _new_bytes("ragged")),
    Stage("after_nan", "a call after one whose values were NaN", _after_nan),
    Stage("other_shape", "another shape between two calls", _other_shape),
    Stage("busy", "inputs that are still being written on the caller's stream", _busy, gpu=True),
    Stage("busy_first", "the same at the first call of a shape", _busy_first, gpu=True),
    *(_of_regime(name) for name in CONTRACT),
    Stage("earlier_output", "an output stays as it is when the next call is made", _earlier_output),
    Stage("graph", "a captured graph is replayed with other bytes in the same storage", _graph, gpu=True),
    Stage("graph_other_shape", "the same after a call of another shape", _graph_other_shape, gpu=True),
)  # fmt: skip
#: Not asked unless it is promised.
REPEATABLE = Stage("same_twice", "the same call twice gives the same bits", _same_twice)


def chosen(assume):
    """The stages without what is assumed."""
    left_out = set()
    for word in assume:
        if word not in ASSUMPTIONS:
            raise ValueError(f"assay: assume is {word!r}, expected {', '.join(ASSUMPTIONS)}")
        left_out.update(ASSUMPTIONS[word])
    return [stage for stage in STAGES if stage.name not in left_out]
