# SPDX-License-Identifier: Apache-2.0
"""The narrowest named arithmetic that outputs fit: a ladder of declarations, each rung with one rounding more."""
import dataclasses

from .. import arithmetic


@dataclasses.dataclass(frozen=True)
class Rung:
    name: str
    says: str
    declaration: object


def ladder():
    """Rungs, the narrowest first."""
    flash = arithmetic.like(arithmetic.WIDEST)
    fields = dict(p_format="fp32", sum_format="fp32", partial_format="fp32", stored_merges=0, kv_format="fp32", rounded_before_scale=0)
    steps = (
        ("fp32", "everything is added and kept in fp32", dict(mma_block=0, mma_fraction_bits=0, sum_depth=4096)),
        ("fp32_weights", "products of 16 bits on tensor cores, all else in fp32", dict(mma_block=8, mma_fraction_bits=24)),
        ("fp16_weights", "weights are rounded to fp16", dict(p_format="fp16")),
        ("16_bit_weights", "weights, those of the row sum, or outputs of splits are rounded to the type of q",
         dict(p_format="call", sum_format="call", partial_format="call", stored_merges=1)),
        ("output_through_fp16", "O is rounded to fp16 before its own type", dict(output_format="fp16")),
        # Coarser ones, such as sums of products in 16 bits, allow more than |O|, and so explain nothing.
        ("16_bit_scores", "scores, their products, or q once it was scaled are rounded to 16 bits or tf32",
         dict(score_format="call", q_format="bf16")),
    )  # fmt: skip
    rungs = []
    for name, says, more in steps:
        fields.update(more)
        rungs.append(Rung(name, says, dataclasses.replace(flash, **fields)))
    return rungs


@dataclasses.dataclass(frozen=True)
class Fit:
    """What `fit` says."""

    name: str  #: of the arithmetic; "" where none fits
    says: str
    declaration: object  #: a Declaration, or None
    ratio: float  #: largest |error| / allowed under it
    ratio_before: float  #: the same of the rung before it, which does not fit; nan where there is none

    def __str__(self):
        return f"{self.name}: {self.says}" if self.name else "no named arithmetic"


def narrowest(judged):
    """The Fit of calls: `judged(declaration)` yields their JudgeReports, and ends early where one is outside."""
    before = float("nan")
    for rung in ladder():
        worst, inside = 0.0, True
        for report in judged(rung.declaration):
            worst, inside = max(worst, report.ratio), inside and report.passed
            if not inside:
                break
        if inside:
            return Fit(rung.name, rung.says, rung.declaration, worst, before)
        before = worst
    return Fit("", "", None, before, before)


def fit(out, q, kv_cache, **options):
    """The narrowest named arithmetic that outputs fit: a Fit. Arguments as of assay.judge, without `like`.

    A wider rung is no worse by itself: it says what the kernel rounds. Ragged inputs tell most rungs apart, for in short rows few roundings cancel.
    """
    from ..judging import judge

    if "like" in options:
        raise TypeError("assay: fit has no argument like: it finds the arithmetic")
    return narrowest(lambda declaration: [judge(out, q, kv_cache, like=declaration, **options)])
