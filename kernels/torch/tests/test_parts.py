# SPDX-License-Identifier: Apache-2.0
"""Parts that no call of one kernel shows: shares of heads, prepared calls in use, prefills in plain PyTorch, tables of FlashInfer."""
import contextlib
import ctypes
import functools
import itertools
import types

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
pytest.importorskip("hypothesis")
import assay_torch
from assay_torch import _abi, exchange, flashinfer_door, functions, library, paged_shape, plain, prepared, tensors
from batches import batch, by_plan
from hypothesis import given
from hypothesis import strategies as st
from test_drawn import drawn

assay = pytest.importorskip("assay")


@drawn
@given(st.integers(1, 40), st.integers(1, 9))
def test_ranks_share_all_heads_in_their_order(heads, ranks):
    """Each head belongs to one rank, and no two ranks differ by more than one head; with "all" each rank has all of them."""
    shares = [exchange.heads_of(heads, ranks, rank, exchange.HEADS["scatter"]) for rank in range(ranks)]
    assert [h for first, end in shares for h in range(first, end)] == list(range(heads))
    sizes = [end - first for first, end in shares]
    assert max(sizes) - min(sizes) <= 1
    assert {exchange.heads_of(heads, ranks, rank, exchange.HEADS["all"]) for rank in range(ranks)} == {(0, heads)}


def test_a_prepared_call_is_used_by_one_at_a_time():
    pool = prepared.Pool()
    call = type("Call", (), {"home": None})()
    assert pool.take("shape") is None
    pool.give("shape", call)
    assert pool.take("shape") is call and pool.take("shape") is None and pool.take("other") is None
    pool.give("shape", call)
    assert pool.take("shape") is call


def test_a_pool_forgets_when_it_has_too_many_shapes(monkeypatch):
    monkeypatch.setattr(prepared, "_MOST_KEYS", 2)
    pool = prepared.Pool()
    calls = [type("Call", (), {"home": None})() for _ in range(3)]
    for key, call in enumerate(calls[:2]):
        pool.give(key, call)
    assert pool.take(0) is calls[0]
    pool.give(0, calls[0])
    pool.give(2, calls[2])
    assert pool.take(0) is None and pool.take(1) is None and pool.take(2) is calls[2]


@pytest.mark.parametrize("name", ["q", "k", "v", "k_scale", "v_scale", "alibi_slopes", "sinks"])
def test_an_input_that_wants_a_gradient_is_refused(name):
    """Each alone: what is no option, in a call without options, which looks at less."""
    b = batch("cpu", kv_dtype=torch.float8_e4m3fn, alibi_slopes=torch.ones(8), sinks=torch.ones(8), k_scale=torch.ones(1), v_scale=torch.ones(1))
    if name in ("q", "k", "v"):
        b.k, b.v = b.k.bfloat16(), b.v.bfloat16()
        b.options = {}
    (b.options[name] if name in b.options else getattr(b, name)).requires_grad_()
    for function in (assay_torch.paged_attention, assay_torch.tree_attention, by_plan, functools.partial(by_plan, tree=True)):
        with pytest.raises(assay_torch.Unsupported, match="has no gradient"):
            b.call(function)
        with torch.no_grad():
            b.call(function)


@st.composite
def prefills(draw):
    g = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    rows, kv_heads, group, dim = draw(st.integers(1, 5)), draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.sampled_from([8, 16]))
    keys = rows + draw(st.integers(0, 9))
    q, k, v = (torch.randn(shape, generator=g).half() for shape in ((rows, kv_heads * group, dim), (keys, kv_heads, dim), (keys, kv_heads, dim)))
    alike = lambda: torch.rand(kv_heads * group, generator=g) if draw(st.booleans()) else None  # noqa: E731
    options = dict(
        causal=draw(st.booleans()), sm_scale=draw(st.sampled_from([0.25, 1.0])), window_left=draw(st.sampled_from([-1, 0, 1, 4])),
        logits_soft_cap=draw(st.sampled_from([0.0, 1.5])), alibi_slopes=alike(), sinks=alike(),
    )  # fmt: skip
    if not options["causal"]:
        options.update(window_left=-1, alibi_slopes=None)
    return q, k, v, options


@drawn
@given(prefills())
def test_a_prefill_in_plain_pytorch_is_right(made):
    """By the judge: nothing of fp32 is claimed but its own arithmetic."""
    q, k, v, options = made
    out = plain.prefill(q.float(), k.float(), v.float(), **options)
    report = assay.judge(
        out, q, (k[None], v[None]), seq_lens=[len(k)], causal=options["causal"], window_left=options["window_left"], sm_scale=options["sm_scale"], sinks=options["sinks"],
        logits_soft_cap=options["logits_soft_cap"], alibi_slopes=options["alibi_slopes"], like="sdpa_math",
    )  # fmt: skip
    assert report.passed, report


@drawn
@given(st.lists(st.integers(0, 4), min_size=0, max_size=4), st.integers(1, 8), st.integers(0, 9))
def test_a_table_of_flashinfer_has_the_pages_of_each_request(pages, page_size, seed):
    g = torch.Generator().manual_seed(seed)
    indptr = torch.tensor([0, *pages]).cumsum(0).int()
    indices = torch.randperm(sum(pages), generator=g).int()
    last = torch.randint(1, page_size + 1, (len(pages),), generator=g).int()
    table, lengths = flashinfer_door.table_of(indptr, indices, last, page_size)
    assert table.dtype == lengths.dtype == torch.int32 and table.shape == (len(pages), max([1, *pages])) and lengths.shape == (len(pages),)
    for r, n in enumerate(pages):
        assert table[r, :n].tolist() == indices[indptr[r] : indptr[r + 1]].tolist()
        assert lengths[r] == ((n - 1) * page_size + last[r] if n else 0)
    assert not len(indices) or bool(((table >= 0) & (table < len(indices))).all())


