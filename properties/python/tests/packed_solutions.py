# SPDX-License-Identifier: Apache-2.0
"""Solutions for the interface of adapters/packed_model.py: one that is right, and wrong ones."""
import torch


class Model(torch.nn.Module):
    def __init__(self, batch, num_heads, num_kv_heads, head_dim, seq_len, page_size):
        super().__init__()
        self.group, self.keys, self.scale = num_heads // num_kv_heads, seq_len, head_dim**-0.5

    def forward(self, query, kv_cache, block_table, seq_lens):
        k, v = kv_cache[block_table.long()].flatten(1, 2).float().transpose(1, 2).chunk(2, -1)  # [batch, kv_heads, keys, dim]
        visible = torch.arange(k.shape[2])[None] < seq_lens[:, None]
        return self.attend(query.float().unflatten(1, (-1, self.group)), k, v, visible).flatten(1, 2).to(query)

    def attend(self, q, k, v, visible):
        scores = (q @ k.transpose(-1, -2) * self.scale).masked_fill(~visible[:, None, None], float("-inf"))
        return torch.nan_to_num(torch.softmax(scores, -1)) @ v.masked_fill(~visible[:, None, :, None], 0)


class LengthsOfItsShape(Model):
    def forward(self, query, kv_cache, block_table, seq_lens):
        return super().forward(query, kv_cache, block_table, torch.full_like(seq_lens, self.keys))


class SplitsFromWholePages(Model):
    """The first keys of each split of 100 count in the split before, too."""

    def attend(self, q, k, v, visible):
        taken = torch.cat([torch.arange(begin // 16 * 16, min(begin + 100, k.shape[2])) for begin in range(0, k.shape[2], 100)])
        return super().attend(q, k[:, :, taken], v[:, :, taken], visible[:, taken])


class OutputsByPointer(Model):
    def __init__(self, *numbers):
        super().__init__(*numbers)
        self.known = {}

    def forward(self, query, kv_cache, block_table, seq_lens):
        place = query.data_ptr(), kv_cache.data_ptr()
        if place not in self.known:
            self.known[place] = super().forward(query, kv_cache, block_table, seq_lens)
        return self.known[place].clone()


class LengthsOfItsFirstCall(Model):
    def forward(self, query, kv_cache, block_table, seq_lens):
        self.first = getattr(self, "first", seq_lens.clone())
        return super().forward(query, kv_cache, block_table, self.first)


class PagesOfTheFirstRequest(Model):
    def forward(self, query, kv_cache, block_table, seq_lens):
        columns = max(1, -(-int(seq_lens[0]) // kv_cache.shape[1]))
        return super().forward(query, kv_cache, block_table[:, :columns], seq_lens)


class ScalesItsQuery(Model):
    def forward(self, query, kv_cache, block_table, seq_lens):
        out = super().forward(query, kv_cache, block_table, seq_lens)
        query.mul_(self.scale)
        return out


class NaNInItsWorkspace(Model):
    """The workspace of each request is written as far as its keys reach, and multiplied with weights of 0 behind."""

    def forward(self, query, kv_cache, block_table, seq_lens):
        self.space = getattr(self, "space", torch.full((len(seq_lens), block_table.shape[1] * kv_cache.shape[1]), float("nan")))
        out = super().forward(query, kv_cache, block_table, seq_lens)
        for request, length in enumerate(seq_lens.tolist()):
            self.space[request, :length] = 1
        return out + (0 * self.space).sum(-1)[:, None, None].to(out)


class OfAnotherProblem(torch.nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()


WRONG = (LengthsOfItsShape, SplitsFromWholePages, OutputsByPointer, LengthsOfItsFirstCall, PagesOfTheFirstRequest, ScalesItsQuery, NaNInItsWorkspace)
