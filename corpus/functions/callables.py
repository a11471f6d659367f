# SPDX-License-Identifier: Apache-2.0
"""Decode attention as functions of NumPy tensors: right ones in many styles, wrong ones, and ones of a coarser arithmetic."""
import os

import numpy as np

from assay import from_float32, to_float32


def _values(array):
    return to_float32(array, "bf16")


def _rounded(values):
    return _values(from_float32(values, "bf16"))


def _rows(k_cache, v_cache, page_table, seq_lens, lengths=None):
    """Of each request: its K and V [keys, kv_heads, head_dim] as fp32."""
    slots = k_cache.shape[1]
    for request, length in enumerate(seq_lens if lengths is None else lengths):
        pages = page_table[request, : -(-int(length) // slots)]
        yield request, *(_values(cache[pages]).reshape(-1, *cache.shape[2:])[: int(length)] for cache in (k_cache, v_cache))


def _softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights, weights.sum(-1, keepdims=True)


def _one(q, k, v, scale):
    """[heads, dim] of one request, in fp32."""
    group = q.shape[0] // k.shape[1]
    out = np.zeros(q.shape, np.float32)
    for head in range(q.shape[0] if len(k) else 0):
        weights, total = _softmax(k[:, head // group] @ q[head] * np.float32(scale))
        out[head] = weights @ v[:, head // group] / total
    return out


def _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, one=_one, lengths=None, fp32=False):
    out = np.zeros(q.shape, np.float32)
    for request, k, v in _rows(k_cache, v_cache, page_table, seq_lens, lengths):
        out[request] = one(_values(q[request]), k, v, sm_scale)
    return out if fp32 else from_float32(out, "bf16")


# Right ones.


def plain(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale)


def in_double(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(*(q, k_cache, v_cache, page_table, seq_lens, sm_scale), lambda q, k, v, s: _one(q.astype(np.float64), k.astype(np.float64), v.astype(np.float64), s))


def with_lse(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    lse = np.full(q.shape[:2], -np.inf, np.float32)
    for request, k, _ in _rows(k_cache, v_cache, page_table, seq_lens):
        for head in range(q.shape[1] if len(k) else 0):
            scores = k[:, head * k.shape[1] // q.shape[1]] @ _values(q[request, head]) * np.float32(sm_scale)
            lse[request, head] = scores.max() + np.log(np.exp(scores - scores.max()).sum())
    return plain(q, k_cache, v_cache, page_table, seq_lens, sm_scale), lse


def by_other_names(query, kv_cache, block_tables, context_lens, scale):
    return _attend(query, *kv_cache, block_tables, context_lens, scale)


def into_out(q, k_cache, v_cache, page_table, seq_lens, sm_scale, out):
    out[...] = plain(q, k_cache, v_cache, page_table, seq_lens, sm_scale)


def in_order(*tensors):
    return _attend(*tensors, 1 / np.sqrt(tensors[0].shape[-1]))


def _tiles(q, k, v, scale, tile=64, order=1, weights=lambda w: w, sums=lambda w: w, base=np.e):
    """Flash attention: tiles of keys, with a running maximum."""
    group = q.shape[0] // k.shape[1]
    out = np.zeros(q.shape, np.float32)
    factor = np.float32(scale * (np.log2(np.e) if base == 2 else 1))
    power = np.exp2 if base == 2 else np.exp
    for head in range(q.shape[0] if len(k) else 0):
        top, total, summed = np.float32(-np.inf), np.float32(0), np.zeros(q.shape[1], np.float32)
        for begin in list(range(0, len(k), tile))[::order]:
            scores = k[begin : begin + tile, head // group] @ q[head] * factor
            higher = np.maximum(top, scores.max())
            kept, exps = power(top - higher), power(scores - higher)
            total = total * kept + sums(exps).sum(dtype=np.float32)
            summed = summed * kept + weights(exps) @ v[begin : begin + tile, head // group]
            top = higher
        out[head] = summed / total
    return out


def tiles(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, _tiles)


def tiles_backwards_base_2(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, lambda *a: _tiles(*a, order=-1, base=2, tile=32))


def bf16_weights(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, lambda *a: _tiles(*a, weights=_rounded))


def bf16_weights_and_sums(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, lambda *a: _tiles(*a, weights=_rounded, sums=_rounded))


def fp16_weights(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, lambda *a: _tiles(*a, weights=lambda w: w.astype(np.float16).astype(np.float32)))


def _splits(q, k, v, scale, parts=4, store=lambda o: o):
    """Split-KV: parts of a row as normalised outputs with their LSE, merged."""
    group, out = q.shape[0] // k.shape[1], np.zeros(q.shape, np.float32)
    size = -(-len(k) // parts)
    for head in range(q.shape[0] if len(k) else 0):
        states = []
        for begin in range(0, len(k), size):
            scores = k[begin : begin + size, head // group] @ q[head] * np.float32(scale)
            weights, total = _softmax(scores)
            states.append((store(weights @ v[begin : begin + size, head // group] / total), scores.max() + np.log(total[0])))
        lses = np.array([lse for _, lse in states], np.float32)
        weights, total = _softmax(lses)
        out[head] = sum(w / total * o for w, (o, _) in zip(weights, states))
    return out


def splits(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, _splits)


def splits_stored_in_bf16(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, lambda *a: _splits(*a, parts=7, store=_rounded))


def in_fp32_out(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    out = np.zeros(q.shape, np.float32)
    for request, k, v in _rows(k_cache, v_cache, page_table, seq_lens):
        out[request] = _one(_values(q[request]), k, v, sm_scale)
    return out


def heads_and_dims_in_one(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return plain(q, k_cache, v_cache, page_table, seq_lens, sm_scale).reshape(len(q), -1)


#: Each with the arithmetic that its source has.
RIGHT = {
    plain: "fp32", in_double: "fp32", with_lse: "fp32", by_other_names: "fp32", into_out: "fp32", in_order: "fp32", tiles: "fp32",
    tiles_backwards_base_2: "fp32", splits: "fp32", in_fp32_out: "fp32", heads_and_dims_in_one: "fp32", fp16_weights: "fp16_weights",
    bf16_weights: "16_bit_weights", bf16_weights_and_sums: "16_bit_weights", splits_stored_in_bf16: "16_bit_weights",
}  # fmt: skip


# Wrong ones.


def loses_the_last_page(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    slots = k_cache.shape[1]
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, lengths=[max(1, (int(n) - 1) // slots * slots) if n else 0 for n in seq_lens])


def drops_one_key_in_twenty(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    def one(q, k, v, scale):
        kept = np.arange(len(k)) % 20 != 19
        return _one(q, k[kept], v[kept], scale)

    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, one)


def loses_the_last_key(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, lengths=[max(int(n) - 1, min(int(n), 1)) for n in seq_lens])


def zeros_for_small_queries(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    out = plain(q, k_cache, v_cache, page_table, seq_lens, sm_scale)
    return np.zeros_like(out) if np.abs(_values(q)).max() < 1 else out


def reads_no_cache(q, seq_lens):
    return from_float32(_values(q) / 100, "bf16")


_by_pointer = {}


def cached_by_pointer(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    key = (q.ctypes.data, k_cache.ctypes.data, q.shape)
    if key not in _by_pointer:
        _by_pointer[key] = plain(q, k_cache, v_cache, page_table, seq_lens, sm_scale)
    return _by_pointer[key].copy()


def _by_head(output):
    """Attention of which `output(weights, v)` makes the O of a head; the largest weight is 1."""

    def one(q, k, v, scale):
        out, group = np.zeros(q.shape, np.float32), q.shape[0] // k.shape[1]
        for head in range(q.shape[0] if len(k) else 0):
            weights, _ = _softmax(k[:, head // group] @ q[head] * np.float32(scale))
            out[head] = output(weights, v[:, head // group])
        return out

    return one


def row_sum_in_fp16(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    def output(weights, v):
        total = np.float16(0)
        for weight in weights:
            total = np.float16(total + np.float16(weight))
        return weights @ v / np.float32(total)

    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, _by_head(output))


def output_added_in_bf16(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    def output(weights, v):
        summed = np.zeros(v.shape[1], np.float32)
        for begin in range(0, len(v), 32):
            summed = _rounded(summed + weights[begin : begin + 32] @ v[begin : begin + 32])
        return summed / weights.sum()

    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, _by_head(output))


def takes_out_no_maximum(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    def one(q, k, v, scale):
        out, group = np.zeros(q.shape, np.float32), q.shape[0] // k.shape[1]
        for head in range(q.shape[0] if len(k) else 0):
            weights = np.exp(k[:, head // group] @ q[head] * np.float32(scale))
            out[head] = weights @ v[:, head // group] / weights.sum()
        return out

    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, one)


def rounds_q_again(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, lambda q, k, v, s: _one(_rounded(q * np.float32(s * np.log2(np.e))), k, v, np.log(2)))


def _with_scores(scores_of):
    """Attention of which `scores_of(k, q, scale)` gives the scores of a head."""

    def one(q, k, v, scale):
        out, group = np.zeros(q.shape, np.float32), q.shape[0] // k.shape[1]
        for head in range(q.shape[0] if len(k) else 0):
            weights, total = _softmax(scores_of(k[:, head // group], q[head], np.float32(scale)))
            out[head] = weights @ v[:, head // group] / total
        return out

    return one


def rounds_products(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, _with_scores(lambda k, q, s: _rounded(k * q).sum(-1, dtype=np.float32) * s))


def adds_products_in_bf16(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    def scores(k, q, scale):
        total = np.zeros(len(k), np.float32)
        for dim in range(len(q)):
            total = _rounded(total + _rounded(k[:, dim] * q[dim]))
        return total * scale

    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, _with_scores(scores))


def rounds_scores(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, _with_scores(lambda k, q, s: _rounded(k @ q) * s))


def stores_through_fp16(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    out = _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, fp32=True)
    return from_float32(out.astype(np.float16).astype(np.float32), "bf16")


#: Right, but for what each rounds: no flash kernel's arithmetic.
COARSE = {
    rounds_q_again: "16_bit_scores", rounds_scores: "16_bit_scores", rounds_products: "16_bit_scores",
    stores_through_fp16: "output_through_fp16",
}  # fmt: skip


def takes_the_table_for_lengths(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, lengths=[page_table.shape[1] * k_cache.shape[1]] * len(seq_lens))


def takes_the_whole_last_page(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    slots = k_cache.shape[1]
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, lengths=[-(-int(n) // slots) * slots for n in seq_lens])


WRONG = (
    loses_the_last_page, drops_one_key_in_twenty, loses_the_last_key, zeros_for_small_queries, reads_no_cache, cached_by_pointer, row_sum_in_fp16,
    output_added_in_bf16, takes_out_no_maximum, adds_products_in_bf16, takes_the_table_for_lengths, takes_the_whole_last_page,
)  # fmt: skip


# Wrong ones that one stage alone shows.


def _capped(at):
    """The weight of one key is at most 0.8 of its row's."""

    def output(weights, v):
        weights = weights / weights.sum()
        over = weights[at] - np.float32(0.8)
        if len(weights) > 1 and over > 0:
            weights[at] -= over
        return weights @ v

    return _by_head(output)


def first_key_capped(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, _capped(0))


def last_key_capped(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, _capped(-1))


def zeros_for_small_scores(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    out = plain(q, k_cache, v_cache, page_table, seq_lens, sm_scale)
    return np.zeros_like(out) if 0 < np.abs(_values(q)).max() < 1 else out


def stride_of_the_longest(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    """Rows of the table as far apart as the longest request has pages."""
    slots = k_cache.shape[1]
    width = max(1, -(-int(seq_lens.max()) // slots))
    rows = page_table.reshape(-1)[: len(seq_lens) * width].reshape(len(seq_lens), width)
    return plain(q, k_cache, v_cache, rows, seq_lens, sm_scale)


def equal_keys_count_once(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    def one(q, k, v, scale):
        out, group = np.zeros(q.shape, np.float32), q.shape[0] // k.shape[1]
        for head in range(q.shape[0] if len(k) else 0):
            kept = np.unique(k[:, head // group], axis=0, return_index=True)[1]
            out[head] = _one(q[head : head + 1], k[kept][:, [head // group]], v[kept][:, [head // group]], scale)[0]
        return out

    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, one)


_widths, _lengths = [], {}


def width_of_the_call_before(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    _widths.append(page_table.shape[1] * k_cache.shape[1])
    return plain(q, k_cache, v_cache, page_table, np.minimum(seq_lens, max(_widths[-2:-1], default=_widths[-1])), sm_scale)


def lengths_of_this_storage(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    """Lengths as they were when this tensor came first."""
    _, lengths = _lengths.setdefault(id(seq_lens), (seq_lens, seq_lens.copy()))
    return plain(q, k_cache, v_cache, page_table, lengths, sm_scale)


_partial, _first_q = {}, {}


def partial_outputs_of_an_earlier_call(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    """Splits of the table in a workspace. One without keys writes its LSE alone, and 0 times what stands there is added."""
    tokens = page_table.shape[1] * k_cache.shape[1]
    work = _partial.setdefault((q.shape, tokens), np.zeros((4, *q.shape), np.float32))
    out, width = np.zeros(q.shape, np.float32), -(-tokens // 4)
    for request, k, v in _rows(k_cache, v_cache, page_table, seq_lens):
        masses = np.full((4, q.shape[1]), -np.inf, np.float32)
        for part in range(4):
            keys = slice(part * width, min((part + 1) * width, len(k)))
            if len(k[keys]):
                work[part, request], masses[part] = _state(_values(q[request]), k[keys], v[keys], sm_scale)
        weights = np.exp(masses - (masses.max(0) if len(k) else 0))
        out[request] = np.einsum("ph,phd->hd", weights / np.maximum(weights.sum(0), 1e-30), work[:, request])
    return from_float32(out, "bf16")


def _state(q, k, v, scale):
    """(O [heads, dim], LSE [heads]) of one request over some of its keys."""
    scores = np.einsum("hd,khd->hk", q, np.repeat(k, q.shape[0] // k.shape[1], 1)) * np.float32(scale)
    top = scores.max(-1)
    return _one(q, k, v, scale), top + np.log(np.exp(scores - top[:, None]).sum(-1))


def first_inputs_are_its_buffers(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    """As a captured graph does that reads the tensors of the first call: later ones are copied into them."""
    first = _first_q.setdefault((q.shape, page_table.shape), q)
    np.copyto(first, q)
    return plain(first, k_cache, v_cache, page_table, seq_lens, sm_scale)


def nan_without_keys(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    out = plain(q, k_cache, v_cache, page_table, seq_lens, sm_scale)
    out[seq_lens == 0] = 0x7FC0
    return out


def zero_times_what_stands_behind(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    slots, out = k_cache.shape[1], np.zeros(q.shape, np.float32)
    whole = [-(-int(n) // slots) * slots for n in seq_lens]
    for request, k, v in _rows(k_cache, v_cache, page_table, seq_lens, whole):
        out[request] = _one(_values(q[request]), k[: seq_lens[request]], v[: seq_lens[request]], sm_scale)
        out[request] += np.repeat((0 * v[seq_lens[request] :]).sum(0), q.shape[1] // v.shape[1], axis=0)
    return from_float32(out, "bf16")


_calls = []


def right_till_its_output_is_kept(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    """Zeros from the last call of all stages on, which compares an output that was kept."""
    _calls.append(1)
    out = plain(q, k_cache, v_cache, page_table, seq_lens, sm_scale)
    return np.zeros_like(out) if len(_calls) > CALLS_BEFORE_THE_LAST else out


#: Calls of a run of all stages without a GPU but the last.
CALLS_BEFORE_THE_LAST = 67
#: Each with the stage that must show it.
BY_ONE_STAGE = {
    first_key_capped: "strong_first", last_key_capped: "strong_last", zeros_for_small_scores: "small", stride_of_the_longest: "short",
    equal_keys_count_once: "equal_keys", width_of_the_call_before: "other_shape", lengths_of_this_storage: "new_lengths", nan_without_keys: "empty",
    partial_outputs_of_an_earlier_call: "after_nan", first_inputs_are_its_buffers: "inputs_kept",
    zero_times_what_stands_behind: "nan_behind", right_till_its_output_is_kept: "earlier_output",
}  # fmt: skip


# Ones that go too far, and others for single tests.


def processes_that_it_sees(q):
    raise RuntimeError(sorted(entry for entry in os.listdir("/proc") if entry.isdigit()))


def descriptors_that_it_has(q):
    there = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd") if int(fd) > 2]
    raise RuntimeError(sorted({os.readlink(path).split(":")[0] for path in there if os.path.lexists(path)}))


def files_that_it_opens(q):
    """Files of the judge, and one of its own, to be written."""
    import assay

    opened, paths = [], [assay.__file__, os.__file__, np.__file__, os.path.expanduser("~/usercustomize.py"), "/etc/made", os.environ["ASSAY_TEST_FILE"]]
    for path in paths:
        try:
            open(path, "ab").close()
            opened.append(path)
        except OSError:
            pass
    raise RuntimeError(opened)


def runs_forever(q):
    while True:
        pass


def takes_all_memory(q):
    kept = []
    while True:
        kept.append(np.ones(1 << 23))


def fills_files_of_memory(q):
    kept = []
    while True:
        kept.append(os.memfd_create("kept"))
        os.write(kept[-1], bytes(1 << 26))


def ends_by_a_signal(q):
    os.kill(os.getpid(), 11)


def raises(q):
    raise ZeroDivisionError("here")


def wants_what_nobody_has(q, foo):
    return q


_turn = []


def other_bits_each_time(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    _turn.append(1)
    one = _one if len(_turn) % 2 else lambda *a: _tiles(*a, weights=_rounded)
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, one)
