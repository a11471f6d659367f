# SPDX-License-Identifier: Apache-2.0
"""Judges calls of attention inside a running vLLM: the entry point `assay` of vllm.general_plugins.

ASSAY_VLLM_EVERY=N  one call in N of every layer is judged; not set: nothing is wrapped
ASSAY_VLLM_OUT      folder for what fails (assay_vllm)
ASSAY_VLLM_ROWS     rows of a call that are judged (8), 0: all; so many of its requests are copied at most

An output is never changed, and nothing that goes wrong here reaches the engine: it is counted and logged."""
import atexit
import collections
import dataclasses
import logging
import os

from .. import judging
from .._judge import record
from .._judge.report import reproduce
from .vllm_calls import BACKENDS, NotJudged

logger = logging.getLogger("vllm.assay")
MOST_FILES = 20  #: kept by one process
MOST_LINES = 10  #: of a kind in the log
BETWEEN_SUMMARIES = 1000  #: judged calls
_ARGUMENTS = ("layer", "query", "key", "value", "kv_cache", "attn_metadata", "output")


@dataclasses.dataclass
class Counters:
    """What has been seen by this process."""

    calls: int = 0  #: of wrapped layers, with metadata
    judged: int = 0
    findings: int = 0  #: calls that are not inside
    worst: float = 0.0  #: largest |error| / allowed
    not_judged: collections.Counter = dataclasses.field(default_factory=collections.Counter)  #: by reason
    errors: collections.Counter = dataclasses.field(default_factory=collections.Counter)  #: of this code, by text

    def __str__(self):
        left = "".join(f"; {count} not judged: {why}" for why, count in self.not_judged.items())
        left += "".join(f"; {count} errors: {text}" for text, count in self.errors.items())
        return f"{self.calls} calls, {self.judged} judged, {self.findings} findings, worst |error| / allowed {self.worst:.3g}{left}"


class Shadow:
    """Looks at one call in `every` of each layer."""

    def __init__(self, every, out="assay_vllm", max_rows=8):
        self.every, self.out, self.max_rows = every, out, max_rows
        self.counters, self.files = Counters(), 0

    def attach(self, attention):
        """Wraps the backend of one attention layer."""
        name, impl = attention.attn_backend.get_name(), attention.impl
        forward, seen = impl.forward, 0

        def shadowed(*args, **kwargs):
            nonlocal seen
            given, query = {}, None
            try:
                given = {**dict(zip(_ARGUMENTS, args)), **kwargs}
                if given.get("attn_metadata") is not None:
                    self.counters.calls += 1
                    seen += 1
                    if seen % self.every == 0:
                        # Some backends write q again before they end.
                        query = given["query"].clone() if hasattr(given["query"], "clone") else given["query"].copy()
            except Exception as error:
                self._failed(error)
            result = forward(*args, **kwargs)
            if query is not None:
                self._look(name, impl, given, query, result)
            return result

        impl.forward = shadowed

    def _look(self, name, impl, given, query, result):
        try:
            name = getattr(impl, "assay_cache", name)
            if name not in BACKENDS:
                raise NotJudged(f"backend {name} is not known")
            output = given.get("output")
            arguments = BACKENDS[name](
                impl, given["layer"], query, given["kv_cache"], result if output is None else output, given["attn_metadata"], self.max_rows
            )
            self._judge(judging.attention_call(**arguments, max_rows=self.max_rows))
        except NotJudged as error:
            self.counters.not_judged[str(error)] += 1
        except Exception as error:
            self._failed(error)

    def _judge(self, call):
        report = call.judge()
        counters = self.counters
        counters.judged += 1
        if report.ratio == report.ratio:
            counters.worst = max(counters.worst, report.ratio)
        if counters.judged == 1:
            logger.info("assay: the first judged call is %s", report)
        if counters.judged % BETWEEN_SUMMARIES == 0:
            self.summary()
        if report.passed:
            return
        counters.findings += 1
        if self.files < MOST_FILES:
            self.files += 1
            path = record.keep(call, report, self.out)
            logger.error("assay: %s\n%s", report, reproduce(path))
        elif counters.findings <= MOST_FILES + MOST_LINES:
            logger.error("assay: %s", report)

    def _failed(self, error):
        try:
            text = f"{type(error).__name__}: {error}"[:200]
            self.counters.errors[text] += 1
            if sum(self.counters.errors.values()) <= MOST_LINES:
                logger.warning("assay: a call was not judged: %s", text)
        except Exception:
            return

    def summary(self):
        if self.counters.calls:
            logger.info("assay: %s", self.counters)


def install(attention_class, shadow):
    """Every layer of the class that is made from now on is wrapped. Once for a class."""
    original = attention_class.__init__
    if getattr(original, "assay_shadow", None) is not None:
        return original.assay_shadow

    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        try:
            shadow.attach(self)
        except Exception as error:
            shadow._failed(error)

    __init__.assay_shadow = shadow
    attention_class.__init__ = __init__
    return shadow


def register():
    """The entry point: vLLM calls it in every process of an engine."""
    try:
        every = int(os.environ.get("ASSAY_VLLM_EVERY", "0"))
        if every < 1:
            return
        from vllm.model_executor.layers.attention import Attention

        shadow = Shadow(every, os.environ.get("ASSAY_VLLM_OUT", "assay_vllm"), int(os.environ.get("ASSAY_VLLM_ROWS", "8")))
        if install(Attention, shadow) is shadow:
            atexit.register(shadow.summary)
            logger.info("assay: one attention call in %d is judged", every)
    except Exception as error:
        logger.warning("assay: nothing is judged: %s", error)
