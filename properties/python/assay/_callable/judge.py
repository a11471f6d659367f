# SPDX-License-Identifier: Apache-2.0
"""assay.judge_callable: a function in, a verdict out."""
import secrets
import time

import numpy as np

from .. import arithmetic, worker_errors
from .._judge import where
from ..elements import STORED
from ..judging import attention_call
from ..spec import target_of
from . import counts, fitting, isolation, stages
from .process import Candidate, CandidateError, Limits
from .shape import Shape
from .verdict import ARITHMETIC, CONTRACT, FINDING, NOT_ASKED, PASS, UNDECIDED, StageResult, Verdict, worst

#: Stages whose outputs say which arithmetic was used; those first that tell most rungs apart.
_TELLING = ("ragged", "large_scores", "short", "ordinary", "magnitudes", "strong_edges", "strong_last", "strong_first", "small", "equal_keys")


def judge_callable(
    function, shape="", *, adapter=None, like=arithmetic.WIDEST, seed=None, assume=(), device="auto", deterministic=False, capturable=False,
    keep_going=False, explain=False, lse_base="e", limits=Limits(), threads=0, each=None,
):  # fmt: skip
    """Runs a function on inputs made for it, in a process of its own, and judges what it returns.

    function   a function of tensors, or "FILE.py:NAME". By the names of its parameters it is given q, k_cache, v_cache, kv_cache
               (both), page_table, seq_lens, sm_scale, out (to write into), lse, page_size, num_qo_heads, num_kv_heads,
               head_dim, max_seq_len, or what engines call them (block_tables, cache_seqlens, softmax_scale, ...). It returns
               out or (out, lse). Tensors are torch's where its module imports torch or Triton, on a GPU where there is one, or
               where `device` is "cuda"; else NumPy's
    shape      "batch=8,heads=32/8,head_dim=128,keys=1024,page_size=16" or a Shape; assay.inputs says what the tensors are
    adapter    "FILE.py:NAME" of a function that makes the function of tensors from what `function` names, such as a class that a
               benchmark asks for
    like       the arithmetic that is claimed, a name or a Declaration
    seed       of everything drawn; None: of the system's random numbers, and in the verdict. Inputs are drawn after the
               function was loaded
    assume     what the interface excludes: no_empty_requests, finite_pool, full_lengths, one_shape,
               output_until_next_call
    device     "cpu", "cuda", "numpy" or "auto"
    deterministic   whether the same call must give the same bits
    capturable whether a CUDA graph must be able to hold a call; False: where a capture fails, replays are not judged
    keep_going False: the stage that fails first ends it
    explain    False: one element that fits no arithmetic ends it; True: suppositions about the cause are looked for
    lse_base   "e" or 2, of what it returns as LSE
    limits     seconds and memory after which the process is ended: Limits
    each       a function that is given every StageResult when it is there

    Returns a Verdict. ValueError and TypeError name an argument that does not fit.
    """
    if worker_errors.loading:
        raise worker_errors.LoadedSoFar
    target = function if isinstance(function, str) else target_of(function, "the function")
    run = _Run(Shape.parse(shape), like, secrets.randbits(62) if seed is None else seed, dict(lse_base=lse_base, threads=threads), explain, capturable)
    begin = time.monotonic()
    stages.chosen(assume)  # a wrong word is said before anything runs
    isolation.unreadable()
    try:
        with Candidate(target, device, limits, adapter) as candidate:
            results = run.all(candidate, assume, deterministic, keep_going, each)
            about = candidate.about
    finally:
        isolation.unreadable(False)
    return run.verdict(target, results, about, time.monotonic() - begin)


