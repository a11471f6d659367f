# SPDX-License-Identifier: Apache-2.0
"""Kernels that do what none may, each otherwise right."""
import ctypes
import dataclasses
import os
import signal
import sys
import threading
import time

import assay

from paged_attention import FP32
from right_kernels import MERGE, attend_ragged, attend_shards, merge_pair, merge_state, no_features


def wrong(**fields):
    return assay.kernel(**{"family": "merge_state", "declaration": MERGE, **fields})


def pointer(array, index=0):
    return array.ctypes.data + index * array.itemsize


@wrong()
def raises_index_error(case):
    return [case.num_rows][1]


@wrong()
def leaves(case):
    os._exit(0)


@wrong()
def exits(case):
    sys.exit(0)


@wrong()
def crashes(case):
    print("about to read address 8", flush=True)
    ctypes.string_at(8)


@wrong()
def is_killed(case):
    os.kill(os.getpid(), signal.SIGKILL)


@wrong()
def hangs(case):
    merge_state(case)
    open("hangs.now", "w").close()
    time.sleep(1000)


@wrong()
def raises(case):
    merge_state(case)
    return inner(case.out.shape)


def inner(shape):
    raise RuntimeError(f"no luck \x1b[31m with\n{len(shape)} axes")


@wrong()
def raises_later(case):
    merge_state(case)
    if case.head_dim > 64:
        raise RuntimeError("only small heads")


@wrong()
def returns(case):
    merge_state(case)
    return case.out


@wrong()
def writes_input(case):
    merge_state(case)
    ctypes.memset(pointer(case.lse_a), 7, 1)


@wrong()
def assigns_input(case):
    merge_state(case)
    case.lse_a[0] = 1


@wrong()
def writes_behind(case):
    merge_state(case)
    size = max(16, (case.num_rows * case.num_heads) * case.head_dim * case.out.itemsize)
    ctypes.memset(pointer(case.out) + size, 7, 1)


@wrong()
def writes_in_front(case):
    merge_state(case)
    ctypes.memset(pointer(case.out) - 1, 7, 1)


@wrong()
def writes_nothing(case):
    pass


@wrong()
def refuses_after_writing(case):
    merge_state(case)
    raise assay.Unsupported("changed my mind")


@wrong()
def writes_after_reply(case):
    """Right until the reply has left; what it writes later is nobody's result."""
    merge_state(case)
    o = case.out

    def later():
        time.sleep(0.2)
        o[...] = 0

    threading.Thread(target=later, daemon=True).start()


@wrong()
def closes_everything(case):
    os.closerange(3, 256)


@wrong()
def floods_channel(case):
    merge_state(case)
    os.write(3, b"\x02\0\0\0\0\0\0\0{}" * 64)


@wrong()
def forges_reply(case):
    text = b'{"reply": 1, "status": 0, "message": ""}'
    os.write(3, len(text).to_bytes(8, "little") + text)
    os._exit(0)


@wrong()
def cuts_memory(case):
    os.ftruncate(4, 0)


@wrong(name="narrow")
def refuses_by_raising(case):
    if case.dtype != "bf16":
        raise assay.Unsupported("bf16 only")
    merge_state(case)


def only_head_dim_64(case):
    return case.head_dim == 64 or "head_dim 64 only"


@wrong(supports=only_head_dim_64)
def refuses_by_supports(case):
    assert case.head_dim == 64
    merge_state(case)


@wrong()
def refuses_everything(case):
    raise assay.Unsupported("not today")


@wrong(declaration=assay.Declaration(exp2_rel_error=float("nan")))
def declares_nan(case):
    merge_state(case)


@wrong(declaration=assay.Declaration(rcp_rel_error=1))
def declares_everything(case):
    merge_state(case)


@wrong(family="merge_states")
def of_another_family(case):
    merge_state(case)


def to_bf16(weights):
    return assay.to_float32(assay.from_float32(weights, "bf16"), "bf16")


@wrong()
def hides_rounding(case):
    merge_pair(case, to_bf16)


@wrong(declaration=dataclasses.replace(MERGE, exp2_rel_error=2.0**-8))
def declares_rounding(case):
    merge_pair(case, to_bf16)


def declares_nothing(case):
    merge_state(case)



@assay.kernel(family="paged", declaration=FP32, determinism="run_to_run", nan_contract="all", ragged_queries=True)
def ragged_as_full(case):
    """Positions as if every request had the most tokens."""
    attend_ragged(case, lambda tokens: case.q_len)


@assay.kernel(family="paged", declaration=FP32, supports=no_features, shards=True)
def shard_as_whole(case):
    """Positions as if the cache held every token."""
    attend_shards(case, 0)
