# SPDX-License-Identifier: Apache-2.0
"""The arithmetic that a kernel declares: assay_arithmetic of kernels/abi/plugin.h, field for field."""
import dataclasses
import functools
import json
import math
import pathlib
import typing

from ._abi import ABI_MAJOR, ABI_MINOR, ACCUMULATOR, EXPONENTIAL, FORMAT

ABI = (ABI_MAJOR, ABI_MINOR)
WORDS = {
    "p_format": FORMAT, "sum_format": FORMAT, "partial_format": FORMAT, "score_format": FORMAT, "kv_format": FORMAT,
    "q_format": FORMAT, "product_format": FORMAT, "qk_sum_format": FORMAT, "output_format": FORMAT,
    "exponential": EXPONENTIAL, "accumulator": ACCUMULATOR,
}  # fmt: skip
FOLDER = pathlib.Path(__file__).with_name("arithmetics")
#: Names that say which kernel is meant, and why there is no arithmetic for it.
REFUSED = {
    "cudnn": "its source is not public and its documentation does not say how it rounds: claim 'flash', which fits what is known of "
    "flash kernels, or a Declaration",
}


def names() -> typing.List[str]:
    """What `like` may be."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


@functools.cache
def entry_of(name):
    """What the file of a name says."""
    if name in REFUSED:
        raise ValueError(f"assay: like is {name!r}: {REFUSED[name]}")
    if name not in names():
        raise ValueError(f"assay: like is {name!r}, expected one of {', '.join(names())}")
    return json.loads((FOLDER / f"{name}.json").read_text())


@dataclasses.dataclass(frozen=True)
class Declaration:
    """Upper limits of what each step of a kernel may be off by; the bounds follow from them alone.

    The default of every field is 0, or the first word: exact, fp32, natural base, no splits. Errors are
    0 to below 1. The program refuses a field outside its range by its name (DECLARATION.md has the ranges).
    """

    mma_block: int = 0  #: products summed per block-FMA step; 0: fp32 multiply-adds, in any order
    mma_fraction_bits: int = 0  #: of a block: addends are cut at 2^(largest exponent - this)
    p_format: str = "fp32"  #: softmax weights meet V rounded to it; "call": the dtype of the call
    sum_format: str = "fp32"  #: of the row sum: fp32, fp16 or bf16; "call": fp32, of the weights as they meet V
    exponential: str = "natural"  #: or base2: of logits scaled by log2 e, exact at integers
    sum_depth: int = 0  #: additions on the longest path of a row sum within a tile
    q_abs_error: float = 0.0  #: of an element of q as it meets k, per largest |q| of its row
    exp2_rel_error: float = 0.0  #: of the exponential, relative
    log2_abs_error: float = 0.0  #: of the logarithm, per (1 + |log2|)
    rcp_rel_error: float = 0.0  #: of the division by the row sum, relative
    tanh_abs_error: float = 0.0  #: of the tanh of the softcap, absolute
    tile_tokens: int = 0  #: keys between two updates of the running maximum; 0 counts as 1
    max_parallel_states: int = 0  #: partial softmaxes merged before a result or split is stored; 0: 1
    max_splits: int = 0  #: parts of a row that become a normalised (O, LSE) and are merged; 0: none
    merge_stages: int = 0  #: such merges that a part passes through; 0 only without splits
    partial_format: str = "fp32"  #: O of a part is stored in it before it is merged; "call": the dtype of O
    stored_merges: int = 0  #: how many of its merges read it so; 0 with fp32
    score_format: str = "fp32"  #: a score is rounded to it once; "call": as for p_format
    p_scale_log2: int = 0  #: weights are multiplied by 2^this before they are rounded to p_format
    rounded_before_scale: int = 0  #: 1: O is rounded to its dtype, then meets v_scale, and is rounded again
    accumulator: str = "fp32"  #: of both products and the row sum; "fp64" where mma_block is 0
    kv_format: str = "fp32"  #: fp8 K and V times their scales, and K and V of fp32, are rounded to it; "call": the dtype of q
    q_format: str = "fp32"  #: q, as it is or times what scales its scores, is rounded to it; "call": as for p_format
    product_format: str = "fp32"  #: each product of q and k is rounded to it, then added in fp32
    qk_sum_format: str = "fp32"  #: each such product and each partial sum of a score is rounded to it
    output_format: str = "fp32"  #: O is rounded to it before it is rounded to its dtype; "call": the dtype of q

    @staticmethod
    def like(name: str) -> "Declaration":
        """The declaration of a published kernel, by its name in assay.arithmetic.names(): a start for one's own.

        dataclasses.replace changes fields of it; tile_tokens, sum_depth and max_splits are the ones that usually differ.
        """
        return Declaration(**{field: entry["value"] for field, entry in entry_of(name)["fields"].items()})

    def to_json(self) -> typing.Dict[str, typing.Any]:
        """As numbers of the C header. Values that JSON lacks are words, which the program refuses."""
        out = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in WORDS:
                words = WORDS[field.name]
                if value not in words:
                    raise ValueError(f"Declaration: {field.name} is {value!r}, expected one of {', '.join(words)}")
                value = words[value]
            elif field.type is float:
                if isinstance(value, bool) or not isinstance(value, (int, float)):
                    raise TypeError(f"Declaration: {field.name} is {value!r}, expected a number")
                value = float(value)
                value = value if math.isfinite(value) else str(value)
            elif isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"Declaration: {field.name} is {value!r}, expected an integer")
            out[field.name] = value
        return out
