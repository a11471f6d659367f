# SPDX-License-Identifier: Apache-2.0
"""Caches that are cut along the sequence: calls of shards, and the exchange of their states."""
import pytest

torch = pytest.importorskip("torch", minversion="2.4")
import assay_torch
from batches import batch, by_plan, same_bits, zeroed

ROWS, HEADS, DIM = 5, 6, 64


def states(device, ranks, dtype=torch.bfloat16, rows=ROWS):
    """What each rank holds; rank 1 has no keys of row 2."""
    g = torch.Generator().manual_seed(ranks)
    o = torch.randn(ranks, rows, HEADS, DIM, generator=g).to(dtype)
    lse = torch.randn(ranks, rows, HEADS, generator=g)
    if ranks > 1 and rows > 2:
        o[1, 2], lse[1, 2] = 0, -torch.inf
    return o.to(device), lse.to(device)


def windows_of(device, ranks, max_rows=ROWS, heads="scatter", dtype=torch.bfloat16):
    """The windows of ranks that share a device."""
    sizes = dict(num_heads=HEADS, head_dim=DIM, dtype=dtype, max_rows=max_rows, heads=heads)
    n = assay_torch.Windows.bytes(device, ranks, **sizes)
    memory = [zeroed(n, device) for _ in range(ranks)]
    return [assay_torch.Windows(w, [m.data_ptr() for m in memory], r, **sizes) for r, w in enumerate(memory)]


def merged(o, lse):
    return assay_torch.merge_states(o.transpose(0, 1).contiguous(), lse.transpose(0, 1).contiguous())


