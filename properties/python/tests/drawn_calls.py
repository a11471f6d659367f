# SPDX-License-Identifier: Apache-2.0
"""Calls of attention drawn by Hypothesis, and the ways in which a caller may say the same one."""
import dataclasses
import math

import numpy as np
from assay import arithmetic, elements
from hypothesis import strategies as st

#: What lies where nothing may be read: infinity in bf16 and fp16, NaN in e4m3.
UNREAD = {2: 0x7F80, 1: 0x7F}
FP8 = ("e4m3", "e5m2")
#: Scales of tokens are judged where weights stay fp32.
LIKE = dataclasses.replace(arithmetic.like("flash"), p_format="fp32")


@dataclasses.dataclass
class Logical:
    """One call, whatever its layout: keys of each request side by side, outputs of any value."""

    dtype: str
    kv_dtype: str
    out_dtype: str
    queries: list  #: of each request
    keys: list
    q: np.ndarray
    out: np.ndarray
    lse: np.ndarray  #: [rows, heads], values of fp16
    k: np.ndarray  #: [all keys, kv heads, dim]
    v: np.ndarray
    options: dict  #: those that say the same in every layout
    scales: dict  #: k_scale, v_scale: [1], [kv heads], [all keys, kv heads] or [all keys, kv heads, blocks]
    masks: list  #: [queries, keys] of each request, or none

    def of_request(self, array, r):
        begin = sum(self.keys[:r])
        return array[begin : begin + self.keys[r]]


def bits(rng, shape, dtype):
    if dtype == "int8":
        return rng.integers(-127, 128, shape).astype(np.int8)
    return elements.from_float32(rng.standard_normal(shape).astype(np.float32), dtype)


def _scales(draw, rng, keys, kv_heads, dim, kv_dtype, of_tokens):
    """Scales of tokens or of their blocks come for K and V; others come for either."""
    if of_tokens and draw(st.integers(0, 2)):
        shape = (keys, kv_heads, *([2] if dim % 2 == 0 and draw(st.booleans()) else []))
        return {name: rng.uniform(0.5, 2, shape).astype(np.float32) for name in ("k_scale", "v_scale")}
    given = [name for name in ("k_scale", "v_scale") if kv_dtype == "int8" or draw(st.booleans())]
    return {name: rng.uniform(0.5, 2, draw(st.sampled_from([1, kv_heads]))).astype(np.float32) for name in given}


@st.composite
def logical_calls(draw):
    rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    kv_heads, group, dim = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.sampled_from([1, 4, 8, 16]))
    heads, requests = kv_heads * group, draw(st.integers(1, 4))
    alike = draw(st.booleans())
    each = draw(st.integers(1, 3))
    queries = [each if alike else draw(st.integers(0, 3)) for _ in range(requests)]
    keys = [draw(st.integers(0, 9)) for _ in range(requests)]
    dtype = draw(st.sampled_from(["fp16", "bf16", *FP8]))
    kv_dtype = dtype if dtype in FP8 or draw(st.booleans()) else draw(st.sampled_from([*FP8, "int8"]))
    rows, options, scales = sum(queries), {}, {}
    if kv_dtype in (*FP8, "int8"):
        scales = _scales(draw, rng, sum(keys), kv_heads, dim, kv_dtype, dtype not in FP8 and kv_dtype != "e5m2")
    if dtype in FP8:
        options["q_scale"] = rng.uniform(0.5, 2, draw(st.sampled_from([(1,), (heads,), (rows, heads)]))).astype(np.float32)
    if draw(st.booleans()):
        options["sinks"] = rng.standard_normal(heads).astype(np.float32)
    if draw(st.booleans()):
        options["logits_soft_cap"] = 1.5
    if kv_dtype == "int8" or any(scale.ndim > 1 for scale in scales.values()):
        options["like"] = LIKE
    options["sm_scale"] = draw(st.sampled_from([0.125, 1.0, 1 / math.sqrt(dim)]))
    options["lse_base"] = draw(st.sampled_from(["e", 2]))
    masks = [rng.integers(0, 2, (n, m)).astype(bool) for n, m in zip(queries, keys)] if draw(st.integers(0, 2)) == 0 else []
    if not masks:
        options["causal"] = draw(st.booleans())
        if draw(st.booleans()):
            options["alibi_slopes"] = rng.uniform(0, 1, heads).astype(np.float32)
        options.update(window_left=draw(st.integers(-1, 4)), window_right=-1 if options["causal"] else draw(st.integers(-1, 3)))
    elif draw(st.booleans()):
        # A mask is joined with what is said beside it.
        options["causal"] = draw(st.booleans())
        options.update(window_left=draw(st.integers(-1, 4)), window_right=-1 if options["causal"] else draw(st.integers(-1, 3)))
    out_dtype = draw(st.sampled_from(["fp16", "bf16", "fp32", *FP8] if dtype in FP8 else [dtype, "fp32", *FP8]))
    if out_dtype in FP8:
        options["o_scale"] = np.array([0.75], np.float32)
    return Logical(
        dtype, kv_dtype, out_dtype, queries, keys, bits(rng, (rows, heads, dim), dtype), bits(rng, (rows, heads, dim), out_dtype),
        rng.standard_normal((rows, heads)).astype(np.float16).astype(np.float32), bits(rng, (sum(keys), kv_heads, dim), kv_dtype),
        bits(rng, (sum(keys), kv_heads, dim), kv_dtype), options, scales, masks,
    )  # fmt: skip


