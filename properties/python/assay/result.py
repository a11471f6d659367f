# SPDX-License-Identifier: Apache-2.0
"""What a check found."""
import dataclasses
import typing


class FindingsError(AssertionError):
    """The kernel fails a property; the text has each one's message and its smallest case."""


class UnprovenError(RuntimeError):
    """Nothing was found, but the check is no proof: undecided, interrupted, or classes without a case."""


def _first_lines(text, most):
    lines = text.rstrip().splitlines()
    return lines[:most] + [f"({len(lines) - most} lines more in detail)"] * (len(lines) > most)


@dataclasses.dataclass(frozen=True)
class Finding:
    """A property that does not hold."""

    kernel: str
    property: str
    message: str
    detail: str = ""  #: the element, its value, and what it may be
    case: str = ""  #: the smallest case that fails, as the text of a .case file
    file: str = ""  #: which holds it
    reproduce: str = ""  #: the command that runs it again
    failing_cases: int = 1
    cases: int = 1  #: that were decided
    also_seen_by: typing.Tuple[str, ...] = ()  #: other properties that fail for the same mistake

    def __str__(self) -> str:
        lines = [f"{self.kernel} {self.property}: {self.message}"]
        lines += _first_lines(self.detail, 3)
        if self.case:
            lines += [f"{self.failing_cases} of {self.cases} cases fail; the smallest:", self.case.rstrip()]
        lines += [f"also seen by: {', '.join(self.also_seen_by)}"] if self.also_seen_by else []
        lines += [f"reproduce: {self.reproduce}"] if self.reproduce else []
        return "\n".join(lines)


class Result:
    """exit_code, report (the program's --json), text (what it printed) and findings (a list of Finding, one for each mistake)."""

    def __init__(self, exit_code: int, report: typing.Dict[str, typing.Any], text: str) -> None:
        self.exit_code, self.report, self.text = exit_code, report, text
        known = {field.name for field in dataclasses.fields(Finding)}
        self.findings: typing.List[Finding] = []
        for group in report["groups"]:
            sharpest = report["found"][group["found"]]
            others = tuple(name for name in group["properties"] if name != sharpest["property"])
            self.findings.append(Finding(**{k: v for k, v in sharpest.items() if k in known}, also_seen_by=others))
        self.findings += [
            Finding(kept["kernel"], kept["property"], kept["message"], file=kept["file"])
            for kept in report["replayed"]["results"]
            if kept["verdict"] == "FAIL" and not kept.get("same_as")
        ]

    @property
    def passed(self) -> bool:
        return self.exit_code == 0

    @property
    def cases(self) -> int:
        """How many were decided."""
        return typing.cast(int, self.report["cases"])

    def raise_for_findings(self) -> "Result":
        """Returns the result of a pass; raises FindingsError, or UnprovenError with the report otherwise."""
        if self.findings or self.exit_code == 1:
            raise FindingsError("\n\n".join(map(str, self.findings)))
        if not self.passed:
            raise UnprovenError(self.text)
        return self

    def __repr__(self) -> str:
        return f"<assay.Result: {'pass' if self.passed else 'FAIL'}, {self.cases} cases, {len(self.findings)} findings>"
