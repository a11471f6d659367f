# SPDX-License-Identifier: Apache-2.0
"""Two of what a dump usually has one of: processes, objects at one address, runs under a plan, merges beside a cascade."""
import numpy as np
from assay._engines import dump_files
from flashinfer_dump import Dump, merged
from test_flashinfer_dump import CASCADE, DECODE, LOG2E, PREFILL, cascade, decode, decode_call, outcomes, prefill, states, tables
from test_judge import HEADS, KV_HEADS, PAGE, Call, library  # noqa: F401  (a fixture)


def test_two_processes_have_objects_of_one_number():
    """Both plan, then both run: each run has the plan of its own process."""
    dump, calls = Dump("dump"), [decode_call(), decode_call(2)]
    for process, call in zip((7, 8), calls):
        dump.process = process
        dump.call(f"{DECODE}.__init__", 11, (np.zeros(8, np.float32), ("NHD", "HND")[process - 7], False, True), dict(backend="fa2"))
        dump.call(f"{DECODE}.plan", 11, (*tables(call), HEADS, KV_HEADS, 32, PAGE), dict(sm_scale=call.scale))
    for process, call in zip((7, 8), calls):
        dump.process = process
        out, lse = call.run()
        pool = np.stack([call.k, call.v], 1)
        dump.call(f"{DECODE}.run", 11, (call.q, pool if process == 7 else pool.swapaxes(2, 3)), dict(return_lse=True), lambda: (out, lse * LOG2E))
    assert outcomes() == {f"{DECODE}.run": ["inside"] * 2}


def test_two_runs_under_a_plan():
    """Two layers run under it: the first is right, and the second is wrong."""
    dump, call = Dump("dump"), decode_call()
    decode(dump, call)
    out, lse = call.copy(k=np.roll(call.k, 1, axis=0)).run()
    dump.call(f"{DECODE}.run", 11, (call.q, np.stack([call.k, call.v], 1)), dict(return_lse=True), lambda: (out, lse * LOG2E))
    assert outcomes() == {f"{DECODE}.run": ["inside", "outside"]}


def test_an_object_at_the_address_of_another_has_no_plan_yet():
    dump, call = Dump("dump"), decode_call()
    decode(dump, call)
    dump.call(f"{DECODE}.__init__", 11, (np.zeros(8, np.float32), "NHD"))
    dump.call(f"{DECODE}.run", 11, (call.q, np.stack([call.k, call.v], 1)), {}, lambda: (call.run()[0],))
    assert outcomes() == {f"{DECODE}.run": ["inside", "its plan is not there"]}


def test_a_merge_of_another_process_is_no_part_of_a_cascade():
    """It is written while the cascade of the first process runs, and is judged by itself."""
    dump = Dump("dump")
    o, lse = states()
    out, total = merged(o, lse)

    def beside(step, a, b):
        dump.process = 8
        dump.call("merge_state", None, (o[0], lse[0], o[1], lse[1]), {}, lambda: (np.roll(out, 1, axis=1), total))
        prefill(dump, Call(seed=4), self_id=40)
        dump.process = 7
        return merged(*map(np.stack, zip(a, b)))

    cascade(dump, merge=beside)
    assert outcomes() == {f"{CASCADE}.run": ["inside"], f"{PREFILL}.run": ["inside"] * 3, "merge_state": ["outside"]}


def test_a_list_that_was_cut_short_is_not_taken_for_the_whole():
    """FlashInfer writes so many items of a list, and says that there were more."""
    tensors = {"a": np.zeros(3)}
    items = [{"type": "torch.Tensor", "tensor_key": "a"}, 2]
    whole = {"type": "tuple", "items": items, "truncated": False}
    assert dump_files._value(whole, tensors)[0] is tensors["a"] and dump_files._value(whole, tensors)[1] == 2
    assert dump_files._value({**whole, "truncated": True, "repr": "(a, 2, ...)"}, tensors) == "(a, 2, ...)"
    assert dump_files._value({**whole, "items": None}, tensors) is None
