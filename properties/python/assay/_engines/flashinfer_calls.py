# SPDX-License-Identifier: Apache-2.0
"""Calls of FlashInfer as calls that can be judged: what a wrapper was planned with, joined to what it ran on.

Read of FlashInfer 0.7.2: decode.py, prefill.py, cascade.py."""
import math

import numpy as np

from .. import judging
from .._judge.tensors import Tensor
from ..declaration import Declaration

#: cascade.cuh: LSE of base 2, weights over their sum by a division that is approximate.
MERGE = Declaration(exponential="base2", exp2_rel_error=2.0**-22, log2_abs_error=2.0**-22, rcp_rel_error=2.0**-21)
DECODE = ("BatchDecodeWithPagedKVCacheWrapper", "CUDAGraphBatchDecodeWithPagedKVCacheWrapper")
PREFILL = ("BatchPrefillWithPagedKVCacheWrapper",)
RAGGED = ("BatchPrefillWithRaggedKVCacheWrapper",)
CASCADE = ("MultiLevelCascadeAttentionWrapper",)
WRAPPERS = (*DECODE, *PREFILL, *RAGGED, *CASCADE)
FUNCTIONS = ("merge_state", "merge_states", "merge_state_in_place")
_SETUP = ("__init__", "plan", "begin_forward")
_RUN = ("run",)
#: What decode's plan took by position behind page_size.
_DECODE_PLAN_BEHIND = (
    "pos_encoding_mode", "window_left", "logits_soft_cap", "q_data_type", "kv_data_type", "o_data_type", "data_type", "sm_scale",
    "rope_scale", "rope_theta", "non_blocking", "block_tables", "seq_lens", "fixed_split_size", "disable_split_kv", "q_len_per_req",
)  # fmt: skip


class NotJudged(ValueError):
    """A call that cannot be judged; the message says why."""


class Setup(Exception):
    """A call that computes nothing: a constructor or a plan."""


class Calls:
    """Remembers what each wrapper was made and planned with, and joins it to its runs."""

    def __init__(self, like=None, max_rows=0):
        self.like, self.max_rows, self.made, self.planned = like, max_rows, {}, {}

    def calls_of(self, name, self_id, arguments, extra, results, within=()):
        """The judge_call.Calls of one call: one, or the merges of a cascade. Setup: there is nothing to judge. `within`:
        (name, arguments, results) of the calls inside it."""
        owner, _, method = name.rpartition(".")
        if owner in WRAPPERS and method in _SETUP:
            self._remember(owner, method, self_id, arguments, extra)
            raise Setup
        if owner in WRAPPERS and method in _RUN:
            return self._run(owner, self_id, arguments, extra, results, within)
        if not owner and method in FUNCTIONS:
            return [self._merge(method, arguments, results)]
        raise NotJudged(f"{name} is not known")

    def _remember(self, owner, method, self_id, arguments, extra):
        if method == "__init__":
            self.made[self_id] = dict(arguments)
            self.planned.pop(self_id, None)  # of an object that was there before
            return
        if owner in DECODE:
            arguments = {**arguments, **dict(zip(_DECODE_PLAN_BEHIND, extra)), **arguments.get("kwargs", {})}
        self.planned[self_id] = dict(arguments)

    def _run(self, owner, self_id, run, extra, results, within):
        if not results:
            raise NotJudged("there is no output (the call did not end, or is part of a graph that was not replayed)")
        if owner in CASCADE:
            return self._cascade(results, within)
        if extra:
            raise NotJudged("a kernel of the caller's own (jit_args)")
        plan, made = self.planned.get(self_id), self.made.get(self_id, {})
        if plan is None:
            raise NotJudged("its plan is not there")
        _refuse(plan, run, made)
        out, lse = results[0], results[1] if len(results) > 1 else None
        common = _scales(plan, run, owner)
        cap = plan.get("logits_soft_cap")
        # With a mask, FlashInfer does not look at causal.
        causal = None
        if plan.get("packed_custom_mask") is not None:
            common["packed_mask"] = plan["packed_custom_mask"]
        elif plan.get("custom_mask") is not None:
            common["mask"] = plan["custom_mask"]
        else:
            causal = bool(plan.get("causal"))
        window = run.get("window_left") if run.get("window_left") is not None else plan.get("window_left", -1)
        common.update(
            lse=lse, lse_base=2, empty_lse="either", window_left=int(window), logits_soft_cap=float(cap or 0), sinks=run.get("sinks"), max_rows=self.max_rows,
            like=self.like or _like(owner, made),
        )  # fmt: skip
        if owner in RAGGED:
            return [
                judging.attention_call(
                    out, run["q"], (run["k"], run["v"]), qo_indptr=plan["qo_indptr"], kv_indptr=plan["kv_indptr"], causal=causal, **common
                )
            ]
        kv = run["paged_kv_cache"]
        common.update(kv_layout=_layout(made, plan, kv), kv_dtype=_fp8(kv))
        if owner in DECODE:
            table = {name: plan[name] for name in ("indptr", "indices", "last_page_len")}
            each = run.get("q_len_per_req") or plan.get("q_len_per_req", 1)
            common.update(causal=True, qo_indptr=np.arange(len(table["last_page_len"]) + 1) * int(each))
        else:
            table = {name: plan[f"paged_kv_{name}"] for name in ("indptr", "indices", "last_page_len")}
            common.update(causal=causal, qo_indptr=plan["qo_indptr"])
        return [
            judging.attention_call(
                out, run["q"], kv, page_table=table["indices"], page_indptr=table["indptr"], last_page_len=table["last_page_len"], **common
            )
        ]

    def _cascade(self, results, within):
        """The merges of its levels, whose runs are calls of their own. The last level runs first; each other one is merged into
        its state in place, so what a merge has written is what the next one is given."""
        levels = [inner for name, _, inner in within if name == f"{PREFILL[0]}.run"]
        merges = [arguments for name, arguments, _ in within if name == "merge_state_in_place"]
        if len(levels) < 2 or any(len(inner) < 2 for inner in levels):
            raise NotJudged(f"{len(levels)} levels with their LSE are there, expected two or more")
        if len(levels) > 2 and len(merges) != len(levels) - 1:
            raise NotJudged(f"{len(levels)} levels and {len(merges)} calls of merge_state_in_place are there, which have the states between")
        between = [(given["v"], given["s"]) for given in merges[1:]] if len(levels) > 2 else []
        states, written = [tuple(levels[0][:2]), *between], [*between, (results[0], None)]
        return [
            judging.merge_call(
                out, [o, other[0]], [s, other[1]], lse=lse, lse_layout="TH" if lse is not None else None, lse_base=2, empty_lse="either",
                like=self.like or MERGE, max_rows=self.max_rows,
            )
            for (o, s), other, (out, lse) in zip(states, levels[1:], written)
        ]  # fmt: skip

    def _merge(self, method, given, results):
        if method == "merge_state_in_place":
            if given.get("mask") is not None:
                raise NotJudged("a mask of rows")
            states, lse = [given["v"], given["v_other"]], [given["s"], given["s_other"]]
        elif method == "merge_state":
            states, lse = [given["v_a"], given["v_b"]], [given["s_a"], given["s_b"]]
        else:
            states, lse = (Tensor(name, given[name]).transpose(*order).value for name, order in (("v", (1, 0, 2, 3)), ("s", (1, 0, 2))))
        if len(results) < 2:
            raise NotJudged("it writes in place, and a dump holds what was there before")
        return judging.merge_call(
            results[0], states, lse, lse=results[1], lse_layout="TH", lse_base=2, empty_lse="either", like=self.like or MERGE, max_rows=self.max_rows
        )  # fmt: skip


