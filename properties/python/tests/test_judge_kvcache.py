# SPDX-License-Identifier: Apache-2.0
"""The tensors of flash_attn_with_kvcache on a CPU: a stand-in with its arguments, and the one line behind it."""
import assay
import pytest
from test_judge import library  # noqa: F401  (a fixture)

torch = pytest.importorskip("torch")

BATCH, QUERIES, HEADS, KV_HEADS, DIM, PAGE = 3, 2, 4, 2, 32, 8


def flash_attn_with_kvcache(
    q, k_cache, v_cache, k=None, v=None, cache_seqlens=None, cache_batch_idx=None, cache_leftpad=None, block_table=None,
    softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, return_softmax_lse=False,
):  # fmt: skip
    """In fp32, with the arguments of flash_attn 2.8.3 but rotary embeddings, ALiBi and num_splits. Writes k and v into the caches."""
    out, lse = torch.zeros_like(q), torch.full((len(q), HEADS, q.shape[1]), float("inf"))
    for b in range(len(q)):
        row = b if cache_batch_idx is None else int(cache_batch_idx[b])

        def at(t, b=b, row=row):
            return (row, t) if block_table is None else (int(block_table[b, t // PAGE]), t % PAGE)

        first, last = 0 if cache_leftpad is None else int(cache_leftpad[b]), int(cache_seqlens[b])
        for t in range(0 if k is None else k.shape[1]):
            k_cache[at(last)], v_cache[at(last)] = k[b, t], v[b, t]
            last += 1
        keys, values = (torch.stack([c[at(t)] for t in range(first, last)]).float() for c in (k_cache, v_cache))
        for i in range(q.shape[1]):
            position = last - first - q.shape[1] + i
            j = torch.arange(last - first)
            seen = (j <= position) if causal else j >= 0
            left, right = window_size
            seen &= (left < 0) | (j >= position - left)
            seen &= (right < 0) | (j <= position + right)
            for h in range(HEADS):
                x = keys[:, h // (HEADS // KV_HEADS)] @ q[b, i, h].float() * (softmax_scale or DIM**-0.5)
                x = softcap * torch.tanh(x / softcap) if softcap else x
                x = x[seen]
                out[b, i, h] = (x.softmax(0) @ values[seen, h // (HEADS // KV_HEADS)]).to(q.dtype)
                lse[b, h, i] = x.logsumexp(0)
    return (out, lse) if return_softmax_lse else out


def numbers(*shape):
    return torch.randn(*shape, dtype=torch.bfloat16)


def call(kind, **options):
    """(arguments of the kernel, arguments of the line behind it): what a test has in its hands."""
    torch.manual_seed(7)
    given = dict(q=numbers(BATCH, QUERIES, HEADS, DIM), k=numbers(BATCH, QUERIES, KV_HEADS, DIM), v=numbers(BATCH, QUERIES, KV_HEADS, DIM))
    given["cache_seqlens"] = torch.tensor([17, 5, 30], dtype=torch.int32)
    line = dict(seq_lens_before=given["cache_seqlens"])
    if kind == "paged":
        caches = [numbers(20, PAGE, KV_HEADS, DIM) for _ in "kv"]
        given["block_table"] = line["page_table"] = torch.randperm(20)[:15].reshape(BATCH, 5).int()
    else:
        caches = [numbers(5 if kind == "batch_idx" else BATCH, 40, KV_HEADS, DIM) for _ in "kv"]
    if kind == "batch_idx":
        given["cache_batch_idx"] = line["cache_batch_idx"] = torch.tensor([4, 0, 2], dtype=torch.int32)
    elif kind == "leftpad":
        given["cache_leftpad"] = line["leftpad"] = torch.tensor([3, 0, 8], dtype=torch.int32)
    given.update(dict(zip(("k_cache", "v_cache"), caches)), causal=True, **options)
    names = dict(softcap="logits_soft_cap", softmax_scale="sm_scale")
    line.update({names.get(name, name): value for name, value in options.items() if name != "window_size"})
    line.update(zip(("window_left", "window_right"), options.get("window_size", ())))
    return given, line


def judged(given, line, run):
    out, lse = flash_attn_with_kvcache(**run, return_softmax_lse=True)
    return assay.judge(out, given["q"], (given["k_cache"], given["v_cache"]), lse=lse, empty_lse="inf", like="fa2", **{"causal": True, **line})


OPTIONS = {
    "plain": {}, "window": dict(window_size=(6, 0)), "window on both sides": dict(window_size=(9, 1), causal=False), "softcap": dict(softcap=2.0),
    "scale": dict(softmax_scale=0.3),
}  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", ["dense", "paged", "batch_idx", "leftpad"])
def test_the_line_behind_a_right_kernel(kind, options):
    chosen = dict(OPTIONS[options])
    causal = chosen.pop("causal", True)
    given, line = call(kind, **chosen)
    given["causal"] = line["causal"] = causal
    report = judged(given, line, given)
    assert report.passed and report.claimed == report.elements, report


WRONG = {
    "a key too few": ("dense", lambda g: dict(cache_seqlens=g["cache_seqlens"] - 1)),
    "neighbour's pages": ("paged", lambda g: dict(block_table=g["block_table"].roll(1, 0))),
    "cache_batch_idx left out": ("batch_idx", lambda g: dict(cache_batch_idx=None)),
    "leftpad left out": ("leftpad", lambda g: dict(cache_leftpad=None)),
    "window off by one": ("paged", lambda g: dict(window_size=(7, 0))),
    "new keys of the neighbour": ("dense", lambda g: dict(k_cache=g["k_cache"].clone(), k=g["k"].roll(1, 0))),
    "not causal": ("dense", lambda g: dict(causal=False)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_the_line_behind_a_wrong_kernel(wrong):
    kind, change = WRONG[wrong]
    given, line = call(kind, **(dict(window_size=(6, 0)) if wrong.startswith("window") else {}))
    flash_attn_with_kvcache(**given)  # what the caches hold after a right call
    kept = {name: given[name].clone() for name in ("k_cache", "v_cache")}
    report = judged({**given, **kept}, line, {**given, **change(given)})
    assert report.verdict == "outside", report
