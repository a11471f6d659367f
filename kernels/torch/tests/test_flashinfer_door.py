# SPDX-License-Identifier: Apache-2.0
"""Our decode behind FlashInfer's wrapper, through its trace_apply; a partial last page counts as it should. On CPU tensors FlashInfer's
own plan and run, which need a GPU, are stood in for."""
import math

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
pytest.importorskip("flashinfer.trace_apply")
from assay_torch import flashinfer_door, paged_attention
from flashinfer.decode import BatchDecodeWithPagedKVCacheWrapper as Wrapper

HEADS, KV_HEADS, DIM, PAGE = 4, 2, 128, 16
LENGTHS = (37, 16, 5)


def reference(q, k, v, rows):
    """(O, LSE of base 2) of each request over its own keys in fp32."""
    out, lse = [], []
    for r, (pages, length) in enumerate(rows):
        keys, values = (x[pages].flatten(0, 1)[:length].float().repeat_interleave(HEADS // KV_HEADS, 1) for x in (k, v))
        scores = torch.einsum("hd,khd->hk", q[r].float(), keys) * DIM**-0.5
        out.append(torch.einsum("hk,khd->hd", scores.softmax(1), values))
        lse.append(scores.logsumexp(1) / math.log(2))
    return torch.stack(out), torch.stack(lse)


@pytest.fixture
def wrapper(device, monkeypatch):
    if device.type == "cuda":
        return Wrapper(torch.zeros(64 << 20, dtype=torch.uint8, device=device), "NHD")
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)  # it needs a driver
    made = Wrapper.__new__(Wrapper)

    def plan(self, indptr, indices, last_page_len, *more, **named):
        self._paged_kv_indptr_buf, self._paged_kv_indices_buf, self._sm_scale = indptr, indices, None

    monkeypatch.setattr(Wrapper, "plan", plan)
    monkeypatch.setattr(Wrapper, "run", lambda self, q, kv, *more, **named: "FlashInfer's own")
    return made


@pytest.fixture
def enabled(wrapper):
    disable = flashinfer_door.enable(num_qo_heads=HEADS, num_kv_heads=KV_HEADS, head_dim=DIM, page_size=PAGE)
    yield
    disable()


@pytest.fixture
def batch(device):
    g = torch.Generator().manual_seed(0)
    counts = [-(-n // PAGE) for n in LENGTHS]
    indices = torch.randperm(sum(counts), generator=g).int()
    indptr = torch.tensor([0, *counts]).cumsum(0).int()
    last = torch.tensor([(n - 1) % PAGE + 1 for n in LENGTHS], dtype=torch.int32)
    q = torch.randn(len(LENGTHS), HEADS, DIM, generator=g).half()
    k, v = (torch.randn(sum(counts), PAGE, KV_HEADS, DIM, generator=g).half() for _ in "kv")
    rows = [(indices[a:b].long(), n) for a, b, n in zip(indptr, indptr[1:], LENGTHS)]
    return [x.to(device) for x in (indptr, indices, last)], [x.to(device) for x in (q, k, v)], reference(q, k, v, rows)


def test_a_program_of_flashinfer_is_ours(enabled, wrapper, batch, monkeypatch):
    (tables, (q, k, v), (right, right_lse)), seen = batch, []
    monkeypatch.setattr(flashinfer_door, "paged_attention", lambda *a, **n: seen.append(1) or paged_attention(*a, **n))
    wrapper.plan(*tables, HEADS, KV_HEADS, DIM, PAGE, q_data_type=torch.float16, kv_data_type=torch.float16)
    out = torch.empty_like(q)
    for given in (dict(), dict(out=out)):
        torch.testing.assert_close(wrapper.run(q, (k, v), **given).float().cpu(), right, atol=2e-3, rtol=2e-3)
    torch.testing.assert_close(out.float().cpu(), right, atol=2e-3, rtol=2e-3)
    again, lse = wrapper.run(q, (k, v), return_lse=True)
    assert len(seen) == 3 and torch.equal(again, out) and flashinfer_door._wrapper.get(None) is None
    torch.testing.assert_close(lse.cpu(), right_lse, atol=1e-3, rtol=1e-3)


def test_what_the_template_alone_says_is_wrong(enabled, wrapper, batch):
    """Lengths in whole pages, as a function sees them that is given no last_page_len."""
    (indptr, indices, last), (q, k, v), (right, _) = batch
    wrapper.plan(indptr, indices, torch.full_like(last, PAGE), HEADS, KV_HEADS, DIM, PAGE, q_data_type=torch.float16)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(wrapper.run(q, (k, v)).float().cpu(), right, atol=2e-3, rtol=2e-3)


#: Of plan and run: what is the same as nothing, and what is more than the template says.
SAME = dict(pos_encoding_mode="NONE", window_left=-1, logits_soft_cap=0.0, q_len_per_req=1, disable_split_kv=False, rope_scale=None, q_data_type=torch.float16,
            kv_data_type=torch.float16, o_data_type=torch.float16, data_type=torch.float16, sm_scale=None, non_blocking=True, block_tables=None, seq_lens=torch.ones(3))  # fmt: skip
MORE = dict(pos_encoding_mode="ALIBI", window_left=5, logits_soft_cap=30.0, q_len_per_req=2, disable_split_kv=True, rope_scale=1.0, rope_theta=1e4, fixed_split_size=8)
SAME_OF_RUN = dict(q_scale=1.0, k_scale=1.0, v_scale=1, window_left=-1, sinks=None, q_len_per_req=1, skip_softmax_threshold_scale_factor=None, kv_cache_sf=None, enable_pdl=True)
MORE_OF_RUN = dict(q_scale=0.5, k_scale=torch.ones(2), v_scale=torch.ones(1), window_left=0, sinks=torch.ones(4), q_len_per_req=2, skip_softmax_threshold_scale_factor=1.0,
                   kv_cache_sf=torch.ones(1), anything=3)  # fmt: skip


def test_more_than_the_template_says_stays_with_flashinfer(enabled, wrapper, batch, device):
    if device.type == "cuda":
        pytest.skip("FlashInfer would compile a kernel for each")
    tables, (q, k, v), _ = batch

    def own(*by_place, kv=(k, v), run=(), planned=(), ran=()):
        """Whether FlashInfer computes a run with this beside what the template has."""
        wrapper.plan(*tables, HEADS, KV_HEADS, DIM, PAGE, *by_place, **dict(planned))
        result = wrapper.run(q, kv, *run, **dict(ran))
        return isinstance(result, str) and result == "FlashInfer's own"

    for which, same, more in (("planned", SAME, MORE), ("ran", SAME_OF_RUN, MORE_OF_RUN)):
        assert [name for name in same if own(**{which: {name: same[name]}})] == []
        assert [name for name in more if not own(**{which: {name: more[name]}})] == []
    assert own("NONE", 5) and own(run=("more",)) and own(kv=torch.stack([k, v], 1))
    for name, value in (("_kv_layout", "HND"), ("_use_cuda_graph", True)):
        setattr(wrapper, name, value)
        assert own(), name
        delattr(wrapper, name)
    assert wrapper.run(q, (k, v), out=torch.empty_like(q)).shape == q.shape


def test_a_table_goes_to_the_device_of_q_once(wrapper, batch, monkeypatch):
    tables, (q, k, v), _ = batch
    seen, wrapper.assay_table = [], flashinfer_door.table_of(*tables, PAGE)
    monkeypatch.setattr(flashinfer_door, "paged_attention", lambda *given, **more: seen.append((given, more)))
    token = flashinfer_door._wrapper.set(wrapper)
    for _ in range(2):
        flashinfer_door.attend(q.to("meta"), k, v, sm_scale=torch.tensor(0.5), return_lse=1, kv_indptr="unused")
    flashinfer_door._wrapper.reset(token)
    (first, more), (second, _) = seen
    assert [x.device.type for x in first[2:]] == ["meta"] * 2 and all(a is b for a, b in zip(first[2:], second[2:])) and first[1] == (k, v)
    assert more == dict(sm_scale=0.5, return_lse=True, lse_base=2) and type(more["sm_scale"]) is float and more["return_lse"] is True


def test_it_can_be_taken_back(wrapper):
    from flashinfer import trace_apply

    before = Wrapper.plan, Wrapper.run
    disable = flashinfer_door.enable(num_qo_heads=HEADS, num_kv_heads=KV_HEADS, head_dim=DIM, page_size=PAGE)
    assert trace_apply.is_enabled() and Wrapper.plan is not before[0] and Wrapper.run is not before[1]
    disable()
    assert not trace_apply.is_enabled() and (Wrapper.plan, Wrapper.run) == before
