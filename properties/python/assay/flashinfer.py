# SPDX-License-Identifier: Apache-2.0
"""Judges calls of FlashInfer in a running process: assay.flashinfer.install(every=100).

An output is never changed, and what goes wrong here is counted and logged, not raised."""
import collections
import functools
import importlib
import inspect
import logging
import typing

from ._engines.flashinfer_calls import FUNCTIONS, WRAPPERS, Calls, NotJudged, Setup
from ._judge import record
from ._judge.report import reproduce
from .declaration import Declaration

logger = logging.getLogger("assay.flashinfer")
MOST_FILES = 20
_MODULES = ("flashinfer.decode", "flashinfer.prefill", "flashinfer.cascade")


class Watch:
    """What was seen since install()."""

    def __init__(self, every, out, like, max_rows):
        self.every, self.out = every, out
        self.calls, self.judged, self.findings, self.worst = 0, 0, 0, 0.0
        self.not_judged, self.errors = collections.Counter(), collections.Counter()
        self._joined, self._undo, self._running = Calls(like, max_rows), [], []

    def __str__(self) -> str:
        return (
            f"{self.calls} calls, {self.judged} judged, {self.findings} findings, worst |error| / allowed {self.worst:.3g}, "
            f"not judged {dict(self.not_judged)}, errors {dict(self.errors)}"
        )

    def uninstall(self) -> None:
        for owner, name, original in reversed(self._undo):
            setattr(owner, name, original)
        self._undo.clear()

    def wrap(self, owner, name, label):
        original = getattr(owner, name, None)
        if original is None or getattr(original, "assay_watch", None) is not None:
            return
        signature = inspect.signature(original)

        @functools.wraps(original)
        def watched(*args, **kwargs):
            return self._call(original, signature, label, args, kwargs)

        watched.assay_watch = self
        self._undo.append((owner, name, original))
        setattr(owner, name, watched)

    def _call(self, original, signature, label, args, kwargs):
        before = self._before(signature, label, args, kwargs)
        self._running.append(None if before is None else [])
        try:
            result = original(*args, **kwargs)
        finally:
            inside = self._running.pop()
        if before is not None:
            self._after(label, *before, result, inside)
        return result

    def _before(self, signature, label, args, kwargs):
        """(self_id, arguments, extra, overwritten) of a call that is looked at; inputs that it may overwrite are copied."""
        try:
            setup = label.rpartition(".")[2] in ("__init__", "plan", "begin_forward")
            if not setup and self._running:
                if self._running[-1] is None:
                    return None  # what a call does inside is looked at with it
            elif not setup:
                self.calls += 1
                if self.calls % self.every:
                    return None
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            arguments = dict(bound.arguments)
            owner = arguments.pop("self", None)
            extra = arguments.pop("args", arguments.pop("deprecated_positional_args", ()))
            overwritten = [arguments["v"], arguments["s"]] if label == "merge_state_in_place" else []
            # A plan's tensors may be written again before the run.
            for name, value in arguments.items():
                if name in ("v", "s", "q") or setup and hasattr(value, "shape"):
                    arguments[name] = _copy(value)
            return id(owner), arguments, extra, overwritten
        except Exception as error:
            self._failed(error)
            return None

    def _after(self, label, self_id, arguments, extra, overwritten, result, inside):
        try:
            results = overwritten or [value for value in (result if isinstance(result, tuple) else (result,)) if hasattr(value, "shape")]
            if self._running and self._running[-1] is not None:
                self._running[-1].append((label, arguments, [_copy(value) for value in results]))
            for call in self._joined.calls_of(label, self_id, arguments, extra, results, inside):
                self._judge(label, call)
        except Setup:
            return
        except NotJudged as error:
            self.not_judged[f"{label}: {error}"] += 1
        except Exception as error:
            self._failed(error)

    def _judge(self, label, call):
        report = call.judge()
        self.judged += 1
        self.worst = max(self.worst, report.ratio) if report.ratio == report.ratio else self.worst
        if not report.passed:
            self.findings += 1
            if self.findings <= MOST_FILES:
                path = record.keep(call, report, self.out)
                logger.error("assay: %s: %s\n%s", label, report, reproduce(path))

    def _failed(self, error):
        self.errors[f"{type(error).__name__}: {error}"[:200]] += 1
        if sum(self.errors.values()) <= 10:
            logger.warning("assay: a call was not judged: %s: %s", type(error).__name__, error)


def _copy(value):
    if hasattr(value, "clone"):
        return value.clone()
    return value.copy() if hasattr(value, "shape") and hasattr(value, "copy") else value


def install(every: int = 100, out: str = "assay_flashinfer", like: typing.Union[str, Declaration, None] = None, max_rows: int = 8) -> Watch:
    """Wraps decode, paged and ragged prefill, cascade and merges of FlashInfer; one call in `every` is judged.

    out       folder for what fails, one .npz a call (20 at most)
    like      the arithmetic that is claimed, in the place of what a wrapper's backend says
    max_rows  rows of a call that are judged, 0: all

    Wrappers that were made or planned before are not known. Returns a Watch with counters and uninstall().
    """
    watch = Watch(every, out, like, max_rows)
    for module in map(importlib.import_module, _MODULES):
        for name in WRAPPERS:
            owner = vars(module).get(name)
            if owner is not None and owner.__module__ == module.__name__:
                for method in ("__init__", "plan", "begin_forward", "run"):
                    if method in vars(owner):
                        watch.wrap(owner, method, f"{name}.{method}")
    for module in map(importlib.import_module, ("flashinfer.cascade", "flashinfer")):
        for name in FUNCTIONS:
            watch.wrap(module, name, name)
    return watch
