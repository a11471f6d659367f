# SPDX-License-Identifier: Apache-2.0
"""For `assay judge-callable submission.py:custom_kernel --adapter gpu_mode.py:mla_decode --shape batch=4,heads=16/1,head_dim=64`:
GPU MODE's problem amd-mixed-mla, custom_kernel((q, kv_data, qo_indptr, kv_indptr, config)), with the problem's task.py and utils.py
beside the submission. Other problems are refused by name, and caches of another format than bf16 are refused in the call.

The problem's K has 576 elements, V is the first 512 of them, and the scale is 1/24. Attention with 64 elements and a scale of 1/8 is a
part of it: V stands at 0 and from 128 to 511, K at 64 and at 512, and q twice at 64 and once at 512, so that scores are 3 q k / 24."""
import inspect
import pathlib
import re
import sys

import torch

from assay import Unsupported

PROBLEM, FIELDS = "amd-mixed-mla", {"batchsize", "qseqlen", "kvseqlen", "seed"}
HEADS, DIM, PARTS = 16, 64, 8  #: parts of 64 elements that V has
_SIZES = dict(num_heads=HEADS, num_kv_heads=1, qk_head_dim=576, kv_lora_rank=512, qk_rope_head_dim=64, v_head_dim=512, q_seq_len=1, sm_scale=1 / 24)


class _Caches(dict):
    def __missing__(self, name):
        raise Unsupported(f"kv_data[{name!r}] has other numbers than kv_data['bf16'], which alone are judged")


def _problem(kernel):
    """What the submission says in its first lines, else what the inputs in its task.py say."""
    path = inspect.getsourcefile(kernel)
    named = re.search(r"^#\s*!POPCORN\s+leaderboard\s+(\S+)", pathlib.Path(path).read_text(encoding="utf-8"), re.MULTILINE)
    if named:
        return named[1]
    fields = set(getattr(getattr(sys.modules.get("task"), "TestSpec", None), "__annotations__", ()))
    return PROBLEM if fields == FIELDS else f"with the inputs {', '.join(sorted(fields)) or 'of no task.py'}"


def _packed(cache, page_table, seq_lens):
    """The rows of all requests, one behind the other."""
    rows = cache if page_table is None else cache[page_table.long()].flatten(1, 2)
    return rows[torch.arange(rows.shape[1], device=rows.device) < seq_lens[:, None], 0]


def mla_decode(custom_kernel):
    if (problem := _problem(custom_kernel)) != PROBLEM:
        raise ValueError(f"assay: the problem {problem} is no decode attention of a given q and cache, expected {PROBLEM}")

    def call(q, k_cache, v_cache, page_table, seq_lens, max_seq_len):
        if q.dtype != torch.bfloat16 or q.shape[1:] != (HEADS, DIM) or k_cache.shape[2] != 1:
            raise Unsupported(f"{PROBLEM} takes heads={HEADS}/1,head_dim={DIM},q_len=1,dtype=bf16")
        k, v = (_packed(cache, page_table, seq_lens) for cache in (k_cache, v_cache))
        query = torch.zeros(len(q), HEADS, 576, dtype=q.dtype, device=q.device)
        query[..., 64:128], query[..., 512:] = 2 * q, q
        kv = torch.cat([v, k, *[v] * (PARTS - 2), k], -1)[:, None]
        lengths = torch.nn.functional.pad(seq_lens.cumsum(0), (1, 0)).to(torch.int32)
        queries = torch.arange(len(q) + 1, dtype=torch.int32, device=q.device)
        config = {"batch_size": len(q), "kv_seq_len": max_seq_len, **_SIZES}
        return _of_each_part(custom_kernel((query, _Caches(bf16=kv), queries, lengths, config)))

    return call


def _of_each_part(out):
    """Of each request and head one of the seven parts that have V, in turn."""
    request, head = torch.arange(len(out), device=out.device)[:, None], torch.arange(HEADS, device=out.device)
    part = (request + head) % (PARTS - 1)
    return out.unflatten(-1, (PARTS, DIM))[request, head, part + (part > 0)]