@pytest.mark.parametrize("size, begin", [(0, 0), (1, 256), (255, 256), (256, 256), (257, 512)])
def test_scratch_begins_aligned_behind_a_plan(size, begin):
    assert paged_shape.scratch_at(size) == begin


def test_strides_of_an_axis_with_one_piece_are_those_that_are_said():
    x = torch.zeros(4, 1, 8)[:, :, ::1].as_strided((4, 1, 8), (8, 3, 1))
    assert tensors.strides(x, 77) == [8, 77, 1] and tensors.strides(x[:1], 5) == [5, 5, 1]


@pytest.mark.parametrize("name", ["k_scale", "v_scale"])
@pytest.mark.parametrize("scale, words", [
    (torch.ones(1, dtype=torch.float64), "float64, expected torch.float32"), (torch.ones(3), "expected [2]"), (torch.ones(2, 1), "expected [2]"),
    (torch.ones(4)[::2], "stride 2 in its last axis"), (torch.ones(2, dtype=torch.bfloat16), "bfloat16, expected torch.float32"),
    (torch.ones(1, device="meta"), "is on meta, expected cpu as q"), (torch.ones(2, device="meta"), "is on meta, expected cpu as q"),
])  # fmt: skip
def test_a_scale_that_does_not_fit_is_named(name, scale, words):
    b = batch("cpu", kv_dtype=torch.float8_e4m3fn)
    with pytest.raises(assay_torch.InvalidArgument) as raised:
        b.call(assay_torch.paged_attention, **{name: scale})
    assert str(raised.value).startswith(name) and words in str(raised.value)


class Stream:
    """A library of a GPU that keeps on which device and stream it was called."""

    target = 1

    def __init__(self, status=0):
        self.calls, self.status, self.current = [], status, 0

    def function(self, name):
        return lambda reference: self.calls.append((name, self.current, reference._obj.stream)) or self.status

    def error(self, name, status):
        return assay_torch.LaunchFailed(f"{name}: {status}")


@pytest.mark.parametrize("current, own", [(0, 0), (0, 2), (3, 1)])
def test_a_call_runs_on_the_current_stream_of_its_tensors_device(monkeypatch, current, own):
    library = Stream()
    library.current = current

    @contextlib.contextmanager
    def on(device):
        before, library.current = library.current, device
        yield
        library.current = before

    monkeypatch.setattr(prepared, "_current_stream", lambda device: 100 + device)
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: library.current, raising=False)
    monkeypatch.setattr(torch.cuda, "device", on)
    call = prepared.Prepared("merge_state", library, _abi.MergeStateParams(), torch.device("cuda", own))
    call.run()
    assert library.calls == [("merge_state", own, 100 + own)] and library.current == current
    library.status = 5
    with pytest.raises(assay_torch.LaunchFailed, match="merge_state: 5"):
        call.run()


def test_a_size_may_be_larger_than_4_gb():
    made, seen = library.Library.__new__(library.Library), []

    def answers(params, size):
        seen.append((params._obj.struct_size, ctypes.sizeof(params._obj)))
        size._obj.value = (5 << 32) + 7
        return 0

    made.target, made._dll = library.SIMT, types.SimpleNamespace(assay_x_size=answers)
    assert made.size("x_size", _abi.ExchangeParams(), torch.device("cpu")) == (5 << 32) + 7 and seen[0][0] == seen[0][1] > 8


def test_a_window_is_cleared_between_two_waits(monkeypatch):
    """Nobody may write a window before it is cleared, nor clear it before everybody has stopped."""
    made = object.__new__(assay_torch.Windows)
    made.window, made.status, made.addresses, seen = torch.ones(256, dtype=torch.uint8), torch.tensor([5], dtype=torch.int32), [0] * 3, []
    assert made.missing() == [0, 2] and made.num_ranks == 3
    made.clear(lambda: seen.append((int(made.window.sum()), made.missing())))
    assert seen == [(256, [0, 2]), (0, [])]
    made.window.fill_(1)
    made.clear()
    assert not made.window.any()


def test_what_is_no_tensor_is_named():
    assert str(tensors.no_tensor(q=torch.zeros(1), k=None, v=3)) == "v is a int, expected a tensor"
    assert str(tensors.no_tensor(q=torch.zeros(1), k=None)) == "an argument is no tensor"


def test_dcp_numbers_as_the_c_abi_has_them():
    """Without ranks there is no interleave; a rank that is given all the same is refused by the library."""
    for world_size, rank, interleave in itertools.product((0, 1, 2, 8), (0, 1, 3), (0, 1, 16)):
        assert functions.dcp(world_size, rank, interleave) == (world_size, rank, 0 if world_size == 0 else interleave)


def test_two_names_of_the_same_starts():
    here = torch.tensor([0, 1])
    assert functions.starts(None, None) is None and functions.starts(here, None) is here and functions.starts(None, here) is here
    with pytest.raises(assay_torch.InvalidArgument, match="qo_indptr and cu_seqlens_q are given, expected one"):
        functions.starts(here, here)
