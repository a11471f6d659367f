# SPDX-License-Identifier: Apache-2.0
"""A proposal for checkers that compare paged decode attention with a reference and a tolerance: three calls more, with
large scores. It needs torch alone; the checker has a model, a reference and inputs already."""
import torch

_CYCLES = 1 << 28  #: that a GPU waits before inputs are written: 0.15 s
_WARM = 11  #: calls before, so that graphs are captured and outputs could have been remembered


def cases(query, kv_cache, block_table, seq_lens):
    """(name, inputs) made from inputs of N(0, 0.1) with full lengths: the first request is not the longest, and the last
    key of each request has all of the weight, with a score of 100 that overflows exp in fp32."""
    slots, dim, full = kv_cache.shape[1], query.shape[-1], int(seq_lens.max())
    ragged = torch.randint(1, full, seq_lens.shape).to(seq_lens)
    ragged[:2] = torch.tensor([min(slots + 1, full), full]).to(seq_lens)[: len(ragged)]
    yield "ragged", (8 * query, 8 * kv_cache, block_table, ragged)
    groups = query.unflatten(1, (kv_cache.shape[2], -1))
    alike = 8 * groups[:, :, :1].expand_as(groups)  # the heads of a group ask for the same key
    last = (ragged - 1).long()
    strong, pages = 8 * kv_cache, block_table.gather(1, (last // slots)[:, None])[:, 0].long()
    along = alike[:, :, 0].float()
    strong[pages, last % slots, :, :dim] = (along * 100 * dim**0.5 / (along**2).sum(-1, keepdim=True)).to(strong)
    yield "last key", (alike.flatten(1, 2), strong, block_table, ragged)


def seen(model, reference, inputs, tolerance=5e-2):
    """The names of calls whose outputs differ: new bytes in the storage of calls before, still being written on a GPU."""
    own, names = [tensor.clone() for tensor in inputs], []
    for _ in range(_WARM):
        model(*own)
    for name, changed in cases(*inputs):
        expected = reference(*changed).float()
        if own[0].is_cuda:
            torch.cuda._sleep(_CYCLES)
        for tensor, new in zip(own, changed):
            tensor.copy_(new)
        if not torch.allclose(model(*own).float(), expected, atol=tolerance, rtol=tolerance):
            names.append(name)
    return names