def wide(array, dtype):
    """Its values in fp64."""
    return (array if dtype == "int8" else elements.to_float32(array, dtype)).astype(np.float64)


def _scaled(array, scale):
    if scale is None:
        return array
    if scale.ndim == 1:
        return array * scale[:, None]
    scale = scale.reshape(*array.shape[:2], scale.shape[2] if scale.ndim == 3 else 1)
    return array * np.repeat(scale, array.shape[2] // scale.shape[2], 2)


def attended(call):
    """(O, LSE) in fp64 by the definition, a row and a head at a time; o_scale is not in O."""
    o, kv_heads = call.options, call.k.shape[1]
    q = wide(call.q, call.dtype) * (o["q_scale"][..., None] if "q_scale" in o else 1)
    k, v = (_scaled(wide(x, call.kv_dtype), call.scales.get(name)) for x, name in ((call.k, "k_scale"), (call.v, "v_scale")))
    out, lse = np.zeros(q.shape), np.full(q.shape[:2], -np.inf)
    for r, (count, keys) in enumerate(zip(call.queries, call.keys)):
        for i in range(count):
            row, distance = sum(call.queries[:r]) + i, np.arange(keys) - (keys - count + i)
            left, right = o.get("window_left", -1), o.get("window_right", -1)
            seen = (distance >= -left if left >= 0 else distance == distance) & (distance <= right if right >= 0 else distance == distance)
            seen &= distance <= 0 if o.get("causal", not call.masks) else True
            seen &= call.masks[r][i] if call.masks else True
            for head in range(q.shape[1]):
                kv = head // (q.shape[1] // kv_heads)
                logits = call.of_request(k, r)[:, kv] @ q[row, head] * o["sm_scale"]
                logits = o["logits_soft_cap"] * np.tanh(logits / o["logits_soft_cap"]) if "logits_soft_cap" in o else logits
                logits = (logits + o["alibi_slopes"][head] * distance if "alibi_slopes" in o else logits)[seen]
                sink = o["sinks"][head : head + 1] if "sinks" in o else np.zeros(0)
                if len(logits) + len(sink):
                    top = max([*logits, *sink])
                    weights = np.exp(logits - top)
                    total = weights.sum() + np.exp(sink - top).sum()
                    out[row, head], lse[row, head] = weights @ call.of_request(v, r)[seen, kv] / total, (top + np.log(total)) / (math.log(2) if o["lse_base"] == 2 else 1)
    return out, lse


def written(call):
    """The call with the outputs that a right kernel rounds."""
    out, lse = attended(call)
    out = elements.from_float32((out / call.options.get("o_scale", np.ones(1))).astype(np.float32), call.out_dtype)
    return dataclasses.replace(call, out=out, lse=lse.astype(np.float32))


def _told(call, taken=(), masks=None, **options):
    """The call as a kernel takes it that is told something else."""
    kept = {name: value for name, value in {**call.options, **options}.items() if name not in taken}
    scales = {name: np.ones_like(scale) if name in taken else scale for name, scale in call.scales.items()}
    return dataclasses.replace(call, options=kept, scales=scales, masks=call.masks if masks is None else masks)


def mistakes(call):
    """{what outputs would be inside if: the call as a kernel took it}."""
    o, causal = call.options, call.options.get("causal", not call.masks)
    left, right = o.get("window_left", -1), o.get("window_right", -1)
    out = {f"there were no {name}": _told(call, [name]) for name in ("logits_soft_cap", "sinks", "alibi_slopes", "q_scale", "o_scale") if name in o}
    out |= {f"there were no {name}": _told(call, [name]) for name in call.scales if call.kv_dtype != "int8"}
    out["the LSE were asked for in base " + ("e" if o["lse_base"] == 2 else "2")] = _told(call, lse_base=2 if o["lse_base"] == "e" else "e")
    scale, ln2 = o["sm_scale"], math.log(2)
    for suffix, x in (("", 1.0), (", times log2 e", scale / ln2), (", times ln 2", scale * ln2), (", its square", scale * scale)):
        out |= {f"sm_scale were {x:.6g}{suffix}": _told(call, sm_scale=x)} if x != scale else {}
    if call.masks:
        return out | {"there were no mask": _told(call, masks=[], causal=False), "causal order stood in the place of the mask": _told(call, masks=[], causal=True)}
    if causal or right < 0:
        out["there were no causal order" if causal else "there were causal order"] = _told(call, causal=not causal)
    # The judge takes no mask beside ALiBi's distances.
    if causal and "alibi_slopes" not in o and all(n < m for n, m in zip(call.queries, call.keys)):
        out["causal order began at the first key"] = _told(call, masks=[np.tri(n, m, dtype=bool) for n, m in zip(call.queries, call.keys)], causal=False, window_left=-1, window_right=-1)
    if left >= 0:
        out |= {"there were no window": _told(call, window_left=-1), f"window_left were {left + 1}": _told(call, window_left=left + 1)}
    return out


def starts(counts):
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def dtypes(call):
    """What the bytes of NumPy's uint8 are."""
    of = dict(kv_dtype=call.kv_dtype, q_dtype=call.dtype, out_dtype=call.out_dtype)
    return {name: dtype if dtype in FP8 else None for name, dtype in of.items()}


def masks_of(call, **how):
    return dict(mask=np.concatenate([m.reshape(-1) for m in call.masks] or [np.zeros(0, bool)]), **how) if call.masks else {}


def plainest(call):
    """(arguments, options): pages of one token in the order of the keys, everything ragged and contiguous."""
    scales = {name: scale if scale.ndim == 1 else scale[:, None] for name, scale in call.scales.items()}
    options = dict(
        page_table=np.arange(len(call.k)), page_indptr=starts(call.keys), seq_lens=np.array(call.keys), qo_indptr=starts(call.queries),
        lse=call.lse, lse_layout="TH", **call.options, **scales, **masks_of(call), **dtypes(call),
    )  # fmt: skip
    return (call.out, call.q, (call.k[:, None], call.v[:, None])), options


def _unread(shape, like):
    return np.full(shape, UNREAD.get(like.dtype.itemsize, np.inf) if like.dtype.kind == "u" else np.inf if like.dtype.kind == "f" else 0, like.dtype)


def _paged(draw, call, slots, spare=2):
    """(pages of an array of keys, table, ids in order): pages lie anywhere in the pool, the rest of it is not to be read."""
    counts = [-(-n // slots) for n in call.keys]
    ids = np.array(draw(st.permutations(range(sum(counts) + spare))), np.int64)
    first = starts(counts)
    table = np.full((len(counts), max(counts) + draw(st.integers(0, 2))), draw(st.sampled_from([-1, 1 << 20])), np.int64)
    for r, n in enumerate(counts):
        table[r, :n] = ids[first[r] : first[r] + n]

    def pages(array):
        pool = _unread((len(ids), slots, *array.shape[1:]), array)
        for r, n in enumerate(call.keys):
            for t in range(n):
                pool[table[r, t // slots], t % slots] = call.of_request(array, r)[t]
        return pool

    return pages, table, counts


def _in_pages(draw, call):
    slots = draw(st.integers(1, 4))
    pages, table, counts = _paged(draw, call, slots)
    k, v = pages(call.k), pages(call.v)
    scales = {name: scale if scale.ndim == 1 else pages(scale) for name, scale in call.scales.items()}
    options = {"page_table": table}
    if draw(st.booleans()):
        options["seq_lens"] = np.array(call.keys)
    elif draw(st.booleans()):
        options["seq_lens_before"] = np.array(call.keys) - np.array(call.queries)
    else:
        options.update(page_table=np.concatenate([table[r, :n] for r, n in enumerate(counts)]), page_indptr=starts(counts))
        options["last_page_len"] = np.array([n - (c - 1) * slots if c else draw(st.integers(0, slots)) for n, c in zip(call.keys, counts)])
    if draw(st.booleans()):
        # V in pages of its own.
        order = np.array(draw(st.permutations(range(len(v)))))
        where = np.argsort(order)
        options["v_page_table"] = np.where(_live(options["page_table"], len(v)), where[options["page_table"] % len(v)], -1)
        v, scales = v[order], {n: s[order] if n == "v_scale" and s.ndim > 1 else s for n, s in scales.items()}
    form = draw(st.sampled_from(["NHD", "HND", "pool", "pool HND", "packed"]))
    if form == "packed" and call.k.shape[2] % 4 == 0 and all(s.ndim == 1 for s in scales.values()):
        n, s, h, d = k.shape
        return (k.reshape(n, s, h, d // 4, 4).transpose(0, 2, 3, 1, 4), v.transpose(0, 2, 3, 1)), {**options, **scales}
    if "HND" in form:
        k, v = (np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in (k, v))
        scales = {n: s if s.ndim == 1 else np.ascontiguousarray(s.swapaxes(1, 2)) for n, s in scales.items()}
        options["kv_layout"] = "HND"
    return np.stack([k, v], 1) if "pool" in form else (k, v), {**options, **scales}


def _live(table, pages):
    return (table >= 0) & (table < pages)


def _dense(draw, call):
    room, index = max(call.keys) + draw(st.integers(1, 3)), np.array(draw(st.permutations(range(len(call.keys)))), np.int64)
    pad = np.array([draw(st.integers(0, room - n)) for n in call.keys]) * draw(st.integers(0, 1))

    def rows(array):
        cache = _unread((len(index), room, *array.shape[1:]), array)
        for r, n in enumerate(call.keys):
            cache[index[r], pad[r] : pad[r] + n] = call.of_request(array, r)
        return cache

    options = {"seq_lens": np.array(call.keys) + pad}
    if pad.any():
        options["leftpad"] = pad
    if (index != np.arange(len(index))).any():
        options["cache_batch_idx"] = index
    options.update({name: scale if scale.ndim == 1 else rows(scale) for name, scale in call.scales.items()})
    return (rows(call.k), rows(call.v)), options


def _side_by_side(draw, call):
    return (call.k, call.v), {draw(st.sampled_from(["kv_indptr", "cu_seqlens_k"])): starts(call.keys), **call.scales}


def _masks(draw, call):
    if not call.masks:
        return {}
    how = draw(st.sampled_from(["flat", "padded", "bits", "part"]))
    if how == "bits":
        return {"packed_mask": np.concatenate([np.packbits(m.reshape(-1), bitorder="little") for m in call.masks])}
    if how == "padded":
        padded = np.ones((len(call.masks), max(call.queries) + draw(st.integers(0, 1)), max(call.keys) + draw(st.integers(0, 1))), bool)
        for at, m in zip(padded, call.masks):
            at[: m.shape[0], : m.shape[1]] = m
        return {"mask": padded.astype(np.uint8)}
    if how == "part":
        before = draw(st.integers(0, 3))
        mask = np.concatenate([np.ones(before, bool), masks_of(call)["mask"], np.ones(draw(st.integers(0, 2)), bool)])
        return {"mask": mask, "mask_indptr": starts([m.size for m in call.masks]) + before}
    return masks_of(call)


def _queries(draw, call):
    """(out, q, lse, options), also as [batch, queries, ...] where all requests have as many."""
    batch, each = len(call.queries), call.queries[0]
    out, q, lse, options = call.out, call.q, call.lse, {draw(st.sampled_from(["qo_indptr", "cu_seqlens_q"])): starts(call.queries)}
    if set(call.queries) == {each} and each:
        options = {} if draw(st.booleans()) else options
        if draw(st.booleans()):
            out, q = (x.reshape(batch, each, *x.shape[1:]) for x in (out, q))
        axes = draw(st.sampled_from(["TH", "HT", "BHQ", "BQH"]))
    else:
        axes = draw(st.sampled_from(["TH", "HT"]))
    if len(axes) == 3:
        lse = lse.reshape(batch, each, -1)
    lse = np.ascontiguousarray({"TH": lse, "HT": lse.T, "BQH": lse, "BHQ": lse.swapaxes(1, -1)}[axes])
    return out, q, lse, {**options, "lse_layout": axes}


def in_any_layout(draw, call):
    """(arguments, options) of the same call, its caches, tables, queries and masks laid otherwise. All are NumPy arrays."""
    kv, options = draw(st.sampled_from([_in_pages, _dense, _side_by_side]))(draw, call)
    out, q, lse, of_queries = _queries(draw, call)
    options = {**options, **of_queries, **_masks(draw, call), **call.options, **dtypes(call), "lse": lse, "threads": draw(st.integers(0, 2))}
    if options["sm_scale"] == 1 / math.sqrt(call.q.shape[2]) and draw(st.booleans()):
        del options["sm_scale"]
    if "q_scale" in options and options["q_scale"].ndim == 2 and q.ndim == 4:
        options["q_scale"] = options["q_scale"].reshape(q.shape[:3])
    return (out, q, kv), options
