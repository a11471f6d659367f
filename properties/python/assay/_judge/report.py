# SPDX-License-Identifier: Apache-2.0
"""What the judge says of a call."""
import dataclasses
import math
import os
import shlex
import typing

_WORTH = {"scaling": "O off by {:.2g} %", "sm_scale": "sm_scale off by {:.2g} %", "lost_weight": "a lost key with {:.2g} % of the weights"}
LSE, ROW = -1, -2  #: as the dim of an element: the LSE; O of a whole row


def reproduce(path):
    """The line that judges a file again, as a shell takes it."""
    return f"  reproduce: python3 -m assay judge {shlex.quote(str(path))}"


class AttentionError(AssertionError):
    """Outputs that no right kernel of the named arithmetic writes. `report` has the numbers, `path` the row concerned,
    `notes` lines about what the elements that fail have in common."""

    __module__ = "assay"  # the name that users know

    def __init__(self, report: "JudgeReport", path: typing.Optional["os.PathLike[str]"] = None, notes: typing.Iterable[str] = ()) -> None:
        super().__init__("\n".join([str(report), *notes, *([reproduce(path)] if path else [])]))
        self.report, self.path, self.notes = report, path, list(notes)


@dataclasses.dataclass(frozen=True)
class JudgeReport:
    """What judge says of a call."""

    verdict: str  #: inside, outside or undecided
    like: str  #: the arithmetic that was claimed
    worst: typing.Dict[str, typing.Any]  #: row, request, query, head, dim (LSE, ROW), got, exact, radius, allowed, ratio, budget, reason
    ratio: float  #: largest |error| / allowed of the outputs; below 1 where all are inside; nan: nothing was judged
    ratio_lse: float  #: the same of the LSE; nan: none was given, or none is judged
    budget: float  #: median of allowed / |O|: how sharp the claim is
    elements: int  #: outputs and LSEs looked at
    claimed: int  #: of those, the ones that anything is said about (inputs finite, fp32 not left)
    findings: int  #: elements that are not inside
    rows: int  #: query rows of the call
    rows_judged: int
    order: str = ""  #: the order of keys that explains the outputs, in words; "no known order fits"; "": none was looked for
    unexplained: int = 0  #: (row, head) that no known order explains, while the other heads of their row have a known order: doubts, no findings
    #: Of judge: the least mistakes that a pass excludes, each alone: O and sm_scale off by a factor 1 + scaling, 1 + sm_scale;
    #: and half of the time a lost key with the share lost_weight of a row's weights. Not known of tensors on a GPU.
    sharpness: typing.Dict[str, float] = dataclasses.field(default_factory=dict, compare=False)
    ratio_row: float = math.nan  #: |error| / allowed of whole rows, each along its error; nan: none was judged as one

    @property
    def passed(self) -> bool:
        return self.verdict == "inside"

    def __bool__(self) -> bool:
        return self.passed

    def raise_for_findings(self) -> "JudgeReport":
        """AttentionError unless every element is inside. Returns the report."""
        if not self.passed:
            raise AttentionError(self)
        return self

    @property
    def ratios(self) -> str:
        """The ratios in words."""
        rows = "" if math.isnan(self.ratio_row) else f"{self.ratio_row:.3g} of whole rows, "
        lse = "no LSE" if math.isnan(self.ratio_lse) else f"{self.ratio_lse:.3g} of the LSE"
        return f"{self.ratio:.3g} of O, {rows}{lse}"

    def __str__(self) -> str:
        w = self.worst
        place = f"row {w['row']}"
        if "request" in w:
            place += f" (request {w['request']} query {w['query']})"
        place += f" head {w['head']} " + {LSE: "the LSE", ROW: "along its error"}.get(w["dim"], f"dim {w['dim']}")
        lines = []
        if not self.passed:
            bounded = math.isfinite(w["allowed"]) and w["allowed"] > 0  # else certain bits are due, and the reason says which
            exact = f", exact {w['exact']:.12g} +- {w['radius']:.2g}" if bounded else ""
            lines.append(f"{self.verdict}: {place} is {w['got']:.9g}{exact}: {w['reason']}")
            if bounded:
                lines.append(f"  off by {abs(w['got'] - w['exact']):.3g}, allowed is {w['allowed']:.3g} ({w['ratio']:.3g} times that)")
            if w["dim"] == ROW:
                lines.append(f"  elements alone: {self.ratio:.3g} times what is allowed, at most")
            terms = {term: size for term, size in w["budget"].items() if size > 0}
            if terms:
                ordered = sorted(terms.items(), key=lambda item: -item[1])
                lines.append("  allowed for " + ", ".join(f"{term} {size:.2g}" for term, size in ordered))
            lines.append(f"  {self.findings} of {self.claimed} elements {'or rows ' if w['dim'] == ROW else ''}are not inside")
        else:
            lines.append(f"inside: worst |error| / allowed is {self.ratios}")
            worth = [words.format(100 * self.sharpness[name]) for name, words in _WORTH.items() if name in self.sharpness]
            if worth:
                lines.append("  it would have shown " + ", ".join(worth))
        lines.append(
            f"  {self.claimed} of {self.elements} elements judged, {self.rows_judged} of {self.rows} rows, "
            f"like {self.like}, allowed is {self.budget:.1e} of |O| in the median"
        )
        if self.order:
            lines.append(f"  order of keys: {self.order}")
        return "\n".join(lines)
