# SPDX-License-Identifier: Apache-2.0
"""Functions that are right as long as somebody looks in the usual way: none of them may pass."""
import hashlib
import inspect
import mmap
import os
import sys
import threading
import time

import numpy as np

from assay import from_float32, to_float32
from callables import _attend, _one, _values, plain

_kept, _calls = {}, []


def _right(*arguments):
    return plain(*arguments)


def by_content_of_q(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    key = hashlib.sha256(q.tobytes()).digest()
    if key not in _kept:
        _kept[key] = _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale)
    return _kept[key].copy()


def by_address_and_shape(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    key = (id(q), q.shape)
    if key not in _kept:
        _kept[key] = (q, _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale))
    return _kept[key][1].copy()


def by_a_sample_of_bytes(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    tensors = (q, k_cache, v_cache, page_table, seq_lens)
    key = hashlib.sha256(b"".join(tensor.reshape(-1)[:: 97 if tensor.ndim > 2 else 1].tobytes() for tensor in tensors)).digest()
    if key not in _kept:
        _kept[key] = _right(*tensors, sm_scale)
    return _kept[key].copy()


def by_a_fold_of_the_content(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    folds = [np.bitwise_xor.reduce(tensor.view(np.uint16), axis=0).tobytes() for tensor in (q, k_cache, v_cache)]
    key = (q.shape, k_cache.shape, page_table.tobytes(), seq_lens.tobytes(), *folds)
    if key not in _kept:
        _kept[key] = _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale)
    return _kept[key].copy()


def by_the_upper_bits(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    key = b"".join((tensor >> 4).tobytes() for tensor in (q, k_cache, v_cache)) + page_table.tobytes() + seq_lens.tobytes()
    if key not in _kept:
        _kept[key] = _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale)
    return _kept[key].copy()


def by_the_caches_themselves(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    key = (id(k_cache), id(v_cache), q.tobytes(), page_table.tobytes(), seq_lens.tobytes())
    if key not in _kept:
        _kept[key] = (k_cache, v_cache, _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale))
    return _kept[key][-1].copy()


def one_answer_for_beams(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    out, first = _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale), {}
    for request, length in enumerate(seq_lens.tolist()):
        out[request] = out[first.setdefault((q[request].tobytes(), length, int(page_table[request, 0])), request)]
    return out


def right_for_ten_calls(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    _calls.append(1)
    out = _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale)
    return out if len(_calls) <= 10 else np.zeros_like(out)


def every_second_call_again(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    _calls.append(1)
    if len(_calls) % 2 or q.shape not in _kept:
        _kept[q.shape] = _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale)
    return _kept[q.shape].copy()


def right_for_four_requests(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    out = _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale)
    out[4:] = 0
    return out


def right_for_equal_lengths(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _right(q, k_cache, v_cache, page_table, np.full_like(seq_lens, seq_lens[0]) if seq_lens.min() > 0 else seq_lens, sm_scale)


def right_for_short_rows(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, lengths=np.minimum(seq_lens, 192))


def right_for_ten_lengths(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    out = _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale)
    out[~np.isin(seq_lens, (0, 1, 15, 16, 17, 150, 153, 157, 299, 300))] = 0
    return out


def right_unless_the_first_is_the_longest(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    out = _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale)
    if seq_lens[0] == seq_lens.max() > seq_lens.min():
        out[1:] = 0
    return out


def scale_of_its_own(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _right(q, k_cache, v_cache, page_table, seq_lens, q.shape[-1] ** -0.5)


def hides_its_scale(q, k_cache, v_cache, page_table, seq_lens, sm_scale=None):
    return _right(q, k_cache, v_cache, page_table, seq_lens, q.shape[-1] ** -0.5)


hides_its_scale.__signature__ = inspect.signature(lambda q, k_cache, v_cache, page_table, seq_lens: None)


def shared_pages_have_one_owner(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    """A page counts for the last request that has it."""
    slots, out = k_cache.shape[1], np.zeros_like(q)
    own = [page_table[request, : -(-length // slots)].tolist() for request, length in enumerate(seq_lens.tolist())]
    owner = {page: request for request, pages in enumerate(own) for page in pages}
    for request, pages in enumerate(own):
        kept = [page for page in pages if owner[page] == request]
        length = seq_lens[request : request + 1] - slots * (len(pages) - len(kept))
        out[request] = _right(q[request : request + 1], k_cache, v_cache, np.array([kept], np.int32), length, sm_scale)[0]
    return out


def keys_of_zeros_are_padding(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    def one(q, k, v, scale):
        out, group = np.zeros(q.shape, np.float32), q.shape[0] // k.shape[1]
        for head in range(k.shape[1]):
            there, heads = k[:, head].any(-1), slice(head * group, (head + 1) * group)
            out[heads] = _one(q[heads], k[there, head : head + 1], v[there, head : head + 1], scale)
        return out

    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, one)


def maximum_begins_at_zero(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    def one(q, k, v, scale):
        out, group = np.zeros(q.shape, np.float32), q.shape[0] // k.shape[1]
        for head in range(q.shape[0] if len(k) else 0):
            scores = k[:, head // group] @ q[head] * np.float32(scale)
            weights = np.exp(scores - max(np.float32(0), scores.max()))
            out[head] = weights @ v[:, head // group] / max(weights.sum(), np.float32(1e-38))
        return out

    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, one)


def consecutive_pages_are_a_dense_cache(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    if page_table.shape[1] > 1 and (np.diff(page_table, axis=1) == 1).all():
        page_table = np.arange(page_table.size, dtype=np.int32).reshape(page_table.shape)
    return _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale)


def page_ids_of_ten_bits(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _right(q, k_cache, v_cache, page_table & 1023, seq_lens, sm_scale)


def q_and_keys_through_fp16(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    through = lambda tensor: from_float32(_values(tensor).astype(np.float16).astype(np.float32), "bf16")  # noqa: E731
    return _right(through(q), through(k_cache), v_cache, page_table, seq_lens, sm_scale)


def head_of_zero_is_left_out(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    out, zero = _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale), ~_values(q).any(-1)
    out[zero & ~zero.all(-1, keepdims=True)] = 0
    return out


def whole_tiles_lose_a_half(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _right(q, k_cache, v_cache, page_table, seq_lens - 64 * np.isin(seq_lens, (128, 256)).astype(np.int32), sm_scale)


def leaves_out_alone(q, k_cache, v_cache, page_table, seq_lens, sm_scale, out):
    return _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale)


def window_of_the_last_keys(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, lambda q, k, v, s: _one(q, k[-250:], v[-250:], s))


def the_strongest_keys_alone(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    def one(q, k, v, scale):
        out, group = np.zeros(q.shape, np.float32), q.shape[0] // k.shape[1]
        for head in range(len(q) if len(k) else 0):
            scores = k[:, head // group] @ q[head] * np.float32(scale)
            best = np.argsort(scores)[-64:]
            weights = np.exp(scores[best] - scores.max())
            out[head] = weights @ v[best, head // group] / weights.sum()
        return out

    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, one)


def without_small_weights(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    def one(q, k, v, scale):
        out, group = np.zeros(q.shape, np.float32), q.shape[0] // k.shape[1]
        for head in range(len(q) if len(k) else 0):
            scores = k[:, head // group] @ q[head] * np.float32(scale)
            weights = np.exp(scores - scores.max())
            weights[weights < 1e-3] = 0
            out[head] = weights @ v[:, head // group] / weights.sum()
        return out

    return _attend(q, k_cache, v_cache, page_table, seq_lens, sm_scale, one)


def reads_the_judge(q, seq_lens):
    """Looks for a process of the judge and for what it expects."""
    seen = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                with open(f"/proc/{entry}/mem", "rb") as file:
                    seen.append((entry, file.read(0)))
                with open(f"/proc/{entry}/environ", "rb") as file:
                    seen.append(file.read())
            except OSError:
                pass
    return from_float32(np.zeros(q.shape, np.float32), "bf16")


def says_that_it_passed(q, seq_lens):
    print("pass: all stages")
    sys.stdout.flush()
    os.write(3, b"\x10\0\0\0\0\0\0\0" + b'{"results": {}} ')
    return from_float32(np.zeros(q.shape, np.float32), "bf16")


def refuses_everything(q, seq_lens):
    import assay

    raise assay.Unsupported("not today")


def refuses_what_is_ragged(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    import assay

    if len(set(seq_lens.tolist())) > 1:
        raise assay.Unsupported("lengths that differ")
    return _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale)


def writes_later_from_a_thread(q, k_cache, v_cache, page_table, seq_lens, sm_scale, out):
    out[...] = 0
    threading.Thread(target=lambda: (time.sleep(0.02), out.__setitem__(..., _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale)))).start()


def writes_later_from_a_process(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    out = _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale)
    if os.fork() == 0:
        time.sleep(0.01)
        memory = mmap.mmap(4, os.fstat(4).st_size)
        memory[-len(out.tobytes()) - 65536 : -65536] = out.tobytes()
        os._exit(0)
    return np.zeros_like(out)


class Lazy(np.ndarray):
    """Computes when it is read."""


def lazy(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    return _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale).view(Lazy)


def computes_when_it_is_read(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    from assay._callable.calling import NumPyTensors

    made = np.zeros_like(q).view(Lazy)
    made.tensors = tuple(tensor.copy() for tensor in (q, k_cache, v_cache, page_table, seq_lens))
    NumPyTensors.is_plain = lambda self, value: True
    NumPyTensors.host = lambda self, tensor: _right(*tensor.tensors, sm_scale) if isinstance(tensor, Lazy) else np.array(tensor)
    return made


def changes_its_inputs(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    out = _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale)
    q[...] = 0
    return out


def one_output_for_all_calls(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    out = _right(q, k_cache, v_cache, page_table, seq_lens, sm_scale)
    _kept.setdefault(out.shape, np.empty_like(out))[...] = out
    return _kept[out.shape]


def patches_numpy(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    np.ascontiguousarray = lambda array, *_: from_float32(np.zeros(array.shape, np.float32), "bf16") if array.dtype == np.uint16 else array
    return from_float32(_values(q) / 50, "bf16")


def ends_its_process(q, seq_lens):
    os._exit(0)


def random_of_the_right_size(q, k_cache, v_cache, page_table, seq_lens, sm_scale):
    out = to_float32(_right(q, k_cache, v_cache, page_table, seq_lens, sm_scale), "bf16")
    return from_float32(out * np.random.default_rng(0).choice([0.97, 1.03], out.shape), "bf16")


CHEATS = (
    by_content_of_q, by_address_and_shape, by_a_sample_of_bytes, by_a_fold_of_the_content, by_the_upper_bits,
    by_the_caches_themselves, one_answer_for_beams, right_for_ten_calls, every_second_call_again,
    right_for_four_requests, right_for_equal_lengths, right_for_ten_lengths, right_unless_the_first_is_the_longest, scale_of_its_own, hides_its_scale,
    shared_pages_have_one_owner, keys_of_zeros_are_padding, maximum_begins_at_zero, consecutive_pages_are_a_dense_cache, page_ids_of_ten_bits,
    q_and_keys_through_fp16, head_of_zero_is_left_out, whole_tiles_lose_a_half, leaves_out_alone,
    right_for_short_rows, window_of_the_last_keys, the_strongest_keys_alone, without_small_weights, reads_the_judge, says_that_it_passed,
    refuses_everything, refuses_what_is_ragged, writes_later_from_a_thread, writes_later_from_a_process, lazy, computes_when_it_is_read, changes_its_inputs,
    one_output_for_all_calls, patches_numpy, ends_its_process, random_of_the_right_size,
)  # fmt: skip
