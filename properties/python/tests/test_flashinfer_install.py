# SPDX-License-Identifier: Apache-2.0
"""assay.flashinfer.install over a stub of FlashInfer: what it computes stays as it is, wrong calls are found, the rest is counted."""
import pathlib
import sys
import types

import numpy as np
import pytest
from assay import flashinfer
from assay._judge import record as judge_record
from flashinfer_dump import merged
from test_flashinfer_dump import CASCADE, DECODE, HEADS, KV_HEADS, LOG2E, PAGE, PREFILL, decode_call, states, tables
from test_judge import library  # noqa: F401  (a fixture)


class Decode:
    """A wrapper that gives the results that it is told to."""

    def __init__(self, float_workspace_buffer, kv_layout="NHD", use_cuda_graph=False, use_tensor_cores=False, backend="auto"):
        self.results = []

    def plan(self, indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, *deprecated_positional_args, **kwargs):
        return None

    begin_forward = plan

    def run(self, q, paged_kv_cache, *args, q_scale=None, k_scale=None, v_scale=None, out=None, return_lse=False, window_left=None, sinks=None):
        if not self.results:
            raise RuntimeError("not planned")
        result = self.results.pop(0)
        q[...] = 0  # a kernel may
        return result if return_lse else result[0]


class Prefill(Decode):
    def __init__(self, float_workspace_buffer, kv_layout="NHD", use_cuda_graph=False, backend="auto"):
        self.results = []

    def plan(
        self, qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim_qk, page_size,
        causal=False, pos_encoding_mode="NONE", sm_scale=None,
    ):  # fmt: skip
        return None

    def run(self, q, paged_kv_cache, *args, q_scale=None, k_scale=None, v_scale=None, out=None, return_lse=False, window_left=None, sinks=None):
        return self.results.pop(0)


@pytest.fixture
def stub(monkeypatch):
    """Modules flashinfer, flashinfer.decode, .prefill and .cascade."""
    made = {name: types.ModuleType(name) for name in ("flashinfer", "flashinfer.decode", "flashinfer.prefill", "flashinfer.cascade")}
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    cascade = made["flashinfer.cascade"]

    def own(module, name, value):
        value.__module__ = module.__name__
        value.__name__ = name.rpartition(".")[2]
        setattr(module, name, value)

    own(made["flashinfer.decode"], DECODE, type(DECODE, (), dict(vars(Decode))))
    own(made["flashinfer.prefill"], PREFILL, type(PREFILL, (), dict(vars(Prefill))))

    def merge_state(v_a, s_a, v_b, s_b):
        return merged(np.stack([v_a, v_b]), np.stack([s_a, s_b]))

    def merge_state_in_place(v, s, v_other, s_other, mask=None):
        v[...], s[...] = merged(np.stack([v, v_other]), np.stack([s, s_other]))

    class Cascade:
        def __init__(self, wrappers):
            self.wrappers = wrappers

        def plan(self):
            return None

        def run(self, q, paged_kv_cache):
            out, lse = self.wrappers[-1].run(q, paged_kv_cache, return_lse=True)
            for wrapper in self.wrappers[:-1]:
                cascade.merge_state_in_place(out, lse, *wrapper.run(q, paged_kv_cache, return_lse=True))
            return out

    own(cascade, "merge_state", merge_state)
    own(cascade, "merge_state_in_place", merge_state_in_place)
    own(cascade, CASCADE, Cascade)
    made["flashinfer"].merge_state = merge_state
    return types.SimpleNamespace(
        decode=made["flashinfer.decode"], prefill=made["flashinfer.prefill"], cascade=cascade, top=made["flashinfer"]
    )  # fmt: skip


@pytest.fixture
def watch(stub):
    made = []

    def installed(*args, **kwargs):
        made.append(flashinfer.install(*args, **kwargs))
        return made[-1]

    yield installed
    for one in made:
        one.uninstall()