class _Run:
    def __init__(self, shape, like, seed, options, explain, capturable):
        self.shape, self.like, self.seed, self.options, self.explain, self.capturable = shape, like, seed, options, explain, capturable
        self.claimed = arithmetic.resolve(like)
        self.told = {}  # outputs of stages that tell which arithmetic was used

    def all(self, candidate, assume, deterministic, keep_going, each):
        try:
            candidate.start()
        except CandidateError as error:
            return [StageResult("load", "its module is loaded", FINDING, cause=str(error))]
        session, results = stages.Session(candidate, self.shape, self.seed, assume), []
        for stage in [*stages.chosen(assume), *([stages.REPEATABLE] if deterministic else [])]:
            begin = time.monotonic()
            if missing := stage.missing(candidate.about):
                results.append(StageResult(stage.name, stage.says, NOT_ASKED, cause=missing))
            else:
                results.append(self._stage(stage, session, begin))
            if each is not None:
                each(results[-1])
            if results[-1].verdict == FINDING and not keep_going:
                break
        return results

    def _stage(self, stage, session, begin):
        found, ratio, cause = [], float("nan"), ""
        try:
            for asked in stage.run(session):
                report, said, cause_of_it = self._judged(stage, asked)
                ratio = max(ratio, report.ratio) if ratio == ratio else report.ratio
                found.append(said)
                cause = cause or cause_of_it
        except CandidateError as error:
            found.append(self._without_results(stage, error.kind))
            cause = cause or (str(error) if error.kind == "not captured" else f"{error.kind}: {error}")
        except (stages.Fault, stages.ContractFault) as fault:
            found.append(FINDING if isinstance(fault, stages.Fault) else CONTRACT)
            cause = cause or str(fault)
        verdict = worst(found)
        if verdict == FINDING and stage.name in stages.CONTRACT:
            verdict = CONTRACT
        return StageResult(stage.name, stage.says, verdict, ratio, cause, round(time.monotonic() - begin, 3))

    def _without_results(self, stage, kind):
        """What is found where a call gave no result, for a reason of that kind."""
        if kind == "not captured":
            return FINDING if self.capturable else NOT_ASKED
        if kind == "refused":
            return CONTRACT if stage.name in stages.CONTRACT else UNDECIDED
        return FINDING

    def _judged(self, stage, asked):
        """(report, verdict, cause) of one call."""
        out, lse = _shaped(asked.results, asked.inputs.shape)
        options = {**self.options, "lse": lse}
        report = asked.inputs.judge(out, like=self.claimed, **options)
        if stage.name in _TELLING:
            self.told[stage.name] = (asked.inputs, out, options)
        if report.passed:
            return report, *((PASS, "") if report.claimed else (UNDECIDED, "no output has a claim"))
        if report.verdict == "undecided":
            return report, UNDECIDED, str(report)
        rung = self._rung(asked.inputs, out, options, report)
        if rung is not None:
            return report, ARITHMETIC, f"it fits {rung.name}: {rung.says}; {_first_line(report)}"
        said = counts.found(asked.inputs, out) if stage.name == "counts" else []
        return report, FINDING, "; ".join(said) or self._explained(asked.inputs, out, options, report)

    def _rung(self, given, out, options, report):
        """The narrowest rung that outputs of one call fit, or None. The widest allows whatever another one does: where the worst
        element's request is outside of it, the others need not be looked at."""
        rungs, request = fitting.ladder(), report.worst["request"]
        lse = options["lse"]
        part = {**options, "lse": None if lse is None else lse[request : request + 1]}
        alone = given.part([request]).judge(out[request : request + 1], like=rungs[-1].declaration, **part)
        if not alone.passed:
            return None
        return next((rung for rung in rungs if given.judge(out, like=rung.declaration, **options).passed), None)

    def _explained(self, given, out, options, report):
        said = _first_line(report)
        if self.explain:
            call = attention_call(out, **given.arguments(), like=self.claimed, **options)
            said = "; ".join([said, *(note.strip() for note in where.notes(call, report))])
        return said

    def verdict(self, target, results, about, seconds):
        verdict, fit = worst([result.verdict for result in results if result.verdict != NOT_ASKED]), None
        if verdict in (PASS, CONTRACT, ARITHMETIC):
            fit = fitting.narrowest(self._by_each)
            if verdict == ARITHMETIC and not fit.name:
                verdict = FINDING  # each stage fits another arithmetic
        rungs = [rung.name for rung in fitting.ladder()]
        return Verdict(
            verdict, target, str(self.shape), self.like if isinstance(self.like, str) else "its declaration", self.seed, results,
            fit.name if fit else "", fit.says if fit else "", rungs.index(fit.name) if fit and fit.name else 0, about, seconds,
        )  # fmt: skip

    def _by_each(self, declaration):
        for name in _TELLING:
            if name in self.told:
                given, out, options = self.told[name]
                yield given.judge(out, like=declaration, **options)


def _first_line(report):
    return str(report).splitlines()[0]


def _shaped(results, shape):
    """(out, lse) as the judge takes them. CandidateError where they are none of this call."""
    out = results["out"]
    if out.dtype == np.int16 and shape.dtype == "bf16":  # torch's bf16 has no type of NumPy's
        out = out.view(np.uint16)
    if out.dtype not in (STORED[shape.dtype], np.dtype(np.float32)):
        raise CandidateError("type", f"out is {out.dtype}, expected {shape.dtype} or fp32")
    heads = (shape.batch, shape.num_qo_heads) if shape.q_len == 1 else (shape.batch, shape.q_len, shape.num_qo_heads)
    lse = results.get("lse")
    return _as("out", out, (*heads, shape.head_dim)), None if lse is None else _as("lse", lse.astype(np.float32), heads)


def _as(name, array, expected):
    """The array in that shape: dimensions of 1, and heads and dims in one, may stand in other places."""
    squeezed = [n for n in array.shape if n != 1]
    joined = [*expected[:-2], expected[-2] * expected[-1]]
    if squeezed not in ([n for n in expected if n != 1], [n for n in joined if n != 1]):
        raise CandidateError("type", f"{name} is {list(array.shape)}, expected {list(expected)}")
    return array.reshape(expected)