@pytest.mark.parametrize("heads", ["scatter", "all"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_one_rank_gives_the_bits_of_merge_states(device, dtype, heads):
    (windows,) = windows_of(device, 1, heads=heads, dtype=dtype)
    o, lse = states(device, 1, dtype)
    for _ in range(3):
        assert all(map(same_bits, assay_torch.exchange_states(o[0], lse[0], windows), merged(o, lse)))
    assert windows.missing() == []


def test_a_window_has_room_for_what_its_sizes_say(device):
    """More of anything takes more, and all heads take as many times as much as shares of them."""
    sizes = dict(num_heads=8, head_dim=64, dtype=torch.bfloat16, max_rows=64, heads="scatter")
    bytes_of = lambda ranks=4, **more: assay_torch.Windows.bytes(device, ranks, **{**sizes, **more})  # noqa: E731
    one, states = bytes_of(), 2 * 64 * 2 * (64 * 2 + 4)
    assert states * 4 <= one < states * 4 * 1.5
    for more, factor in ((dict(num_heads=16), 2), (dict(head_dim=128), 2), (dict(dtype=torch.float32), 2), (dict(max_rows=128), 2), (dict(heads="all"), 4), (dict(ranks=8), 1)):
        assert 0.9 * factor * one < bytes_of(**more) < 1.1 * factor * one, more


def test_a_window_of_a_type_that_is_not_exchanged_is_refused(device):
    with pytest.raises(assay_torch.Unsupported, match="^o_in is int32, supported are float16, bfloat16, float32"):
        assay_torch.Windows.bytes(device, 2, num_heads=8, head_dim=64, dtype=torch.int32, max_rows=4)


def test_ranks_share_the_heads(device):
    assert [w.own_heads for w in windows_of(device, 4)] == [(0, 1), (1, 3), (3, 4), (4, 6)]
    assert [w.own_heads for w in windows_of(device, 2, heads="all")] == [(0, 6)] * 2


@pytest.mark.parametrize("heads", ["scatter", "all"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_on_one_gpu_give_the_bits_of_merge_states(device, ranks, heads):
    if device.type != "cuda":
        pytest.skip("calls that wait for each other run one after the other on the executor")
    windows = windows_of(device, ranks, heads=heads)
    streams = [torch.cuda.Stream() for _ in windows]
    for rows in (ROWS, 1, 3, ROWS):
        o, lse = states(device, ranks, rows=rows)
        torch.cuda.synchronize()
        got = []
        for w, stream in zip(windows, streams):
            with torch.cuda.stream(stream):
                got.append(assay_torch.exchange_states(o[w.rank], lse[w.rank], w))
        torch.cuda.synchronize()
        for w, (mine, mine_lse) in zip(windows, got):
            first, end = w.own_heads
            want, want_lse = merged(o, lse)
            assert w.missing() == [] and same_bits(mine, want[:, first:end]) and same_bits(mine_lse, want_lse[:, first:end])


def test_a_peer_that_does_not_come_is_named(device):
    windows = windows_of(device, 3)
    o, lse = states(device, 3)
    out, _ = assay_torch.exchange_states(o[1], lse[1], windows[1], timeout=0.02)
    if device.type == "cuda":
        torch.cuda.synchronize()
    assert windows[1].missing() == [0, 2] and bool(out.isnan().all())
    for w in windows:
        w.clear()
    assert windows[1].missing() == []


def test_a_timeout_is_in_seconds(device, monkeypatch):
    (windows,) = windows_of(device, 1)
    o, lse = states(device, 1)
    nanoseconds = []
    monkeypatch.setattr("assay_torch.ranks._operator", lambda *_: lambda *arguments: nanoseconds.append(arguments[-1]))
    for seconds in ({}, {"timeout": 0.25}):
        assay_torch.exchange_states(o[0], lse[0], windows, **seconds)
    assert nanoseconds == [1_000_000_000, 250_000_000]


def test_errors_name_argument_and_limit(device):
    (windows,) = windows_of(device, 1)
    o, lse = states(device, 1)
    call = assay_torch.exchange_states
    for wrong, words in ((o[0][:, :5], r"bfloat16 of \[5, 5, 64\]"), (o[0][..., :32], r"bfloat16 of \[5, 6, 32\]"), (o[0].half(), r"float16 of \[5, 6, 64\]"), (o[0].float(), r"float32 of \[5, 6, 64\]")):
        with pytest.raises(assay_torch.InvalidArgument, match=rf"o_in is torch.{words}, expected torch.bfloat16 of \[rows, 6, 64\], as the windows are for"):
            call(wrong, lse[0][:, : wrong.shape[1]], windows)
    with pytest.raises(assay_torch.InvalidArgument, match="num_rows|max_rows"):
        call(o[0].repeat(2, 1, 1), lse[0].repeat(2, 1), windows)
    with pytest.raises(assay_torch.InvalidArgument, match="lse_in is .*expected"):
        call(o[0], lse[0][:, :5], windows)
    with pytest.raises(assay_torch.InvalidArgument, match="heads is 'some', expected scatter or all"):
        windows_of(device, 1, heads="some")
    with pytest.raises(assay_torch.InvalidArgument, match=r"addresses\[0\] is not that of window"):
        assay_torch.Windows(windows.window, [16], 0, num_heads=HEADS, head_dim=DIM, dtype=o.dtype, max_rows=ROWS)
    with pytest.raises(assay_torch.WorkspaceTooSmall, match="window_bytes is 256, these calls need"):
        short = assay_torch.Windows(
            windows.window[:256], windows.addresses, 0, num_heads=HEADS, head_dim=DIM, dtype=o.dtype, max_rows=ROWS
        )
        call(o[0], lse[0], short)


def shard_of(b, rank, ranks, interleave):
    """(k, v, page_table, lens) of a rank's tokens of a batch, in pages of their own."""
    size, device = b.k.shape[1], b.k.device
    lens, tables, pages = [], [], ([], [])
    for r, n in enumerate(b.seq_lens.tolist()):
        mine = torch.tensor([t for t in range(n) if t // interleave % ranks == rank], dtype=torch.long, device=device)
        at = b.page_table[r].long()[mine // size]
        lens.append(len(mine))
        count = -(-len(mine) // size)
        tables.append(list(range(len(pages[0]), len(pages[0]) + count)))
        for pool, into in zip((b.k, b.v), pages):
            padded = torch.zeros((count * size, *pool.shape[2:]), dtype=pool.dtype, device=device)
            padded[: len(mine)] = pool[at, mine % size]
            into.extend(padded.view(count, size, *pool.shape[2:]))
    width = max(map(len, tables)) or 1
    table = torch.tensor([t + [0] * (width - len(t)) for t in tables], dtype=torch.int32, device=device)
    k, v = (torch.stack(p) for p in pages)
    return (k, v), table, torch.tensor(lens, dtype=torch.int32, device=device)


@pytest.mark.parametrize("kernel", ["v1", "v2", "planned", "tree"])
@pytest.mark.parametrize("ranks, interleave", [(2, 1), (3, 5), (2, 16)])
def test_shards_merge_into_the_whole(device, kernel, ranks, interleave):
    slopes = torch.tensor([0.5**i for i in range(8)])
    b = batch(device, lens=(40, 3, 65), q_len=3, dtype=torch.float16, window_left=36, alibi_slopes=slopes)
    whole, whole_lse = b.call(assay_torch.paged_attention, return_lse=True)

    def one(rank, shard):
        cache, table, lens = shard_of(b, rank, ranks, interleave)
        more = dict(b.options, global_lens=b.seq_lens, dcp_rank=shard[0], dcp_world_size=shard[1], dcp_interleave=shard[2]) if shard else dict(b.options)
        if kernel in ("planned", "tree"):
            return by_plan(b.q, cache, table, lens, return_lse=True, tree=kernel == "tree", **more)
        return assay_torch.paged_attention(b.q, cache, table, lens, version=1 if kernel == "v1" else 2, return_lse=True, **more)

    def joined(shards):
        o, lse = zip(*(one(r, s) for r, s in enumerate(shards)))
        flat = assay_torch.merge_states(torch.stack(o, 2).flatten(0, 1), torch.stack(lse, 2).flatten(0, 1))
        return flat[0].view_as(whole), flat[1].view_as(whole_lse)

    o, lse = joined([(r, ranks, interleave) for r in range(ranks)])
    torch.testing.assert_close(o, whole, atol=4e-3, rtol=4e-3)
    torch.testing.assert_close(lse, whole_lse, atol=1e-4, rtol=1e-4)
    _, without = joined([None] * ranks)  # local lengths in the place of positions
    assert not torch.allclose(without, whole_lse, atol=1e-2)


def test_a_shard_is_refused_by_name(device):
    b = batch(device)
    with pytest.raises(assay_torch.InvalidArgument, match="global_lens"):
        b.call(assay_torch.paged_attention, dcp_world_size=2)
    with pytest.raises(assay_torch.InvalidArgument, match="global_lens is given"):
        b.call(assay_torch.paged_attention, global_lens=b.seq_lens)
    with pytest.raises(assay_torch.InvalidArgument, match="dcp_rank is 2, expected 0 .. 1"):
        b.call(assay_torch.paged_attention, global_lens=b.seq_lens, dcp_rank=2, dcp_world_size=2)
    with pytest.raises(assay_torch.InvalidArgument, match="dcp_rank is 1, expected 0"):
        b.call(assay_torch.paged_attention, dcp_rank=1)


def _serve(rank, file, where):
    """A rank with a GPU of its own."""
    import torch.distributed as dist

    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{file}", rank=rank, world_size=2)
    for heads in ("scatter", "all"):
        windows = assay_torch.Windows.symmetric(
            dist.group.WORLD, num_heads=HEADS, head_dim=DIM, dtype=torch.bfloat16, max_rows=ROWS, heads=heads
        )
        o, lse = states("cuda", 2)
        first, end = windows.own_heads
        want, want_lse = merged(o, lse)
        graph = torch.cuda.CUDAGraph()
        for _ in range(4):
            mine, mine_lse = assay_torch.exchange_states(o[rank], lse[rank], windows)
            torch.cuda.synchronize()
            assert windows.missing() == [] and same_bits(mine, want[:, first:end]) and same_bits(mine_lse, want_lse[:, first:end])
        dist.barrier()
        with torch.cuda.graph(graph):
            mine, _ = assay_torch.exchange_states(o[rank], lse[rank], windows)
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
        assert windows.missing() == [] and same_bits(mine, want[:, first:end])
        dist.barrier()
    dist.destroy_process_group()
    where.put(rank)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs of one host")
def test_cuda_symmetric_memory_of_two_gpus(tmp_path):
    context = torch.multiprocessing.get_context("spawn")
    done = context.Queue()
    processes = [context.Process(target=_serve, args=(rank, tmp_path / "group", done)) for rank in range(2)]
    for p in processes:
        p.start()
    for p in processes:
        p.join(100)
    assert [p.exitcode for p in processes] == [0, 0] and sorted(done.get() for _ in processes) == [0, 1]
