# SPDX-License-Identifier: Apache-2.0
"""A call that can be judged: its tensors, numbers and claimed arithmetic, whoever put them together."""
import dataclasses
import math
import re
import sys

import numpy as np

from .. import _abi
from . import library as lib
from .inputs import host
from .report import JudgeReport

ATTENTION, MERGE = "attention", "merge"
#: What libassay_judge_cuda takes on a GPU, all of it or none.
_ON_GPU = {ATTENTION: ("out", "q", "k", "v", "lse"), MERGE: ("out", "lse", "o_in", "lse_in")}
_ENTRIES = {ATTENTION: ("assay_judge_attention", _abi.AttentionParams), MERGE: ("assay_judge_merge", _abi.MergeParams)}
_VERDICTS = {number: name for name, number in _abi.VERDICT.items()}


def _array(tensor):
    if tensor is None:
        return _abi.Array()
    if len(tensor.shape) > 4:
        raise ValueError(f"assay: {tensor.name} has {len(tensor.shape)} dimensions, expected at most 4")
    pad = (0,) * (4 - len(tensor.shape))
    return _abi.Array(tensor.data, lib.DTYPES[tensor.dtype], len(tensor.shape), tensor.shape + pad, tensor.stride + pad)


def _stream(device):
    return sys.modules["torch"].cuda.current_stream(device).cuda_stream


@dataclasses.dataclass(frozen=True)
class Call:
    """Attention or a merge, in the words of assay_judge.h."""

    kind: str  #: ATTENTION or MERGE
    tensors: dict  #: Tensor or None, by the name of the C field
    scalars: dict  #: numbers, by the name of the C field
    like: str  #: how the arithmetic is called in reports
    arithmetic: dict  #: the fields of assay_arithmetic

    def given(self):
        return {name: tensor for name, tensor in self.tensors.items() if tensor is not None}

    def judge(self):
        """The JudgeReport; ValueError names what does not fit."""
        try:
            report = self._report()
        except ValueError as error:
            raise ValueError(self._as_given(str(error))) from None
        return JudgeReport(
            verdict=_VERDICTS[report.verdict], like=self.like, worst=self._worst(report.worst, report.rows),
            ratio=report.worst_ratio, ratio_lse=report.worst_ratio_lse, ratio_row=report.worst_ratio_row, budget=report.median_budget,
            elements=report.elements, claimed=report.claimed, findings=report.findings, rows=report.rows,
            rows_judged=report.rows_judged, order=report.order.words.decode(), unexplained=report.order.doubts,
        )  # fmt: skip

    def _report(self):
        """What the library says."""
        entry, struct = _ENTRIES[self.kind]
        there = self._device()
        tensors = {name: tensor if there is not None or tensor is None else tensor.on_host() for name, tensor in self.tensors.items()}
        params = self._params(struct, tensors)
        return lib.call(entry, params) if there is None else lib.call_on_gpu(entry, params, _stream(there))

    def _params(self, struct, tensors):
        arrays = {name: _array(tensor) for name, tensor in tensors.items()}
        return struct(arithmetic=_abi.Arithmetic(**self.arithmetic), **self.scalars, **arrays)

    def sharpness(self):
        """What a pass is worth, as JudgeReport.sharpness has it; {} where it is not known: merges, tensors on a GPU."""
        if self.kind != ATTENTION or self._device() is not None:
            return {}
        tensors = {name: None if tensor is None else tensor.on_host() for name, tensor in self.tensors.items()}
        said = lib.sharpness(self._params(_ENTRIES[self.kind][1], tensors))
        sizes = {name: getattr(said, name) for name in ("scaling", "sm_scale", "lost_weight")}
        return {name: size for name, size in sizes.items() if math.isfinite(size)}

    def _as_given(self, text):
        """A message about C fields with the names that the caller has for them."""
        for name, tensor in self.given().items():
            text = re.sub(rf"\b{name}\b", tensor.name, text)
        return text

    def _device(self):
        """Of the GPU that holds all of the call's large tensors, or None."""
        large = [self.tensors[name] for name in _ON_GPU[self.kind] if self.tensors[name] is not None]
        return large[0].value.device if all(tensor.on_gpu for tensor in large) else None

    def request_of(self, row):
        """(request, query of the request, queries of the request) of a row of attention."""
        if self.tensors["qo_indptr"] is None:
            each = self.queries_of(0)
            return row // each, row % each, each
        begins = host(self.tensors["qo_indptr"])
        request = int(np.searchsorted(begins, row, side="right")) - 1
        return request, row - int(begins[request]), self.queries_of(request)

    def queries_of(self, request):
        if self.tensors["qo_indptr"] is None:
            return self.tensors["out"].shape[0] // self.tensors["seq_lens"].shape[0]
        begins = host(self.tensors["qo_indptr"])
        return int(begins[request + 1] - begins[request])

    def _worst(self, element, rows):
        worst = {name: getattr(element, name) for name in ("row", "head", "dim", "got", "exact", "radius", "allowed", "ratio")}
        if self.kind == ATTENTION and rows > 0:
            worst["request"], worst["query"], _ = self.request_of(element.row)
        worst["budget"] = {term: getattr(element.budget, term) for term, _ in _abi.Budget._fields_ if term != "reserved"}
        worst["reason"] = element.reason.decode()
        return worst
