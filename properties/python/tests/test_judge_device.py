# SPDX-License-Identifier: Apache-2.0
"""assay.judge on tensors of a GPU: judged where they lie, with the report that copies get. Where the library for that is
looked for is tested without a GPU."""
import math
import types

import assay
import numpy as np
import pytest
from assay._judge import call as judge_call
from assay._judge import library as judge_library
from assay._judge.tensors import Tensor
from test_judge import library_or_skip


@pytest.fixture
def fresh():
    """Libraries are looked for again."""
    judge_library.cuda_library.cache_clear()
    yield
    judge_library.cuda_library.cache_clear()


@pytest.mark.parametrize("variable, of", [("ASSAY_JUDGE_CUDA_LIBRARY", judge_library.cuda_library), ("ASSAY_JUDGE_LIBRARY", judge_library.library)])
@pytest.mark.parametrize("place, why", [("/nowhere/lib.so", "/nowhere/lib.so"), ("libm.so.6", "assay_judge_attention"), (__file__, "invalid ELF header|file too short")])
def test_what_is_no_library_of_the_judge_is_said(monkeypatch, fresh, variable, of, place, why):
    monkeypatch.setenv(variable, place)
    with pytest.raises(judge_library.LibraryError, match=f"^assay: {place}: .*({why})"):
        of.__wrapped__()


def test_no_library_beside_the_judge_is_none(monkeypatch, fresh, tmp_path):
    (tmp_path / judge_library.NAME).touch()
    monkeypatch.delenv("ASSAY_JUDGE_CUDA_LIBRARY", raising=False)
    monkeypatch.setenv("ASSAY_JUDGE_LIBRARY", str(tmp_path / judge_library.NAME))
    assert judge_library.cuda_library() is None


def test_a_tensor_of_a_gpu_takes_torch(monkeypatch):
    class OnGpu:
        def __dlpack_device__(self):
            return (2, 0)

    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(TypeError, match="out is a OnGpu on a GPU, which takes torch"):
        Tensor("out", OnGpu())


class Loaded:
    """libassay_judge in the place of the library for GPUs: it notes on which stream it is asked."""

    def __init__(self):
        self.streams, self.host = [], judge_library.library()
        self.assay_judge_last_error = self.host.assay_judge_last_error

    def __getattr__(self, name):
        def ask(params, stream, report):
            self.streams.append((name, stream))
            return getattr(self.host, name.removesuffix("_cuda"))(params, report)

        return ask


@pytest.fixture
def stood_in(monkeypatch):
    """(torch, what puts a tensor on a GPU that is stood in for, Loaded)."""
    torch = pytest.importorskip("torch")
    library_or_skip()

    class OnGpu(torch.Tensor):
        is_cuda = True
        device = property(lambda self: torch.device("cuda", 3))

        def cpu(self):
            return self.as_subclass(torch.Tensor)

    loaded = Loaded()
    monkeypatch.setattr(judge_library, "cuda_library", lambda: loaded)
    as_tensor = torch.as_tensor
    monkeypatch.setattr(torch, "as_tensor", lambda numbers, device: as_tensor(numbers))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: types.SimpleNamespace(cuda_stream=70 + device.index))
    return torch, lambda x: x.as_subclass(OnGpu), loaded


