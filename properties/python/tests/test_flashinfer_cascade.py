# SPDX-License-Identifier: Apache-2.0
"""Dumps of FlashInfer's cascades: each merge is judged with what the next one is given."""
import numpy as np
import pytest
from assay import Declaration
from assay._engines import dump_judge
from flashinfer_dump import Dump, merged
from test_flashinfer_dump import CASCADE, PREFILL, cascade, outcomes
from test_judge import library  # noqa: F401  (a fixture)


def test_a_cascade_is_its_levels_and_their_merge():
    dump = Dump("dump")
    cascade(dump)
    assert outcomes() == {f"{PREFILL}.run": ["inside"] * 2, f"{CASCADE}.run": ["inside"]}


@pytest.mark.parametrize("levels", [3, 5])
def test_of_more_levels_each_merge_is_judged(levels):
    cascade(Dump("dump"), levels=levels)
    assert outcomes() == {f"{PREFILL}.run": ["inside"] * levels, f"{CASCADE}.run": ["inside"] * (levels - 1)}


def wrong_at(wrong_step, change):
    """A merge that is right but for one step, where `change` makes it wrong."""

    def merge(step, a, b):
        if step != wrong_step:
            return merged(*map(np.stack, zip(a, b)))
        return change(a, b)

    return merge


def one_dropped(a, b):
    return a


def lse_of_one(a, b):
    return merged(*map(np.stack, zip(a, b)))[0], a[1]


def merged_twice(a, b):
    return merged(np.stack([a[0], b[0], b[0]]), np.stack([a[1], b[1], b[1]]))


@pytest.mark.parametrize("change", [one_dropped, lse_of_one, merged_twice])
@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_wrong_merge_between_levels_is_found_where_it_is(change, step):
    cascade(Dump("dump"), levels=4, merge=wrong_at(step, change))
    verdicts = outcomes()[f"{CASCADE}.run"]
    # The last merge writes no LSE.
    expected = ["inside"] * 3 if (change, step) == (lse_of_one, 2) else ["inside"] * step + ["outside"] + ["inside"] * (2 - step)
    assert verdicts == expected


def test_a_cascade_without_its_merges_is_named():
    cascade(Dump("dump"), levels=3, left_out=[1])
    assert outcomes()[f"{CASCADE}.run"] == ["3 levels and 1 calls of merge_state_in_place are there, which have the states between"]


@pytest.mark.parametrize("levels", [2, 4])
def test_a_claim_of_the_caller_holds_for_merges_too(levels):
    cascade(Dump("dump"), levels=levels)

    def budgets(**options):
        return [outcome.budget for _, name, outcome, _ in dump_judge.judged("dump", **options) if name == f"{CASCADE}.run"]

    coarse = Declaration(exponential="base2", exp2_rel_error=2.0**-6, log2_abs_error=2.0**-6, rcp_rel_error=2.0**-6)
    own, wide = budgets(), budgets(like=coarse)
    assert len(own) == levels - 1 and all(2 * a < b for a, b in zip(own, wide, strict=True)), (own, wide)
