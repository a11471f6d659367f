# SPDX-License-Identifier: Apache-2.0
"""What is said about a candidate."""
import dataclasses
import sys

PASS, CONTRACT, ARITHMETIC, FINDING, UNDECIDED = "pass", "contract", "arithmetic", "finding", "undecided"
NOT_ASKED = "n/a"  #: of a stage that shows nothing here, for the reason that is its cause
#: From the best to the worst: a candidate's verdict is the worst of its stages.
_ORDER = (PASS, NOT_ASKED, CONTRACT, UNDECIDED, ARITHMETIC, FINDING)
EXIT_CODES = {PASS: 0, CONTRACT: 1, ARITHMETIC: 1, FINDING: 1, UNDECIDED: 4}
_OF_A_RUNG = 0.02  #: of the score, for each rounding that the arithmetic has


@dataclasses.dataclass(frozen=True)
class StageResult:
    stage: str
    says: str  #: what the stage is
    verdict: str
    ratio: float = float("nan")  #: largest |error| / allowed of its outputs
    cause: str = ""
    seconds: float = 0.0

    def to_json(self):
        """JSON has no nan and no infinity: null, and the largest double."""
        made = dataclasses.asdict(self)
        return {**made, "ratio": None if self.ratio != self.ratio else min(float(self.ratio), sys.float_info.max)}

    def __str__(self):
        ratio = f" {self.ratio:.3g} of what is allowed" if self.ratio == self.ratio else ""
        return f"{self.stage}: {self.verdict}{ratio}" + (f": {self.cause}" if self.cause else "")


def worst(verdicts):
    return max(verdicts, key=_ORDER.index, default=UNDECIDED)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What judge_callable says.

    verdict     pass; contract: right, but for what an interface may exclude (`assume`); arithmetic: not the arithmetic that is
                claimed, but another one; finding; undecided, which is no pass
    arithmetic  the narrowest named arithmetic that all outputs fit, "" where none does or the candidate was wrong before
    score       0 unless pass or contract; else 1, less 0.02 for each rounding in the arithmetic
    """

    verdict: str
    target: str
    shape: str
    like: str
    seed: int
    stages: list
    arithmetic: str
    arithmetic_says: str
    rungs: int
    about: dict  #: tensors, device and isolation of the candidate's process
    seconds: float

    @property
    def passed(self):
        return self.verdict == PASS

    def __bool__(self):
        return self.passed

    @property
    def exit_code(self):
        return EXIT_CODES[self.verdict]

    @property
    def score(self):
        return max(0.0, 1 - _OF_A_RUNG * self.rungs) if self.verdict in (PASS, CONTRACT) else 0.0

    def failed(self):
        return [stage for stage in self.stages if stage.verdict not in (PASS, NOT_ASKED)]

    def not_asked(self):
        """Names of stages by the reason why they were not asked."""
        reasons = {}
        for stage in self.stages:
            if stage.verdict == NOT_ASKED:
                reasons.setdefault(stage.cause, []).append(stage.stage)
        return reasons

    def to_json(self):
        return {
            "verdict": self.verdict, "target": self.target, "shape": self.shape, "like": self.like, "seed": self.seed, "score": round(self.score, 4),
            "arithmetic": self.arithmetic, "arithmetic_says": self.arithmetic_says, **{name: self.about.get(name, "") for name in ("tensors", "device", "isolation")},
            "seconds": round(self.seconds, 3), "stages": [stage.to_json() for stage in self.stages],
        }  # fmt: skip

    def __str__(self):
        lines = [f"{self.verdict}: {self.target}, {self.shape}"]
        lines += [f"  {stage}" for stage in self.failed()]
        if self.arithmetic:
            lines.append(f"  its outputs fit {self.arithmetic}: {self.arithmetic_says}")
        ran = sum(stage.verdict == PASS for stage in self.stages)
        lines += [f"  {NOT_ASKED}: {', '.join(names)}: {reason}" for reason, names in self.not_asked().items()]
        asked = sum(stage.verdict != NOT_ASKED for stage in self.stages)
        lines.append(f"  {ran} of {asked} stages pass, like {self.like}, seed {self.seed}, {self.about.get('device', 'no device')}, "
                     f"isolation: {self.about.get('isolation', 'none')}, {self.seconds:.1f} s")  # fmt: skip
        return "\n".join(lines)