def test_a_call_is_judged_where_all_of_it_lies(stood_in, monkeypatch):
    """On the GPU, behind its current stream; where some of it lies elsewhere, or there is no library for GPUs, as copies."""
    torch, put, loaded = stood_in
    call = Call(torch, lengths=(30, 7), device="cpu")
    here = call.judge()
    assert not loaded.streams
    assert call.judge(place=put) == here and loaded.streams == [("assay_judge_attention_cuda", 73)]
    for name in ("out", "q", "k", "v", "lse"):
        part = object.__new__(Call)
        vars(part).update({n: put(x) if n != name else x for n, x in vars(call).items()})
        assert part.judge() == here and len(loaded.streams) == 1, name
    call.out[1, 5, 7] += 1
    with pytest.raises(assay.AttentionError, match=r"request 1 query 0\) head 5 dim 7"):
        assay.assert_attention(put(call.out), put(call.q), (put(call.k), put(call.v)), page_table=call.table, seq_lens=call.lens, findings="kept", hint_seconds=0)
    o, lse = torch.randn(2, 3, 2, 8), torch.randn(2, 3, 2)
    loaded.streams.clear()
    assert repr(assay.judge_merge(put(o[0]), put(o), put(lse))) == repr(assay.judge_merge(o[0], o, lse)) and loaded.streams == [("assay_judge_merge_cuda", 73)]
    assert assay.judge_merge(put(o[0]), [put(x) for x in o], list(map(put, lse))).rows == 3 and len(loaded.streams) == 2
    with pytest.raises(ValueError, match="assay: "):
        assay.judge(put(call.out), put(call.q), (put(call.k), put(call.v)), page_table=call.table, seq_lens=call.lens[:1])
    monkeypatch.setattr(judge_library, "cuda_library", lambda: None)
    loaded.streams.clear()
    assert repr(assay.judge_merge(put(o[0]), put(o), put(lse))) == repr(assay.judge_merge(o[0], o, lse)) and not loaded.streams


def test_what_numpy_cannot_view_is_named():
    class Odd:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **options):
            raise BufferError("not so")

    with pytest.raises(TypeError, match="assay: out is a Odd that NumPy cannot view: not so"):
        Tensor("out", Odd())
    assert Tensor("sinks", np.array([0x3F80, 0x4000], np.uint16)).as_floats().numpy().tolist() == [1, 2]
    with pytest.raises(ValueError, match="out has 5 dimensions, expected at most 4"):
        judge_call._array(Tensor("out", np.zeros((1,) * 5, np.float32)))


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    try:
        if judge_library.cuda_library() is None:
            pytest.skip("no libassay_judge_cuda")
    except judge_library.LibraryError as error:
        pytest.skip(str(error))
    return torch


