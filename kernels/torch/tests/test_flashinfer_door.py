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
    monkeypatch.setattr(Wrapper, "run", lambda self, q, kv, **named: "FlashInfer's own")
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
    assert len(seen) == 3 and torch.equal(again, out)
    torch.testing.assert_close(lse.cpu(), right_lse, atol=1e-3, rtol=1e-3)


def test_what_the_template_alone_says_is_wrong(enabled, wrapper, batch):
    """Lengths in whole pages, as a function sees them that is given no last_page_len."""
    (indptr, indices, last), (q, k, v), (right, _) = batch
    wrapper.plan(indptr, indices, torch.full_like(last, PAGE), HEADS, KV_HEADS, DIM, PAGE, q_data_type=torch.float16)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(wrapper.run(q, (k, v)).float().cpu(), right, atol=2e-3, rtol=2e-3)


def test_more_than_the_template_says_stays_with_flashinfer(enabled, wrapper, batch, device):
    if device.type == "cuda":
        pytest.skip("FlashInfer would compile a kernel for each")
    tables, (q, k, v), _ = batch
    for plan, run in ((dict(window_left=5), {}), ({}, dict(k_scale=0.5)), (dict(logits_soft_cap=30.0), {})):
        wrapper.plan(*tables, HEADS, KV_HEADS, DIM, PAGE, **plan)
        assert wrapper.run(q, (k, v), **run) == "FlashInfer's own"
    wrapper.plan(*tables, HEADS, KV_HEADS, DIM, PAGE, "NONE", 5)  # window_left by its place
    assert wrapper.run(q, (k, v)) == "FlashInfer's own"
    wrapper.plan(*tables, HEADS, KV_HEADS, DIM, PAGE)
    assert wrapper.run(q, (k, v), out=torch.empty_like(q)).shape == q.shape
    assert wrapper.run(q, torch.stack([k, v], 1)) == "FlashInfer's own"