def planned(stub, call, results):
    wrapper = getattr(stub.decode, DECODE)(np.zeros(8), use_tensor_cores=True)
    plan = tables(call)
    wrapper.plan(*plan, HEADS, KV_HEADS, 32, PAGE)
    plan[1][:] = 0  # the caller's own again
    wrapper.results = results
    return wrapper


def test_right_calls_pass_and_wrong_ones_are_kept(stub, watch):
    watched, call = watch(every=1), decode_call()
    out, lse = call.run()
    wrong = np.roll(out, 1, axis=1)
    wrapper, pool = planned(stub, call, [(out, lse * LOG2E), (wrong, lse * LOG2E), (out, lse)]), np.stack([call.k, call.v], 1)
    assert (wrapper.run(call.q.copy(), pool, return_lse=True)[0] == out).all() and watched.findings == 0, watched
    assert (wrapper.run(call.q.copy(), pool, return_lse=True)[0] == wrong).all() and watched.findings == 1
    wrapper.run(call.q.copy(), pool, return_lse=True)
    assert (watched.calls, watched.judged, watched.findings) == (3, 3, 2) and not watched.errors, watched
    assert [judge_record.judge(path).verdict for path in pathlib.Path("assay_flashinfer").iterdir()] == ["outside"] * 2


def test_what_it_is_told(stub, watch):
    for given, told in (((), (100, "assay_flashinfer", None, 8)), ((3, "there", "fa2", 5), (3, "there", "fa2", 5))):
        made = watch(*given)
        assert (made.every, made.out, made._joined.like, made._joined.max_rows) == told
        made.uninstall()


def test_one_call_in_n(stub, watch):
    watched, call = watch(every=3), decode_call()
    out, lse = call.run()
    wrapper, pool = planned(stub, call, [(out, lse * LOG2E)] * 7), np.stack([call.k, call.v], 1)
    for _ in range(7):
        wrapper.run(call.q.copy(), pool, return_lse=True)
    assert (watched.calls, watched.judged, watched.findings) == (7, 2, 0), watched


def test_merges_in_place_too(stub, watch):
    watched, (o, lse) = watch(every=1), states()
    stub.cascade.merge_state(o[0], lse[0], o[1], lse[1])
    stub.top.merge_state(o[0], lse[0], o[1], lse[1])
    first, total = o[0].copy(), lse[0].copy()
    stub.cascade.merge_state_in_place(first, total, o[1], lse[1])
    assert (watched.calls, watched.judged, watched.findings) == (3, 3, 0), watched
    stub.cascade.merge_state_in_place(o[0].copy(), lse[0].copy(), o[1], lse[1] * 0 + np.float32(np.nan))
    assert (first != o[0]).any() and watched.judged == 4


def test_a_cascade_and_what_it_calls(stub, watch):
    watched, calls = watch(every=1), [decode_call(1), decode_call(2)]
    calls[1].q, pools = calls[0].q, []
    wrappers = []
    for call in calls:
        wrapper = getattr(stub.prefill, PREFILL)(np.zeros(8))
        wrapper.plan(call.cu, *tables(call), HEADS, KV_HEADS, 32, PAGE, causal=True)
        out, lse = call.run()
        wrapper.results = [(out, lse * LOG2E), (out, lse * LOG2E)]
        wrappers.append(wrapper)
        pools.append(np.stack([call.k, call.v], 1))
    # Each level reads its own pool in this stub, so the wrappers are judged by pools that are not theirs but for the last.
    cascade = getattr(stub.cascade, CASCADE)(wrappers)
    cascade.run(calls[0].q, pools[1])
    assert watched.calls == 1 and watched.judged == 4 and watched.findings == 1, watched


