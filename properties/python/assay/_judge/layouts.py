# SPDX-License-Identifier: Apache-2.0
"""Where the keys of each request lie, and how many there are, however a call says it."""
import numpy as np

from .inputs import host, integers
from .tensors import Tensor


class Places:
    """Caches, their scales, page tables and lengths of one call."""

    def __init__(self, k, v, scales, page_table, page_indptr, seq_lens):
        self.k, self.v, self.scales = k, v, scales
        self.page_table, self.page_indptr, self.seq_lens = page_table, page_indptr, seq_lens

    def ragged(self, name, indptr):
        """Keys side by side: pages of one token. `name` is how the caller calls kv_indptr."""
        if self.page_table is not None or self.seq_lens is not None:
            raise ValueError(f"assay: {name} says what page_table and seq_lens would: give one of them")
        self.page_indptr = integers(name, indptr)
        self.page_table = Tensor("page_table", np.arange(self.k.shape[0], dtype=np.int64))
        self.seq_lens = np.diff(host(self.page_indptr))

    def ends_in(self, last_page_len):
        """FlashInfer's lengths: all pages but the last are full, and of the last one so many slots are, 0 too."""
        if self.page_indptr is None or self.seq_lens is not None:
            raise ValueError("assay: last_page_len goes with page_indptr, and in the place of seq_lens")
        pages, slots = np.diff(host(self.page_indptr)), self.k.shape[1]
        last = host(integers("last_page_len", last_page_len))
        if last.shape != pages.shape:
            raise ValueError(f"assay: last_page_len has shape {list(last.shape)}, expected [{len(pages)}] as page_indptr says")
        for r in np.flatnonzero((pages > 0) & ((last < 0) | (last > slots)))[:1]:
            raise ValueError(f"assay: last_page_len[{r}] is {last[r]}, expected 0 .. {slots}, the slots of a page")
        self.seq_lens = np.where(pages > 0, (pages - 1) * slots + last, 0)

    def before(self, seq_lens_before, queries_of):
        """Lengths without the keys of a request's own queries."""
        if self.seq_lens is not None:
            raise ValueError("assay: seq_lens_before is given beside seq_lens")
        before = host(integers("seq_lens_before", seq_lens_before))
        self.seq_lens = before + queries_of(len(before))

    def dense(self, cache_batch_idx, leftpad):
        """Lengths as a tensor, and caches [batch, slots, heads, dim] that are read by an index or behind a pad."""
        if self.seq_lens is None:
            raise ValueError("assay: seq_lens is not given (or last_page_len, or kv_indptr)")
        self.seq_lens = integers("seq_lens", self.seq_lens)
        if cache_batch_idx is None and leftpad is None:
            return
        if self.page_table is not None:
            raise ValueError("assay: cache_batch_idx and leftpad go with dense caches, without page_table and kv_indptr")
        lengths = host(self.seq_lens)
        index = integers("cache_batch_idx", np.arange(len(lengths)) if cache_batch_idx is None else cache_batch_idx)
        pad = integers("leftpad", 0 * lengths if leftpad is None else leftpad)
        for given in (index, pad):
            if given.shape != self.seq_lens.shape:
                raise ValueError(f"assay: {given.name} has shape {list(given.shape)}, expected {list(self.seq_lens.shape)} as seq_lens")
        if leftpad is None:
            self.page_table = Tensor("page_table", host(index)[:, None].copy())
        else:
            self._padded(lengths, host(index), host(pad))

    def _padded(self, lengths, index, pad):
        room = self.k.shape[1]
        for r, (n, first) in enumerate(zip(lengths, pad)):
            if not 0 <= first <= n:
                raise ValueError(f"assay: leftpad[{r}] is {first}, expected 0 .. seq_lens[{r}] = {n}")
            if n > room:
                raise ValueError(f"assay: seq_lens[{r}] is {n}, its cache holds {room}")
        # Pages of one token.
        entries = [index[r] * room + np.arange(first, n) for r, (n, first) in enumerate(zip(lengths, pad))]
        self.page_table = Tensor("page_table", np.concatenate(entries or [np.zeros(0, np.int64)]))
        self.page_indptr = Tensor("page_indptr", np.concatenate([[0], np.cumsum(lengths - pad)]))
        self.seq_lens = Tensor("seq_lens", lengths - pad)
        flat = lambda cache: cache.reshape(cache.shape[0] * room, 1, *cache.shape[2:])  # noqa: E731
        self.k, self.v = flat(self.k), flat(self.v)
        self.scales = [scale if scale is None or len(scale.shape) < 3 else flat(scale) for scale in self.scales]

    def tensors(self):
        """By the names of the C fields."""
        return dict(
            k=self.k, v=self.v, page_table=self.page_table, page_indptr=self.page_indptr, seq_lens=self.seq_lens,
            k_scale=self.scales[0], v_scale=self.scales[1],
        )  # fmt: skip
