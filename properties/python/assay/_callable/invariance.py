# SPDX-License-Identifier: Apache-2.0
"""Bits that must not follow the batch, or the run: assert_batch_invariant, assert_deterministic."""
import dataclasses
import itertools
import secrets
import warnings

import numpy as np

from .. import arithmetic
from ..elements import to_float32
from .calling import Caller
from .drawn import inputs
from .graphs import Graph, NotCaptured
from .shape import Shape

_ALONE = 8  #: requests that are called alone, at most


class BitsError(AssertionError):
    """Two calls that must give the same bits do not."""

    __module__ = "assay"


class _Calls:
    def __init__(self, function, device):
        self.caller = Caller(function, device)

    def __call__(self, given):
        """out of a call, as an array [batch, ...]."""
        out, _ = self.caller.call(dataclasses.asdict(given.shape), given.sm_scale, self._tensors(given))
        return self._array(out, given)

    def _tensors(self, given):
        return {name: self.caller.tensors.made(array) for name, array in given.tensors().items()}

    def _array(self, out, given):
        out = self.caller.tensors.host(out)
        return (out.view(np.uint16) if out.dtype == np.int16 else out).reshape(given.q.shape)

    def replays(self, given, captured):
        """(words, out) of a graph that was captured with the inputs `captured`, behind a call of one request. Nothing without a GPU; a
        warning where the capture fails."""
        tensors = self._tensors(captured)
        if self.caller.tensors.device != "cuda":
            return
        try:
            graph = Graph(self.caller, dataclasses.asdict(captured.shape), captured.sm_scale, tensors)
        except NotCaptured as error:
            warnings.warn(f"assay: no replay of a graph was compared: {error}", stacklevel=3)
            return
        self(given.part([0]))
        for time in ("once", "once more"):
            self.caller.tensors.refill(tensors, given.tensors(), False)
            yield f"a graph replayed {time}", self._array(graph.replay()[0], given)


def _moved(given, rng):
    """The same call with its pages in other places."""
    to = rng.permutation(len(given.k_cache))
    pools = {name: np.empty_like(getattr(given, name)) for name in ("k_cache", "v_cache")}
    for name, pool in pools.items():
        pool[to] = getattr(given, name)
    return given.with_tensors(page_table=to[given.page_table].astype(np.int32), **pools)


def _first_queries(given, queries):
    """The first of each request's query tokens, with the keys that they see."""
    made = given.with_tensors(q=np.ascontiguousarray(given.q[:, :queries]), seq_lens=given.seq_lens - (given.shape.q_len - queries))
    made.shape = dataclasses.replace(given.shape, q_len=queries)
    if queries == 1:
        made.q = np.ascontiguousarray(made.q[:, 0])
    return made


def _variants(given, rng):
    """(words, call, requests of the batch that it has, query tokens of each that it has)."""
    batch, tokens = given.shape.batch, given.shape.q_len
    everything = list(range(batch))
    for request in rng.permutation(batch)[:_ALONE] if batch > 1 else []:
        yield f"request {request} alone", given.part([request]), [request], tokens
        if given.page_table is not None:
            columns = max(1, -(-int(given.seq_lens[request]) // given.shape.page_size))
            yield f"request {request} alone, in a table of its own pages", given.part([request], columns), [request], tokens
    if batch > 1:
        yield "the requests in reverse", given.part(everything[::-1]), everything[::-1], tokens
        yield "every second request", given.part(everything[::2]), everything[::2], tokens
    yield "the batch and once more behind it", given.part(everything * 2), everything * 2, tokens
    if given.page_table is not None:
        yield "the batch in other pages", _moved(given, rng), everything, tokens
    if tokens > 1:
        yield f"the first {tokens // 2} query tokens of each request", _first_queries(given, tokens // 2), everything, tokens // 2


def _compare(given, whole, words, other, there, requests, tokens, like):
    """BitsError where a call has other bits than its part of the batch."""
    here = whole[requests] if given.shape.q_len == 1 else whole[requests][:, :tokens]
    here = here.reshape(there.shape)
    if here.tobytes() != there.tobytes():
        sides = (("the batch", given, whole), (words, other, there))
        judged = [f"{name} is {side.judge(out, like=like).verdict}" for name, side, out in sides]
        raise BitsError(f"{_first_difference(words, given, here, there, requests)}; {', '.join(judged)} (like {like}); seed {given.seed}")


def _first_difference(words, given, here, there, requests):
    """Where two arrays of rows differ first, in words."""
    differ = np.argwhere(here.reshape(len(requests), -1, *here.shape[-2:]) != there.reshape(len(requests), -1, *there.shape[-2:]))
    at, token, head, dim = (int(n) for n in differ[0])
    request = int(requests[at])
    values = [array.reshape(len(requests), -1, *array.shape[-2:])[at, token, head, dim] for array in (here, there)]
    if here.dtype == np.uint16:
        values = [float(to_float32(np.array([value]), "bf16")[0]) for value in values]
    query = f" query {token}" if given.shape.q_len > 1 else ""
    return (
        f"assay: {words} gives other bits than the batch of {given.shape.batch}: {len(differ)} of {here.size} elements, the first in request "
        f"{request} of {int(given.seq_lens[request])} keys{query} head {head} dim {dim}: {float(values[1]):.9g}, in the batch {float(values[0]):.9g}"
    )


def assert_batch_invariant(function, shape="", *, seed=None, draws=1, device="auto", like=arithmetic.WIDEST):
    """BitsError unless a request's output has the same bits in its batch, alone, in other orders and tables, beside the same
    requests again, in other pages, (q_len above 1) as the first of its query tokens, and (on a GPU) replayed from a CUDA graph that was
    captured with full lengths. A function that cannot be captured gives a warning.

    Sums in another order differ by 2^-24, which 16-bit outputs hide in all but one element of 30,000: let the function return
    fp32 where it can, or take many heads and draws.

    function, shape, device   as of judge_callable; the function runs in this process
    draws      how many batches of ragged lengths are drawn, the first with `seed` (None: of the system's random numbers)
    like       the arithmetic by which both outputs are judged where they differ: which of them is right is in the message

    Returns how many calls were compared.
    """
    seed = secrets.randbits(48) if seed is None else seed
    calls, compared = _Calls(function, device), 0
    for draw in range(draws):
        given = inputs(Shape.parse(shape), "lengths", seed + draw)
        whole = calls(given)
        for words, other, requests, tokens in _variants(given, np.random.default_rng(seed + draw)):
            _compare(given, whole, words, other, calls(other), requests, tokens, like)
            compared += 1
    for words, there in calls.replays(given, inputs(given.shape, "ordinary", given.seed)):
        _compare(given, whole, words, given, there, list(range(given.shape.batch)), given.shape.q_len, like)
        compared += 1
    return compared


def assert_deterministic(function, shape="", *, seed=None, runs=10, device="auto"):
    """BitsError unless a call gives the same bits in every one of `runs` runs and (on a GPU) replayed from a CUDA graph, which a warning
    says where it cannot be captured. Arguments as of assert_batch_invariant."""
    seed = secrets.randbits(48) if seed is None else seed
    calls, given = _Calls(function, device), inputs(Shape.parse(shape), "lengths", seed)
    first = calls(given)
    again = ((f"run {run}", calls(given)) for run in range(1, runs))
    for words, out in itertools.chain(again, calls.replays(given, given)):
        if first.tobytes() != out.tobytes():
            raise BitsError(_first_difference(words, given, first, out, list(range(given.shape.batch))) + f"; seed {seed}")
    return runs
