# SPDX-License-Identifier: Apache-2.0
"""Tensors of a decode-attention call in a regime: assay.inputs."""
import dataclasses
import math
import secrets

import numpy as np

from ..elements import from_float32, to_float32
from .counts import codes_of
from .regimes import REGIMES, edges, lengths, regime, strong_score
from .shape import Shape

#: Values behind lengths, where no regime has NaN there: a kernel that reads them is far off, and finite.
_BEHIND_KEY, _BEHIND_VALUE = 8.0, 24.0
#: The smallest and the largest scale of V, in which sums of V stay normal numbers of the dtype.
_MAGNITUDES = {"bf16": (2.0**-30, 2.0**40), "fp16": (2.0**-7, 2.0**12)}
_SPARE_PAGES = 3  #: that no request has
_MANY_PAGES, _MOST_MANY = 1100, 1 << 25  #: pages of a pool that has many, and elements of one that may
_LOWER = 150.0  #: what scores lose in the regime low_scores
#: By how much K is larger and q smaller: scores stay as they are.
_WIDER = {"bf16": 2.0**24, "fp16": 2.0**5}


class Inputs:
    """Tensors of one call. NumPy; bf16 is uint16.

    q          [batch, num_qo_heads, head_dim], or [batch, q_len, num_qo_heads, head_dim] where q_len is not 1
    k_cache, v_cache   [pages, page_size, num_kv_heads, head_dim], or [batch, keys, num_kv_heads, head_dim] with page_size 0
    page_table [batch, columns] int32, or None; what stands behind a request's pages is a page of nobody
    seq_lens   [batch] int32
    sm_scale   1 / sqrt(head_dim), but for the regimes small_scale and large_scale
    """

    NAMES = ("q", "k_cache", "v_cache", "page_table", "seq_lens")

    def __init__(self, shape, regime, seed, tensors):
        self.shape, self.regime, self.seed = shape, regime, seed
        self.sm_scale = REGIMES[regime].scale / math.sqrt(shape.head_dim)
        for name in self.NAMES:
            setattr(self, name, tensors.get(name))

    def tensors(self):
        """By name, those that there are."""
        return {name: getattr(self, name) for name in self.NAMES if getattr(self, name) is not None}

    def with_tensors(self, **tensors):
        """The same call with other tensors."""
        return Inputs(self.shape, self.regime, self.seed, {**self.tensors(), **tensors})

    def part(self, requests, columns=None):
        """The call of those requests alone, in that order, with so many columns of the table (None: all)."""
        tensors = {"q": self.q[requests], "seq_lens": self.seq_lens[requests]}
        if self.page_table is None:
            tensors.update(k_cache=self.k_cache[requests], v_cache=self.v_cache[requests])
        else:
            tensors["page_table"] = np.ascontiguousarray(self.page_table[requests, :columns])
        made = self.with_tensors(**tensors)
        made.shape = dataclasses.replace(self.shape, batch=len(requests))
        return made

    def torch(self, device="cpu"):
        """The same with tensors of torch, copies on `device`."""
        import torch

        def tensor(array):
            made = torch.from_numpy(np.array(array.view(np.int16) if array.dtype == np.uint16 else array))
            return (made.view(torch.bfloat16) if array.dtype == np.uint16 else made).to(device)

        return Inputs(self.shape, self.regime, self.seed, {name: tensor(array) for name, array in self.tensors().items()})

    def arguments(self):
        """What judge is called with beside out and lse."""
        return dict(q=self.q, kv_cache=(self.k_cache, self.v_cache), page_table=self.page_table, seq_lens=self.seq_lens, sm_scale=self.sm_scale)

    def judge(self, out, lse=None, **options):
        """The JudgeReport of outputs for these inputs; options as of assay.judge."""
        from ..judging import judge

        return judge(out, lse=lse, **{**self.arguments(), **options})

    def values(self, name):
        """A tensor as float32."""
        return to_float32(getattr(self, name), self.shape.dtype)


def inputs(shape, regime="ordinary", seed=None):
    """Inputs of a decode-attention call.

    shape   a Shape, or "batch=8,heads=32/8,head_dim=128,keys=1024,page_size=16" (what is missing has these numbers; q_len=1,
            dtype=bf16)
    regime  what they are like (assay.REGIMES says it of each): ordinary, ragged, lengths, strong_last, strong_first,
            strong_edges, large_scores, small, magnitudes, short, longest_first, shared_pages, zero_key, low_scores,
            wide_keys, small_scale, large_scale, equal_keys, counts, nan_behind, empty, one_active
    seed    of everything drawn; None: of the system's random numbers, and in the result

    Independent numbers of N(0, 0.1) hide a lost key in 1 / keys of an output's deviation; one key that outweighs all others shows it.
    """
    shape = Shape.parse(shape)
    seed = secrets.randbits(63) if seed is None else seed
    return _Drawing(shape, regime, seed).inputs()