def _refuse(plan, run, made):
    if plan.get("pos_encoding_mode", "NONE") != "NONE":
        raise NotJudged(f"positions are encoded in the kernel ({plan['pos_encoding_mode']})")
    for name in ("prefix_len_ptr", "token_pos_in_items_ptr", "v_indptr", "o_indptr"):
        if plan.get(name) is not None:
            raise NotJudged(f"{name} is given")
    for name in ("kv_cache_sf", "skip_softmax_threshold_scale_factor", "o_scale", "use_fp16_softmax", "uses_spcompress"):
        if run.get(name) not in (None, False):
            raise NotJudged(f"{name} is given")
    if plan.get("use_fp16_qk_reduction"):
        raise NotJudged("use_fp16_qk_reduction: sums of 16 bits")
    if plan.get("window_right") not in (None, 0):
        raise NotJudged("window_right is given")
    if made.get("jit_args") is not None:
        raise NotJudged("a kernel of the caller's own (jit_args)")


def _number(name, value):
    if value is None:
        return 1.0
    if isinstance(value, (int, float)):
        return float(value)
    if getattr(value, "shape", None) in ((), (1,)):
        return float(value.reshape(-1)[0])
    raise NotJudged(f"{name} is a tensor of more than one number")


def _scales(plan, run, owner):
    """sm_scale with the scales of q and k in it, as the kernels fold them; that of v follows O, which is rounded by then."""
    q = run["q"]
    q_scale, k_scale, v_scale = (_number(name, run.get(name)) for name in ("q_scale", "k_scale", "v_scale"))
    scale = plan.get("sm_scale")
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    out = {"sm_scale": scale * q_scale * k_scale}
    if v_scale == 1:
        return out
    if v_scale <= 0 or math.frexp(v_scale)[0] != 0.5 or _fp8(run.get("paged_kv_cache")) is None:
        raise NotJudged(f"v_scale is {v_scale:.6g}: O is rounded before and after it")
    return dict(out, v_scale=[v_scale])


def _fp8(kv):
    first = kv[0] if isinstance(kv, (list, tuple)) else kv
    if getattr(first, "kind", None) is not None:
        return first.kind
    return {"torch.float8_e4m3fn": "e4m3", "torch.float8_e5m2": "e5m2"}.get(str(getattr(first, "dtype", None)))


def _layout(made, plan, kv):
    """What the constructor was given, or what the sizes leave."""
    if made.get("kv_layout") in ("NHD", "HND"):
        return made["kv_layout"]
    shape = tuple((kv[0] if isinstance(kv, (list, tuple)) else kv).shape)[-3:-1]
    nhd = (int(plan["page_size"]), int(plan["num_kv_heads"]))
    if shape == nhd[::-1] and shape != nhd:
        return "HND"
    if shape == nhd and shape != nhd[::-1]:
        return "NHD"
    raise NotJudged("kv_layout: its constructor is not there, and the sizes do not say")


def _like(owner, made):
    backend = made.get("backend", "auto")
    if owner in DECODE and not made.get("use_tensor_cores") and backend in ("auto", "fa2") and made:
        return "flashinfer_cuda_cores"
    return "flashinfer_fa2" if backend == "fa2" else "flash"
