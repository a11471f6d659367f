# SPDX-License-Identifier: Apache-2.0
"""What engines hold in their hands gives the bits of the plainest form of the same call."""
import pytest

torch = pytest.importorskip("torch", minversion="2.4")
import assay_torch
from batches import batch, same_bits


def run(b, kv_cache, **more):
    return assay_torch.paged_attention(b.q, kv_cache, b.page_table, b.seq_lens, return_lse=True, **{**b.options, **more})


def same(a, b):
    return all(map(same_bits, a, b))


POOLS = {
    "flashinfer": (lambda k, v: torch.stack([k, v], 1), "NHD"),
    "flashinfer_hnd": (lambda k, v: torch.stack([k.transpose(1, 2), v.transpose(1, 2)], 1), "HND"),
    "vllm_two_halves": (lambda k, v: torch.stack([k, v]), "NHD"),
    "vllm_side_by_side": (lambda k, v: torch.cat([k, v], 3).transpose(1, 2).contiguous(), "HND"),
    "heads_apart": (lambda k, v: (k.transpose(1, 2).contiguous(), v.transpose(1, 2).contiguous()), "HND"),
    "layers_between": (lambda k, v: tuple(torch.stack([x, x], 1)[:, 0] for x in (k, v)), "NHD"),
}


@pytest.mark.parametrize("kv_dtype", [torch.bfloat16, torch.float8_e4m3fn])
@pytest.mark.parametrize("name", POOLS)
def test_pools(device, name, kv_dtype):
    b = batch(device, kv_dtype=kv_dtype)
    make, layout = POOLS[name]
    plain = run(b, (b.k, b.v))
    bytes_of = [x.view(torch.uint8) if kv_dtype != b.q.dtype else x for x in (b.k, b.v)]
    pool = make(*bytes_of)
    assert same(run(b, pool, kv_layout=layout, kv_dtype="e4m3" if kv_dtype != b.q.dtype else None), plain)


def test_a_pool_that_could_be_two_things_is_refused():
    b = batch("cpu")
    with pytest.raises(assay_torch.InvalidArgument, match=r"kv_cache is \[2, 2, 16, 2, 64\].*give \(k, v\)"):
        run(b, torch.zeros(2, 2, 16, 2, 64, dtype=torch.bfloat16))


def test_ragged_rows_are_calls_of_their_own(device):
    b = batch(device, lens=(30, 64, 9, 50), q_len=3)
    counts = [1, 3, 0, 2]
    start = torch.tensor([0, 1, 4, 4, 6], dtype=torch.int32, device=device)
    q = torch.cat([b.q[r, 3 - n :] for r, n in enumerate(counts)] + [torch.full_like(b.q[0, :2], torch.nan)])
    out = torch.full_like(q, 7)
    run_ragged = assay_torch.paged_attention(
        q, (b.k, b.v), b.page_table, b.seq_lens, out=out, qo_indptr=start, max_q_len=3, lse=torch.full(q.shape[:2], 7.0, device=device)
    )
    at = 0
    for r, n in enumerate(counts):
        if n:
            one = assay_torch.paged_attention(
                q[None, at : at + n], (b.k, b.v), b.page_table[r : r + 1], b.seq_lens[r : r + 1], version=1, return_lse=True
            )
            torch.testing.assert_close(out[at : at + n].float(), one[0][0].float(), atol=2**-7, rtol=2**-7)
            torch.testing.assert_close(run_ragged[1][at : at + n], one[1][0], atol=1e-4, rtol=1e-5)
        at += n
    assert (out[6:] == 7).all() and (run_ragged[1][6:] == 7).all()


def test_rows_of_padding(device):
    """Of a captured graph: length 0, a table of anything."""
    b = batch(device)
    padded = batch(device, lens=(5, 128, 0, 77, 0, 0))
    padded.q[:4], padded.page_table[:4, : b.page_table.shape[1]] = b.q, b.page_table
    got = assay_torch.paged_attention(padded.q, (b.k, b.v), padded.page_table, padded.seq_lens, version=1, return_lse=True)
    want = run(b, (b.k, b.v), version=1)
    assert same((got[0][:4], got[1][:4]), want)
    assert (got[0][4:] == 0).all() and (got[1][4:] == -torch.inf).all()


def test_lse_of_heads_first(device):
    b = batch(device)
    heads_first = torch.empty(8, 4, device=device)
    out, lse = run(b, (b.k, b.v), lse=heads_first.t())
    plain = run(b, (b.k, b.v))
    assert lse.data_ptr() == heads_first.data_ptr() and same((out, heads_first.t()), plain)


def test_q_and_out_inside_larger_tensors(device):
    b = batch(device)
    qkv, wide = torch.zeros(4, 12, 64, dtype=b.q.dtype, device=device), torch.full((4, 10, 64), 7.0, dtype=b.q.dtype, device=device)
    qkv[:, 2:10] = b.q
    out = assay_torch.paged_attention(qkv[:, 2:10], (b.k, b.v), b.page_table, b.seq_lens, out=wide[:, 1:9])
    assert same_bits(out, b.call(assay_torch.paged_attention)) and (wide[:, 0] == 7).all() and (wide[:, 9] == 7).all()


def test_one_of_everything(device):
    """Axes of one piece may have any stride; the library is told one that it takes."""
    b = batch(device, lens=(40,), heads=(1, 1))
    q = torch.as_strided(b.q, (1, 1, 64), (3, 5, 1))
    table = torch.as_strided(b.page_table, (1, b.page_table.shape[1]), (1, 1))
    got = assay_torch.paged_attention(q, (b.k, b.v), table, b.seq_lens)
    assert same_bits(got, b.call(assay_torch.paged_attention))


def test_a_plan_serves_other_lengths(device):
    b, later = batch(device), batch(device, lens=(100, 1, 60, 3))
    for tree in (False, True):
        function = assay_torch.tree_attention if tree else assay_torch.paged_attention
        shape = (4, b.page_table.shape[1])
        plan = b.plan(torch.zeros(shape, dtype=torch.int32, device=device), tree=tree)
        for x in (b, later, b):
            table = torch.zeros(shape, dtype=torch.int32, device=device)
            table[:, : x.page_table.shape[1]] = x.page_table[:, : shape[1]]
            plan.update(table, x.seq_lens)
            got = plan.run(x.q, (x.k, x.v))
            fresh = function(x.q, (x.k, x.v), table, x.seq_lens)
            assert same_bits(got, fresh)


def test_a_pool_of_no_pages(device):
    """Its tensors have no address; nothing of them is read, as no request has a key."""
    b = batch(device, lens=(0, 0))
    none = b.k[:0].clone()
    assert none.data_ptr() == 0
    each = torch.arange(3, dtype=torch.int32, device=device)
    for out, lse in (
        assay_torch.paged_attention(b.q, (none, none), b.page_table, b.seq_lens, version=1, return_lse=True),
        assay_torch.paged_attention(b.q, (none, none), b.page_table, b.seq_lens, return_lse=True),
        assay_torch.tree_attention(b.q, (none, none), b.page_table, b.seq_lens, return_lse=True),
        assay_torch.cascade_attention(b.q, [((none, none), b.page_table, b.seq_lens, each)], return_lse=True),
    ):
        assert (out == 0).all() and (lse == -torch.inf).all()