class Call:
    """Decode attention of ragged lengths over a paged cache, right as fp64 has it."""

    def __init__(self, torch, lengths=(300, 17, 1024), heads=8, kv_heads=2, dim=64, page=16, device="cuda"):
        draw = torch.Generator(device).manual_seed(1)
        columns = -(-max(lengths) // page)
        numbers = lambda *shape: torch.randn(shape, generator=draw, device=device).bfloat16()  # noqa: E731
        self.q = numbers(len(lengths), heads, dim)
        self.k, self.v = (numbers(len(lengths) * columns, page, kv_heads, dim) for _ in range(2))
        self.table = torch.randperm(len(lengths) * columns, generator=draw, device=device).reshape(len(lengths), columns).int()
        self.lens = torch.tensor(lengths, device=device, dtype=torch.int32)
        self.out, self.lse = self._right(torch, heads // kv_heads)

    def _right(self, torch, group):
        out, lse = torch.empty_like(self.q), torch.empty(self.q.shape[:2], device=self.q.device)
        for r, length in enumerate(self.lens.tolist()):
            k, v = (x[self.table[r].long()].flatten(0, 1)[:length].repeat_interleave(group, 1).double() for x in (self.k, self.v))
            logits = torch.einsum("hd,nhd->hn", self.q[r].double(), k) / math.sqrt(self.q.shape[2])
            out[r] = torch.einsum("hn,nhd->hd", logits.softmax(1), v).bfloat16()
            lse[r] = logits.logsumexp(1)
        return out, lse

    def judge(self, place=lambda x: x, **options):
        tensors = [place(x) for x in (self.out, self.q, self.k, self.v)]
        options = dict(page_table=place(self.table), seq_lens=place(self.lens), lse=place(self.lse), lse_layout="TH", like="fa2", **options)
        return assay.judge(tensors[0], tensors[1], tuple(tensors[2:]), **options)


def assert_same(there, here):
    for field in ("verdict", "elements", "claimed", "findings", "rows", "rows_judged", "budget"):
        assert getattr(there, field) == getattr(here, field), field
    assert math.isclose(there.ratio, here.ratio, rel_tol=1e-6) and math.isclose(there.ratio_lse, here.ratio_lse, rel_tol=1e-6)
    assert (there.worst["request"], there.worst["head"], there.worst["dim"]) == (here.worst["request"], here.worst["head"], here.worst["dim"])


def test_reports_are_those_of_copies(torch):
    call = Call(torch)
    assert call.judge().passed
    assert_same(call.judge(), call.judge(place=lambda x: x.cpu()))


def test_a_wrong_element_is_named(torch, tmp_path):
    call = Call(torch)
    call.out[1, 5, 7] += 1
    assert_same(call.judge(), call.judge(place=lambda x: x.cpu()))
    with pytest.raises(assay.AttentionError, match=r"request 1 query 0\) head 5 dim 7") as caught:
        assay.assert_attention(
            call.out, call.q, (call.k, call.v), page_table=call.table, seq_lens=call.lens, like="fa2", findings=tmp_path
        )
    assert caught.value.path is not None


def test_other_layouts(torch):
    call = Call(torch)
    heads_first = [x.transpose(1, 2).contiguous() for x in (call.k, call.v)]
    report = assay.judge(
        call.out, call.q, tuple(heads_first), kv_layout="HND", page_table=call.table, seq_lens=call.lens, lse=call.lse, lse_layout="TH",
        like="fa2",
    )  # fmt: skip
    assert_same(report, call.judge())
    pool = torch.stack([call.k, call.v], 1)
    assert assay.judge(call.out, call.q, pool, page_table=call.table, seq_lens=call.lens, like="fa2").passed


def test_dlpack(torch):
    class Other:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **options):
            return self.tensor.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

    call = Call(torch)
    assert_same(call.judge(place=Other), call.judge())


def test_some_on_the_host(torch):
    call = Call(torch)
    call.q = call.q.cpu()
    assert_same(call.judge(), call.judge(place=lambda x: x.cpu()))


def test_what_the_gpu_does_not_judge(torch):
    call = Call(torch)
    keys = int(call.lens.sum())
    mask = torch.ones(keys, dtype=torch.bool, device="cuda")
    assert call.judge(mask=mask, causal=False).passed


def test_the_cache_is_not_copied(torch):
    call = Call(torch, lengths=(65536,) * 8, heads=32, kv_heads=8, dim=128)
    cache = 2 * call.k.numel() * 2
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    assert call.judge().passed
    assert torch.cuda.max_memory_allocated() - before < cache // 100


def test_it_waits_for_the_callers_stream(torch):
    call = Call(torch)
    right, call.out = call.out, torch.full_like(call.out, 9.0)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        call.out.copy_(right)
        assert call.judge().passed


def test_merges(torch):
    o = torch.randn(3, 5, 4, 64, device="cuda").bfloat16()
    lse = torch.randn(3, 5, 4, device="cuda")
    out = (lse.double().softmax(0)[..., None] * o.double()).sum(0).bfloat16()
    merged = lse.double().logsumexp(0).float()
    there = assay.judge_merge(out, o, lse, lse=merged, lse_layout="TH", like="fa2")
    assert there.passed
    here = assay.judge_merge(out.cpu(), o.cpu(), lse.cpu(), lse=merged.cpu(), lse_layout="TH", like="fa2")
    assert there.elements == here.elements and math.isclose(there.ratio, here.ratio, rel_tol=1e-6)
    out[2, 3, 9] += 1
    assert assay.judge_merge(out, o, lse, like="fa2").worst["row"] == 2


def test_mistakes_are_named(torch):
    call = Call(torch)
    call.table[2, 3] = 10**6
    with pytest.raises(ValueError, match="page_table names page 1000000 for request 2"):
        call.judge()
