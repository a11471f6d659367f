# SPDX-License-Identifier: Apache-2.0
"""assay.judge on NumPy tensors: right outputs pass in every layout, twenty mistakes are found, misfits are named."""
import math
import re

import assay
import numpy as np
import pytest
from assay import arithmetic, from_float32, to_float32
from assay._judge import library as judge_library

PAGE, PAGES, KV_HEADS, HEADS, DIM = 4, 40, 2, 6, 32
LENGTHS = [37, 0, 5, 64]
QUERIES = [2, 0, 1, 4]


def library_or_skip():
    try:
        judge_library.library()
    except judge_library.LibraryError as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def library():
    library_or_skip()


class Call:
    """Ragged queries over a paged cache, and a kernel that can be given other inputs than the judge."""

    def __init__(self, dtype="bf16", kv_dtype=None, seed=1):
        draw = np.random.default_rng(seed)
        self.dtype, self.kv_dtype = dtype, kv_dtype or dtype
        numbers = lambda *shape: draw.standard_normal(shape).astype(np.float32)  # noqa: E731
        self.q = from_float32(numbers(sum(QUERIES), HEADS, DIM), dtype)
        self.k = from_float32(numbers(PAGES, PAGE, KV_HEADS, DIM), self.kv_dtype)
        self.v = from_float32(numbers(PAGES, PAGE, KV_HEADS, DIM), self.kv_dtype)
        self.table = np.full((len(LENGTHS), 20), -1, np.int32)
        free = draw.permutation(PAGES)
        for request, length in enumerate(LENGTHS):
            pages = -(-length // PAGE)
            self.table[request, :pages], free = free[:pages], free[pages:]
        self.lens = np.array(LENGTHS, np.int32)
        self.cu = np.concatenate([[0], np.cumsum(QUERIES)]).astype(np.int32)
        self.scale = 1 / math.sqrt(DIM)
        self.window, self.k_scale, self.v_scale = -1, np.ones(KV_HEADS, np.float32), np.ones(KV_HEADS, np.float32)

    def copy(self, **changes):
        other = object.__new__(Call)
        other.__dict__.update(self.__dict__)
        other.__dict__.update(changes)
        return other

    def run(self):
        """O and LSE as a right kernel writes them (fp64 inside)."""
        q, k, v = to_float32(self.q, self.dtype), to_float32(self.k, self.kv_dtype), to_float32(self.v, self.kv_dtype)
        out, lse = np.zeros(q.shape, np.float64), np.full(q.shape[:2], -np.inf)
        for request, length in enumerate(self.lens):
            pages = self.table[request, : -(-length // PAGE)]
            keys, values = k[pages].reshape(-1, KV_HEADS, DIM)[:length], v[pages].reshape(-1, KV_HEADS, DIM)[:length]
            first, last = self.cu[request], self.cu[request + 1]
            for row in range(first, last):
                end = length - (last - first) + row - first + 1
                begin = 0 if self.window < 0 else max(0, end - 1 - self.window)
                if end <= 0:
                    continue
                for head in range(HEADS):
                    kv = head // (HEADS // KV_HEADS)
                    logits = keys[begin:end, kv].astype(np.float64) @ q[row, head] * self.scale * self.k_scale[kv]
                    top = logits.max()
                    weights = np.exp(logits - top)
                    out[row, head] = weights @ values[begin:end, kv] / weights.sum() * self.v_scale[kv]
                    lse[row, head] = top + math.log(weights.sum())
        return from_float32(out, self.dtype), lse.astype(np.float32)

    def judge(self, out, lse=None, like="fa2", **options):
        if self.kv_dtype != self.dtype:
            options.update(kv_dtype=self.kv_dtype, k_scale=self.k_scale, v_scale=self.v_scale)
        return assay.judge(
            out, self.q, (self.k, self.v), page_table=self.table, seq_lens=self.lens, qo_indptr=self.cu, lse=lse,
            sm_scale=self.scale, window_left=self.window, like=like, **options,
        )  # fmt: skip


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("like", arithmetic.names())
def test_a_right_kernel_is_inside_for_every_name(dtype, like):
    call = Call(dtype)
    report = call.judge(*call.run(), like=like)
    assert report.passed, report
    assert report.claimed == report.elements == sum(QUERIES) * HEADS * (DIM + 1)
    assert 0 < report.ratio < 1 and report.ratio_lse < 1 and bool(report)


def test_dense_caches_and_uniform_queries():
    draw = np.random.default_rng(5)
    q = from_float32(draw.standard_normal((2, 3, HEADS, DIM)), "bf16")
    k, v = (from_float32(draw.standard_normal((2, 16, KV_HEADS, DIM)), "bf16") for _ in "kv")
    call = Call()
    call.__dict__.update(
        q=q.reshape(6, HEADS, DIM), k=k.reshape(8, PAGE, KV_HEADS, DIM), v=v.reshape(8, PAGE, KV_HEADS, DIM),
        table=np.arange(8).reshape(2, 4), lens=np.array([16, 9]), cu=np.array([0, 3, 6]),
    )  # fmt: skip
    out, lse = call.run()
    bhq = lse.reshape(2, 3, HEADS).transpose(0, 2, 1)
    report = assay.judge(out.reshape(q.shape), q, (k, v), seq_lens=[16, 9], lse=bhq, like="fa2")
    assert report.passed, report


def page_off_by_one(c):
    table = c.table.copy()
    table[3, 2] = (table[3, 2] + 1) % PAGES
    return dict(table=table)


def stale_page(c):
    k = c.k.copy()
    k[c.table[0, 3]] = k[c.table[3, 0]]
    return dict(k=k)


def key_lost(c):
    lens = c.lens.copy()
    lens[3] -= 1
    return dict(lens=lens)


def swapped(name, axis):
    return lambda c: {name: np.ascontiguousarray(np.roll(getattr(c, name), 1, axis=axis))}


def changed(name, change):
    return lambda c: {name: change(getattr(c, name))}


#: Inputs that a wrong kernel uses in the place of its own. Each is one mistake.
MISTAKES = {
    "page id off by one": page_off_by_one,
    "stale page": stale_page,
    "last key dropped": key_lost,
    "kv head of a neighbour": swapped("k", 2),
    "values of the neighbouring head": swapped("v", 2),
    "keys one slot late": swapped("k", 1),
    "query of the next head": swapped("q", 1),
    "query of the next row": swapped("q", 0),
    "scale left out": changed("scale", lambda s: 1.0),
    "scale of another head_dim": changed("scale", lambda s: s * math.sqrt(0.5)),
    "scale off by 1 %": changed("scale", lambda s: s * 1.01),
    "window off by one": changed("window", lambda w: 62),
    "window of a page": changed("window", lambda w: PAGE),
    "page table of the next request": lambda c: dict(table=np.where(c.table < 0, 0, np.roll(c.table, 1, axis=0)) % PAGES),
    "one value doubled": lambda c: dict(v=from_float32(to_float32(c.v, "bf16") * np.where(np.arange(PAGES) == c.table[3, 1], 2, 1)[:, None, None, None], "bf16")),
    "keys in half precision of 4 bits": lambda c: dict(k=c.k & np.uint16(0xFFE0)),
}  # fmt: skip
#: What a wrong kernel makes of right results.
SPOILERS = {
    "LSE in the other base": lambda out, lse: (out, lse * np.float32(1.4426950408889634)),
    "one LSE lost": lambda out, lse: (out, np.where(np.arange(lse.size).reshape(lse.shape) == 7, 0, lse).astype(np.float32)),
    "one element of another row": lambda out, lse: (np.where(np.arange(out.size).reshape(out.shape) == 777, out[0, 0, 0], out), lse),
    "two heads exchanged": lambda out, lse: (out[:, [1, 0, 2, 3, 4, 5]], lse),
    "output not normalised": lambda out, lse: (from_float32(to_float32(out, "bf16") * 1.25, "bf16"), lse),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_between_tensors_and_kernel_is_found(mistake):
    call = Call()
    out, lse = call.copy(**MISTAKES[mistake](call)).run()
    report = call.judge(out, lse)
    assert report.verdict == "outside", mistake
    with pytest.raises(assay.AttentionError, match="outside: row"):
        report.raise_for_findings()


@pytest.mark.parametrize("mistake", SPOILERS)
def test_a_mistake_behind_the_kernel_is_found(mistake):
    call = Call()
    assert call.judge(*SPOILERS[mistake](*call.run())).verdict == "outside", mistake


@pytest.mark.parametrize("kv_dtype", ["e4m3", "e5m2"])
def test_fp8_caches_with_scales(kv_dtype):
    call = Call(kv_dtype=kv_dtype)
    call.k_scale, call.v_scale = np.array([0.5, 2], np.float32), np.array([3, 0.25], np.float32)
    assert call.judge(*call.run()).passed
    neighbour = call.copy(k_scale=call.k_scale[::-1]).run()
    assert call.judge(*neighbour).verdict == "outside"
    with pytest.raises(TypeError, match="k is uint8"):
        assay.judge(neighbour[0], call.q, (call.k, call.v), page_table=call.table, seq_lens=call.lens, qo_indptr=call.cu)


def test_the_text_names_request_query_head_and_element():
    call = Call()
    out, lse = call.run()
    values = to_float32(out, "bf16")
    values[4, 5, 6] += 1
    text = str(call.judge(from_float32(values, "bf16"), lse))
    assert text.startswith("outside: row 4 (request 3 query 1) head 5 dim 6 is ")
    assert "times that" in text and "allowed for p_rounding" in text and "1 of 1386 elements" in text


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(seq_lens=None), "seq_lens is not given"),
        (dict(seq_lens=np.array([37, 0, 5])), "qo_indptr's axis 0 is 5 long"),
        (dict(page_table=np.full((4, 20), 99, np.int32)), "page_table names page 99"),
        (dict(page_table=np.full((4, 1), 0, np.int32)), r"seq_lens\[0\] is 37"),
        (dict(lse=np.zeros((3, 3), np.float32)), r"lse has shape \[3, 3\]"),
        (dict(lse_base="10"), "lse_base is '10', expected 'e' or 2$"),
        (dict(like="fa9"), "like is 'fa9', expected one of assay, fa2"),
        (dict(like="cudnn"), "like is 'cudnn': its source is not public"),
        (dict(kv_layout="DHN"), "kv_layout is 'DHN'"),
        (dict(kv_dtype="e3m2"), "kv_dtype is 'e3m2', expected one of 'e4m3', 'e5m2'"),
        (dict(kv_dtype="nvfp4"), "kv_dtype is 'nvfp4': caches of 4 bits are not judged"),
        (dict(sm_scale=float("nan")), "sm_scale is not a finite number"),
        (dict(window_left="47"), "window_left is '47', expected an integer"),
        (dict(window_right=(0,)), r"window_right is \(0,\), expected an integer"),
        (dict(cu_seqlens_q=[0, 1]), "qo_indptr and cu_seqlens_q are given, which are two names of one argument"),
        (dict(cu_seqlens_k=[0], kv_indptr=[0]), "kv_indptr and cu_seqlens_k are given, which are two names of one argument"),
        (dict(seq_lens=np.array([37.0, 0, 5, 64], np.float32)), "seq_lens is float32, expected int32 or int64"),
        (dict(like=assay.Declaration(rcp_rel_error=2.0)), "rcp_rel_error is 2"),
    ],
)
def test_what_does_not_fit_is_named(change, words):
    call = Call()
    out, lse = call.run()
    arguments = dict(page_table=call.table, seq_lens=call.lens, qo_indptr=call.cu, lse=None)
    with pytest.raises((ValueError, TypeError), match=words):
        assay.judge(out, call.q, (call.k, call.v), **{**arguments, **change})


def test_a_tensor_of_another_type_or_shape_is_named():
    call = Call()
    out, _ = call.run()
    arguments = dict(page_table=call.table, seq_lens=call.lens, qo_indptr=call.cu)
    for out_, q, kv, words in (
        (out, call.q.astype(np.float32), (call.k, call.v), "q is fp32, judged are fp16, bf16"),
        (out, call.q.astype(np.float64), (call.k, call.v), "q is float64, expected one of"),
        (out, call.q[:, :, :16], (call.k, call.v), "k's axis 3 is 32 long"),
        (out[:5], call.q, (call.k, call.v), "q's axis 0 is 7 long"),
        (out, call.q, (call.k,), "kv_cache has 1 tensors"),
        (out, call.q, call.k, r"kv_cache has shape \[40, 4, 2, 32\]"),
        (out, "q", (call.k, call.v), "q is a str, expected a tensor"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            assay.judge(out_, q, kv, **arguments)


def exact_attention(q, k, v, scale, mask, softcap=0.0, slopes=None, sinks=None, positions=None):
    """[rows, heads, v_dim] and [rows, heads] in fp64; mask [rows, keys], positions [rows]."""
    out, lse = np.zeros(q.shape[:2] + v.shape[2:]), np.full(q.shape[:2], -np.inf)
    for row in range(q.shape[0]):
        for head in range(q.shape[1]):
            kv = head // (q.shape[1] // k.shape[1])
            x = k[:, kv].astype(np.float64) @ q[row, head] * scale
            x = softcap * np.tanh(x / softcap) if softcap else x
            if slopes is not None:
                x = x + slopes[head] * (np.arange(len(x)) - positions[row])
            x = np.where(mask[row], x, -np.inf)
            top = max(x.max(), sinks[head] if sinks is not None else -np.inf)
            weights = np.exp(x - top)
            total = weights.sum() + (np.exp(sinks[head] - top) if sinks is not None else 0)
            out[row, head] = weights @ v[:, kv] / total
            lse[row, head] = top + math.log(total)
    return out, lse.astype(np.float32)


def test_values_that_are_a_slice_of_the_keys():
    draw = np.random.default_rng(9)
    q = from_float32(draw.standard_normal((2, 8, 72)), "bf16")
    cache = from_float32(draw.standard_normal((6, 4, 1, 72)), "bf16")
    latent = cache[..., :64]
    table = np.array([[4, 1, 3], [0, 2, -1]])
    out = np.zeros((2, 8, 64))
    for request, length in enumerate((11, 8)):
        keys = to_float32(np.ascontiguousarray(cache[table[request]]), "bf16").reshape(-1, 1, 72)[:length]
        one, _ = exact_attention(to_float32(q[request : request + 1], "bf16"), keys, keys[..., :64], 0.1, np.ones((1, length), bool))
        out[request] = one[0]
    arguments = dict(page_table=table, seq_lens=[11, 8], sm_scale=0.1, like="fa2")
    assert assay.judge(from_float32(out, "bf16"), q, (cache, latent), **arguments).passed
    assert not assay.judge(from_float32(out[:, ::-1], "bf16"), q, (cache, latent), **arguments).passed


def test_states_are_merged_within_their_bound():
    draw = np.random.default_rng(3)
    o, lse = draw.standard_normal((3, 5, 4, 8)).astype(np.float32), draw.standard_normal((3, 5, 4)).astype(np.float32)
    weights = np.exp(lse.astype(np.float64))
    merged = (weights[..., None] * o).sum(0) / weights.sum(0)[..., None]
    total = np.log(weights.sum(0)).astype(np.float32)
    report = assay.judge_merge(merged.astype(np.float32), o, lse, lse=total)
    assert report.passed and report.claimed == 5 * 4 * 9, report
    assert assay.judge_merge(merged.astype(np.float32), list(o), list(lse), lse=total).passed
    assert not assay.judge_merge(merged.astype(np.float32), o[:2], lse[:2], lse=total).passed
    assert not assay.judge_merge(merged.astype(np.float32), o, lse, lse=total, lse_base=2).passed
    with pytest.raises(ValueError, match="o_in is fp16, expected fp32 as out is"):
        assay.judge_merge(merged.astype(np.float32), o.astype(np.float16), lse)
    with pytest.raises(assay.AttentionError):
        assay.assert_merge(merged[::-1].astype(np.float32), o, lse, lse=total)


#: Names whose fields say the line of a public source at their version.
WITH_LINES = ("fa2", "fa3", "fa3_fp8", "fa4", "flashinfer_cuda_cores", "flashinfer_fa2", "flashmla")


def test_every_field_of_every_name_has_a_source():
    for name in arithmetic.names():
        entry = arithmetic.describe(name)
        assert entry["name"] == name and entry["kernel"]
        arithmetic.describe(name).clear()  # the caller's own
        assert arithmetic.describe(name) == entry
        arithmetic.like(name).to_json()
        for field, of_field in entry["fields"].items():
            assert of_field["source"], f"{name}: {field}"
            if name in WITH_LINES and field not in ("mma_block", "mma_fraction_bits"):
                assert re.search(r"\.(cuh|cu|hpp|h|cpp|py):\d", of_field["source"]), f"{name}: {field}: {of_field['source']}"


def test_the_widest_name_is_the_widest():
    words = {"fp32": 0, "call": 1, "natural": 1, "base2": 0}
    widest = arithmetic.describe(arithmetic.WIDEST)["fields"]
    for name in arithmetic.names():
        # vllm_cpu: weights in fp32, and a maximum that may stay behind. The cascade is several kernels and merges
        # what each has rounded; the merge has no keys. fa4 and fa3_fp8: as the widest's note says.
        if name in ("vllm_cpu", "flashinfer_cascade", "flashinfer_merge", "fa4", "fa3_fp8"):
            continue
        for field, entry in arithmetic.describe(name)["fields"].items():
            if name == "assay" and field == "max_splits" or name == "sdpa_math" and field in ("sum_depth", "tile_tokens"):
                continue  # no flash kernel: its maximum is known before any weight
            value, most = (words.get(e["value"], e["value"]) for e in (entry, widest[field]))
            if field in ("mma_block", "mma_fraction_bits"):  # 0: no tensor core
                assert value >= most or value == 0, f"{name}: {field}"
                continue
            assert value >= most if field == "tile_tokens" else value <= most, f"{name}: {field}"


def test_torch_tensors_where_torch_is():
    torch = pytest.importorskip("torch")
    call = Call()
    out, lse = call.run()
    bf16 = lambda array: torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)  # noqa: E731
    report = assay.judge(
        bf16(out), bf16(call.q), torch.stack([bf16(call.k), bf16(call.v)], 1), page_table=torch.from_numpy(call.table),
        seq_lens=torch.from_numpy(call.lens), qo_indptr=torch.from_numpy(call.cu), lse=torch.from_numpy(lse.T.copy()), like="fa2",
    )  # fmt: skip
    assert report == call.judge(out, lse)


def test_the_example_of_the_page():
    import judge_one

    assert judge_one.check(judge_one.my_kernel()).passed
    with pytest.raises(assay.AttentionError, match="outside: row"):
        judge_one.check(judge_one.my_kernel(mistake=1))