def test_a_cascade_of_three_levels(stub, watch):
    watched, o, lse = watch(every=1), *(np.concatenate([x, y]) for x, y in zip(states(1), states(2)))
    wrappers = [getattr(stub.prefill, PREFILL)(np.zeros(8)) for _ in range(3)]
    for level, wrapper in enumerate(wrappers):
        wrapper.results = [(o[level].copy(), lse[level].copy()) for _ in range(2)]
    cascade, q = getattr(stub.cascade, CASCADE)(wrappers), np.zeros(3)
    cascade.run(q, None)  # two merges in place, and the same two of the cascade; its levels have no plan
    assert watched.judged == 4 and watched.findings == 0 and not watched.errors, watched
    right = stub.cascade.merge_state_in_place
    stub.cascade.merge_state_in_place = lambda v, s, v_other, s_other: right(v, s, v_other, s_other * 0)
    cascade.run(q, None)
    assert watched.findings == 2 and not watched.errors, watched


def test_what_is_not_judged_is_counted_and_errors_stay_the_callers(stub, watch):
    watched, call = watch(every=1), decode_call()
    pool = np.stack([call.k, call.v], 1)
    wrapper = getattr(stub.decode, DECODE)(np.zeros(8))
    wrapper.results = [call.run()]
    wrapper.run(call.q.copy(), pool, return_lse=True)
    assert watched.not_judged == {f"{DECODE}.run: its plan is not there": 1}
    with pytest.raises(RuntimeError, match="not planned"):
        wrapper.run(call.q.copy(), pool)
    with pytest.raises(TypeError):
        wrapper.run()
    before, wrapper.results = watched.calls, [call.run()]
    wrapper.run(call.q.copy(), pool, return_lse=True)  # none that raised is still running
    assert watched.calls == before + 1 and not watched._running


def test_a_wrapper_may_be_planned_by_its_older_name(stub, watch):
    watched, call = watch(every=2), decode_call()
    wrapper, (out, lse) = getattr(stub.decode, DECODE)(np.zeros(8), use_tensor_cores=True), call.run()
    wrapper.begin_forward(*tables(call), HEADS, KV_HEADS, 32, PAGE)
    wrapper.results = [(out, lse * LOG2E)] * 2
    for _ in range(2):
        wrapper.run(call.q.copy(), np.stack([call.k, call.v], 1), return_lse=True)
    assert (watched.calls, watched.judged, watched.findings) == (2, 1, 0), watched  # a plan is no call


def test_an_error_of_the_judge_is_counted(stub, watch, monkeypatch):
    watched, call = watch(every=1), decode_call()
    wrapper, pool = planned(stub, call, [call.run()]), np.stack([call.k, call.v], 1)
    monkeypatch.setattr(judge_record, "keep", lambda *a: 1 / 0)
    wrapper.run(call.q.copy(), pool, return_lse=True)  # its LSE is of the wrong base
    assert list(watched.errors) == ["ZeroDivisionError: division by zero"] and watched.findings == 1


def test_uninstall_leaves_what_was_there(stub):
    before = {name: dict(vars(getattr(stub.decode, DECODE))) for name in ("run", "plan")}
    watched = flashinfer.install(every=1)
    watched.uninstall()
    others = flashinfer.install(every=1)
    watched.uninstall()  # once more changes nothing
    assert getattr(stub.decode, DECODE).run.assay_watch is others
    others.uninstall()
    assert {name: dict(vars(getattr(stub.decode, DECODE))) for name in ("run", "plan")} == before


def test_a_run_without_an_output_is_named(stub, watch):
    watched, call = watch(every=1), decode_call()
    wrapper = planned(stub, call, [(None, None)])
    assert wrapper.run(call.q.copy(), np.stack([call.k, call.v], 1)) is None
    assert watched.judged == 0 and not watched.errors and "there is no output" in next(iter(watched.not_judged)), watched


def test_what_is_copied_is_of_its_own():
    torch = pytest.importorskip("torch")
    for tensor in (np.ones(3), torch.ones(3)):
        copy = flashinfer._copy(tensor)
        tensor[0] = 7
        assert copy.tolist() == [1, 1, 1] and type(copy) is type(tensor)
    assert flashinfer._copy(3) == 3 and flashinfer._copy(None) is None