def one_strong(given, rng):
    """Of inputs of the regime strong_edges: ((page, slot, kv head) of a strong key, (request, a head of q that sees it))."""
    shape, slots = given.shape, given.k_cache.shape[1]
    request, head = int(rng.integers(shape.batch)), int(rng.integers(shape.num_kv_heads))
    pages = np.arange(shape.batch)[request : request + 1] if given.page_table is None else given.page_table[request, : -(-int(given.seq_lens[request]) // slots)]
    keys = to_float32(given.k_cache[pages, :, head], shape.dtype).reshape(-1, shape.head_dim)[: given.seq_lens[request]]
    at = int(np.square(keys).sum(-1).argmax())
    group = shape.num_qo_heads // shape.num_kv_heads
    return (int(pages[at // slots]), at % slots, head), (request, head * group + int(rng.integers(group)))


class _Drawing:
    def __init__(self, shape, name, seed):
        self.shape, self.name, self.seed = shape, name, seed
        self.regime, self.rng = regime(name), np.random.default_rng(seed)
        self.lengths = lengths(self.regime.lengths, shape, self.rng)
        if self.regime.pages == "shared" and shape.batch > 3:  # two of one length, as beams have
            self.lengths[3] = self.lengths[2]
        self.slots = shape.page_size or shape.keys
        self.columns = shape.columns or 1

    def inputs(self):
        shape = self.shape
        pages = shape.batch * self.columns + (self._spare() if shape.page_size else 0)
        self.table = self._table(pages)
        cache = (pages, self.slots, shape.num_kv_heads, shape.head_dim)
        queries = (shape.batch, shape.q_len, shape.num_kv_heads, shape.num_qo_heads // shape.num_kv_heads, shape.head_dim)
        # A score is a sum of head_dim products times 1 / sqrt(head_dim): its deviation is that of q times that of k.
        each = math.sqrt(self.regime.score)
        self.q, self.k, self.v = self._normal(queries, each), self._normal(cache, each), self._normal(cache, self.regime.value)
        self._special()
        self._behind()
        q = self.q.reshape(shape.batch, shape.q_len, shape.num_qo_heads, shape.head_dim)
        made = dict(q=q[:, 0] if shape.q_len == 1 else q, k_cache=self.k, v_cache=self.v, seq_lens=np.array(self.lengths, np.int32))
        made = {name: np.ascontiguousarray(array) for name, array in made.items()}
        if shape.page_size:
            made["page_table"] = self.table
        return Inputs(shape, self.name, self.seed, made)

    def _spare(self):
        """How many pages no request has."""
        many = self.regime.pages == "many" and _MANY_PAGES * self.slots * self.shape.num_kv_heads * self.shape.head_dim <= _MOST_MANY
        return max(_SPARE_PAGES, _MANY_PAGES - self.shape.batch * self.columns) if many else _SPARE_PAGES

    def _table(self, pages):
        """Pages in any order; behind a request's own, one that no request has."""
        order = self.rng.permutation(pages).astype(np.int32) if self.shape.page_size else np.arange(pages, dtype=np.int32)
        consecutive = self.shape.page_size > 0 and self.regime.pages == "consecutive"
        if consecutive:
            order = np.roll(np.arange(pages, dtype=np.int32), -_SPARE_PAGES)
        table = order[: self.shape.batch * self.columns].reshape(self.shape.batch, self.columns).copy()
        if consecutive:  # in another order than the requests
            table = np.roll(table, 1, axis=0)
        for request, length in enumerate(self.lengths):
            table[request, -(-length // self.slots) :] = order[-1]
        if self.regime.pages == "shared" and self.shape.page_size:
            self._share(table)
        return table

    def _share(self, table):
        """Whole pages of a request are those of the request in front of it, up to half of the shorter one."""
        for request in range(1, self.shape.batch):
            whole = min(self.lengths[request - 1], self.lengths[request]) // self.slots
            table[request, : -(-whole // 2)] = table[request - 1, : -(-whole // 2)]

    def _rounded(self, values):
        return from_float32(values, self.shape.dtype)

    def _normal(self, dims, deviation):
        """Of 65,536 normal numbers any: ten times as fast as drawing each."""
        some = self._rounded(self.rng.standard_normal(1 << 16, dtype=np.float32) * np.float32(deviation))
        return some[self.rng.integers(0, 1 << 16, dims, dtype=np.uint16)]

    def _special(self):
        if self.regime.strong:
            self._strong_keys()
        if self.regime.pages == "shared":
            self.q[3:4] = self.q[2:3]
            self.q[1::4, :, int(self.rng.integers(self.shape.num_kv_heads)), 0] = 0
        if self.regime.special == "low":
            self._lower()
        if self.regime.special == "wide":
            wider = np.float32(_WIDER[self.shape.dtype])
            self.q, self.k = (self._rounded(to_float32(x, self.shape.dtype) * by) for x, by in ((self.q, 1 / wider), (self.k, wider)))
        if self.regime.special == "equal":
            for request in range(self.shape.batch):
                self.k[self._pages(request)] = self.k[self.table[request, 0], 0]
        if self.regime.special == "magnitudes":
            low, high = _MAGNITUDES[self.shape.dtype]
            scales = np.array([(low, 1, high)[head % 3] for head in range(self.shape.num_kv_heads)], np.float32)
            self.v = self._rounded(to_float32(self.v, self.shape.dtype) * scales[:, None])
        if self.regime.special == "counts":
            self._counting()

    def _pages(self, request):
        return self.table[request, : -(-self.lengths[request] // self.slots)]

    def _strong_keys(self):
        """Each head of a request gets one key along a direction that all its queries have a part of."""
        shape = self.shape
        signs = self.rng.choice(np.array([-1, 1], np.float32), (shape.batch, shape.num_kv_heads, shape.head_dim)) / math.sqrt(shape.head_dim)
        along = 4.0
        self.q = self._rounded(to_float32(self.q, shape.dtype) * np.float32(0.25) + along * signs[:, None, :, None])
        turn = int(self.rng.integers(0, 1 << 16))
        for request, length in enumerate(self.lengths):
            places = edges(length, self.slots)
            for head in range(shape.num_kv_heads if length else 0):
                at = {"first": 0, "last": length - 1}.get(self.regime.strong, places[(turn + request * shape.num_kv_heads + head) % len(places)])
                strong = strong_score(length) * math.sqrt(shape.head_dim) / along * signs[request, head]
                if self.regime.special == "zero":  # the others lose what the strong key has more
                    self._move(request, head, -strong)
                    strong = 0 * strong
                self.k[self.table[request, at // self.slots], at % self.slots, head] = self._rounded(strong)

    def _lower(self):
        """One dim gives every score the same part."""
        size = math.sqrt(_LOWER * math.sqrt(self.shape.head_dim))
        self.q[..., 0], self.k[..., 0] = self._rounded(np.float32(size)), self._rounded(np.float32(-size))

    def _move(self, request, head, by):
        pages = self._pages(request)
        self.k[pages, :, head] = self._rounded(to_float32(self.k[pages, :, head], self.shape.dtype) + by.astype(np.float32))

    def _counting(self):
        """q is 0, and V has the codes of each key (counts.py)."""
        self.q[...] = 0
        one = self._rounded(np.float32(1))
        for request, length in enumerate(self.lengths):
            rows = self.v[self._pages(request)].reshape(-1, self.shape.num_kv_heads, self.shape.head_dim)
            rows[...] = 0
            at, half = np.arange(len(rows)), self.shape.head_dim // 2
            for head in range(self.shape.num_kv_heads if half else 0):
                for part, code in enumerate(codes_of(at, half, head)):
                    rows[at, head, part * half + code] = one
            self.v[self._pages(request)] = rows.reshape(-1, *self.v.shape[1:])

    def _behind(self):
        """Slots that no request sees, in its last page and in pages of nobody."""
        key, value = {"nan": (np.nan, np.nan), "counts": (0, 0)}.get(self.regime.special, (_BEHIND_KEY, _BEHIND_VALUE))
        key, value = self._rounded(np.float32(key)), self._rounded(np.float32(value))
        used = np.zeros(self.k.shape[0], bool)
        for request, length in enumerate(self.lengths):
            own = self._pages(request)
            used[own] = True
            if length % self.slots:
                self.k[own[-1], length % self.slots :], self.v[own[-1], length % self.slots :] = key, value
        self.k[~used], self.v[~used] = key, value
