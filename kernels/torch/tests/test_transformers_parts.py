# SPDX-License-Identifier: Apache-2.0
"""Parts of both backends for transformers, without a model: any batch is inside by the judge, and what is not ours is known."""
import inspect
import types

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
pytest.importorskip("hypothesis")
assay = pytest.importorskip("assay")
from assay_torch import transformers_attention, transformers_batching
from hypothesis import given, settings
from hypothesis import strategies as st
from test_drawn import drawn

DIM = 64


def starts(counts):
    return torch.tensor([0, *counts]).cumsum(0)


def inside(out, q, k, v, tokens, keys, options):
    """By the judge: rows and keys of each request behind one another."""
    scale = options["sm_scale"]
    report = assay.judge(out, q, (k, v), qo_indptr=starts(tokens), kv_indptr=starts(keys), causal=True, sm_scale=scale, window_left=options["window_left"],
                         logits_soft_cap=options["logits_soft_cap"], sinks=options["sinks"], like="flash")  # fmt: skip
    assert report.passed, report


@st.composite
def options_of(draw, heads, g):
    plain = dict(sm_scale=draw(st.sampled_from([0.125, 0.25])), window_left=-1, logits_soft_cap=0.0, sinks=None, alibi_slopes=None)
    if draw(st.booleans()):  # half of all, for PyTorch attends those by a function of its own
        return plain
    sinks = torch.rand(heads, generator=g) if draw(st.booleans()) else None
    return {**plain, "window_left": draw(st.sampled_from([-1, 0, 4, 11])), "logits_soft_cap": draw(st.sampled_from([0.0, 1.5])), "sinks": sinks}


@st.composite
def batches(draw):
    """(q, k, v, tokens, keys, options) of requests of any length, in any order."""
    g = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    kv_heads, group = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    tokens = draw(st.lists(st.integers(0, 8) | st.integers(9, 12), min_size=1, max_size=4))
    keys = [n + draw(st.sampled_from([0, 1, 7, 20])) for n in tokens]
    dtype = draw(st.sampled_from([torch.float16, torch.bfloat16]))
    q, k, v = (torch.randn(n, h, DIM, generator=g).to(dtype) for n, h in ((sum(tokens), kv_heads * group), (sum(keys), kv_heads), (sum(keys), kv_heads)))
    return q, k, v, tokens, keys, draw(options_of(kv_heads * group, g))


@settings(drawn, max_examples=30)
@given(batches(), st.booleans())
def test_gathered_keys_are_attended_right(made, ours):
    """By our kernels, where they are, and by PyTorch."""
    q, k, v, tokens, keys, options = made
    out = transformers_batching.attend_gathered(q, k, v, starts(tokens).tolist(), starts(keys).tolist(), ours, options)
    assert out.shape == q.shape and out.dtype == q.dtype
    inside(out, q, k, v, tokens, keys, options)


def test_short_requests_alone_are_ours(monkeypatch):
    seen = []
    monkeypatch.setattr(transformers_batching, "decode", lambda q, k, v, out, requests, options: seen.append(requests))
    q, k = torch.zeros(26, 2, DIM).half(), torch.zeros(30, 1, DIM).half()
    options = dict(sm_scale=1.0, window_left=-1, logits_soft_cap=0.0, sinks=None, alibi_slopes=None)
    tokens, keys = [1, 9, 0, 8, 8], [3, 9, 1, 9, 8]
    for ours in (True, False):
        transformers_batching.attend_gathered(q, k, k, starts(tokens).tolist(), starts(keys).tolist(), ours, options)
    assert seen == [[(0, 1, 0, 3), (10, 8, 13, 9), (18, 8, 22, 8)]]


class Cache519:
    """The cache of transformers 5.19, as far as it is asked: pages [pages, slots, kv heads, dim] of each layer."""

    def __init__(self, pages, group):
        allocator = types.SimpleNamespace(index=group, get_cache_for_block_table=lambda layer: pages[layer])
        self.layer_to_allocator = {layer: allocator for layer in range(len(pages))}


class Cache517:
    """That of 5.17: flat tensors of the layers of a group."""

    def __init__(self, pages, group):
        _, self.block_size, self.num_key_value_heads, self.head_dim = pages[0][0].shape
        self.key_cache, self.value_cache = ([layer[i].view(-1, *layer[i].shape[2:]) for layer in pages] for i in (0, 1))
        self.layer_index_to_group_indices = {layer: (group, layer) for layer in range(len(pages))}


@settings(drawn, max_examples=25)
@given(st.data())
def test_a_step_in_blocks_writes_and_attends(data):
    """Two layers of one step, and the next step; a graph's rows of padding have no keys and a table of -1."""
    draw = data.draw
    g = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    kv_heads, group, size, padding = draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.sampled_from([1, 4, 16])), draw(st.integers(0, 2))
    lengths = draw(st.lists(st.integers(1, 33), min_size=1, max_size=3))
    counts = [n // size + 1 for n in lengths]  # room for a step more
    order = torch.randperm(sum(counts) + 1, generator=g).tolist()
    table = torch.full((2, len(lengths) + padding, max(counts)), -1, dtype=torch.int32)
    of_group = draw(st.integers(0, 1))
    for r, n in enumerate(counts):
        table[of_group, r, :n] = torch.tensor([order.pop() for _ in range(n)], dtype=torch.int32)
    pages = [tuple(torch.randn(sum(counts) + 1, size, kv_heads, DIM, generator=g).half() for _ in "kv") for _ in range(2)]
    before = [tuple(x.clone() for x in layer) for layer in pages]
    cache = draw(st.sampled_from([Cache519, Cache517]))(pages, of_group)
    first = draw(options_of(kv_heads * group, g))
    of_layers = [first, {**first, "window_left": draw(st.sampled_from([first["window_left"], 8]))}]
    name = draw(st.sampled_from([transformers_batching.NAME, transformers_batching.TREES]))
    for step in range(2):
        seen = [n + step for n in lengths]
        ends = torch.tensor([0, *seen, *[0] * padding]).cumsum(0, dtype=torch.int32)
        for layer in range(2):
            options = of_layers[layer]
            module = types.SimpleNamespace(layer_idx=layer, config=types.SimpleNamespace(_attn_implementation=name))
            q, k, v = (torch.randn(len(lengths) + padding, h, DIM, generator=g).half() for h in (kv_heads * group, kv_heads, kv_heads))
            with pytest.MonkeyPatch.context() as patch:
                planned, own = [], transformers_batching.plan
                patch.setattr(transformers_batching, "plan", lambda *given, **more: planned.append(more) or own(*given, **more))  # noqa: B023
                out = transformers_batching.decode_in_blocks(module, cache, q, k, v, table, ends, options)
            assert [(p["window_left"], p["logits_soft_cap"], p["sinks"]) for p in planned] == [(options["window_left"], options["logits_soft_cap"], options["sinks"] is not None)] * (layer == 0 or options != first)
            held = []
            for was, now, new in zip(before[layer], pages[layer], (k, v)):
                for r, n in enumerate(seen):
                    was[table[of_group, r, (n - 1) // size], (n - 1) % size] = new[r]
                assert torch.equal(was, now)
                held.append(torch.cat([now[table[of_group, r, : -(-n // size)].long()].flatten(0, 1)[:n] for r, n in enumerate(seen)]))
            inside(out[: len(lengths)], q[: len(lengths)], *held, [1] * len(lengths), seen, options)
            assert cache._assay_step.trees == (name == transformers_batching.TREES)


@pytest.mark.parametrize("sliding", [None, 7])
def test_new_keys_are_written_as_the_version_says(sliding):
    key, value, read, write = (torch.full((1, 2, 3, 4), n) for n in range(4))
    module, seen = types.SimpleNamespace(layer_idx=5), []
    new = types.SimpleNamespace(layer_to_allocator=1, update=lambda **given: seen.append(given) or (given["key_states"] + 10, given["value_states"] + 20))
    kwargs = dict(read_index=read, write_index=write, cu_seq_lens_k=dict(sliding_attention="short", full_attention="long"))
    k, v, ends = transformers_batching.new_and_old(module, new, key, value, sliding, {**kwargs, "cu_seq_lens_k": "ends"})
    assert k.shape == v.shape == (3, 2, 4) and (k == 10).all() and (v == 21).all() and ends == "ends"
    assert seen[0]["layer_idx"] == 5 and seen[0]["kwargs"]["write_index"] is write and len(seen[0]) == 4
    old = types.SimpleNamespace(update=lambda **given: seen.append(given) or ("k", "v"))
    assert transformers_batching.new_and_old(module, old, key, value, sliding, kwargs) == ("k", "v", "short" if sliding else "long")
    assert seen[1] == dict(key_states=key, value_states=value, layer_idx=5, read_index=read, write_index=write)
    assert transformers_batching._ends("ends", sliding) == "ends"


@settings(drawn, max_examples=30)
@given(batches(), st.sampled_from([None, 0.25]), st.sampled_from([0, 3]))
def test_a_batch_of_prefills_is_right(made, scaling, padding):
    """As transformers calls it: one row of new tokens, the cache gives the keys of all. Tokens of no request get 0."""
    q, k, v, tokens, keys, options = made
    padded = torch.cat([q, torch.ones(padding, *q.shape[1:], dtype=q.dtype)])
    cache = types.SimpleNamespace(layer_to_allocator=1, update=lambda **given: (k.transpose(0, 1)[None], v.transpose(0, 1)[None]))
    new = torch.zeros(1, k.shape[1], len(padded), DIM, dtype=k.dtype)
    sinks = options["sinks"] if options["sinks"] is None else options["sinks"].to(k.dtype)
    out, none = transformers_batching.forward(
        types.SimpleNamespace(layer_idx=0), padded.transpose(0, 1)[None], new, new, None, scaling=scaling, cache=cache, sliding_window=options["window_left"] + 1 or None,
        softcap=options["logits_soft_cap"] or None, s_aux=sinks, cu_seq_lens_q=starts(tokens), cu_seq_lens_k=starts(keys),
    )  # fmt: skip
    assert none is None and out.shape == (1, *padded.shape) and not out[0, len(q) :].any()
    options = {**options, "sm_scale": DIM**-0.5 if scaling is None else scaling, "sinks": None if sinks is None else sinks.float()}
    inside(out[0, : len(q)], q, k, v, tokens, keys, options)


@settings(drawn, max_examples=25)
@given(st.data())
def test_a_layer_is_attended_right_where_it_is_ours(data):
    draw = data.draw
    g = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    kv_heads, group, batch, tokens = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 8))
    keys = draw(st.integers(1, 20)) if tokens == 1 else tokens
    q, k, v = (torch.randn(batch, h, n, DIM, generator=g).half() for h, n in ((kv_heads * group, tokens), (kv_heads, keys), (kv_heads, keys)))
    options = {**draw(options_of(kv_heads * group, g)), "window_left": -1}
    scaling = draw(st.sampled_from([None, options["sm_scale"]]))
    more = {} if options["sinks"] is None else {"s_aux": options["sinks"].half()}
    if options["logits_soft_cap"]:
        more["softcap"] = options["logits_soft_cap"]
    out, none = transformers_attention.forward(types.SimpleNamespace(), q, k, v, None, scaling=scaling, **more)
    assert none is None and out.shape == (batch, tokens, kv_heads * group, DIM)
    flat = lambda x: x.transpose(1, 2).flatten(0, 1)  # noqa: E731
    options.update(sm_scale=DIM**-0.5 if scaling is None else scaling, sinks=more["s_aux"].float() if "s_aux" in more else None)
    inside(out.flatten(0, 1), flat(q), flat(k), flat(v), [tokens] * batch, [keys] * batch, options)


def shaped(tokens=3, keys=3, heads=4, kv_heads=2, dim=DIM, dtype=torch.float16, batch=2, values=None):
    return [torch.zeros(batch, h, n, d, dtype=dtype) for h, n, d in ((heads, tokens, dim), (kv_heads, keys, dim), (kv_heads, keys, values or dim))]


@pytest.mark.parametrize("shape, more, ours", [
    ({}, {}, True), (dict(tokens=8, keys=8), {}, True), (dict(tokens=9, keys=9), {}, False), (dict(tokens=2), {}, False), (dict(tokens=1), {}, True),
    ({}, dict(is_causal=False), False), ({}, dict(is_causal=True), True), (dict(tokens=1), dict(is_causal=False), False), ({}, dict(is_causal=None), True),
    ({}, dict(mask=1), False), ({}, dict(dropout=0.5), False), ({}, dict(position_bias=1), False), ({}, dict(cache=1), False), ({}, dict(softcap=1.0), True),
    (dict(dim=80), {}, False), (dict(dtype=torch.float32), {}, False), (dict(values=128), {}, False), (dict(heads=3), {}, False), (dict(dtype=torch.bfloat16), {}, True),
])  # fmt: skip
def test_what_is_ours(shape, more, ours):
    more = dict(more)
    mask, dropout = more.pop("mask", None), more.pop("dropout", 0.0)
    asked = lambda module, tensors: transformers_attention.is_ours(module, *tensors, mask, dropout, more)  # noqa: E731
    tensors = shaped(**shape)
    assert asked(types.SimpleNamespace(), tensors) == asked(types.SimpleNamespace(is_causal=True), tensors) == ours
    assert asked(types.SimpleNamespace(is_causal=False), tensors) == (ours and shape.get("tokens") == 1)
    for i in range(3):
        wanted = [x.clone().requires_grad_(j == i) for j, x in enumerate(tensors)]
        assert not asked(types.SimpleNamespace(), wanted)
        with torch.no_grad():
            assert asked(types.SimpleNamespace(), wanted) == ours
    assert not asked(types.SimpleNamespace(), [shaped(**{**shape, "batch": 1})[0], *tensors[1:]])


def test_a_call_that_is_not_ours_is_sdpas_with_all_that_was_given(monkeypatch):
    sdpa = pytest.importorskip("transformers.integrations.sdpa_attention")
    monkeypatch.setattr(sdpa, "sdpa_attention_forward", lambda *given, **more: (given, more))
    tensors = shaped()
    given, more = transformers_attention.forward("module", *tensors, "mask", dropout=0.5, scaling=0.25, softcap=3.0, is_causal=False)
    assert given == ("module", *tensors, "mask") and more == dict(dropout=0.5, scaling=0.25, softcap=3.0, is_causal=False)
    assert transformers_attention.forward("module", *tensors, "mask")[1] == dict(dropout=0.0, scaling=None)


@pytest.mark.parametrize("name", ["assay", "mine"])
def test_names_are_registered_with_their_masks(monkeypatch, name):
    transformers, masking = pytest.importorskip("transformers"), pytest.importorskip("transformers.masking_utils")
    held = {}
    for kind in (transformers.AttentionInterface, transformers.AttentionMaskInterface):
        monkeypatch.setattr(kind, "register", lambda key, value, kind=kind: held.update({(kind.__name__, key): value}))
    transformers_attention.register(*[name] * (name != "assay"))
    assert held == {("AttentionInterface", name): transformers_attention.forward, ("AttentionMaskInterface", name): masking.sdpa_mask}
    held.clear()
    made = types.SimpleNamespace(config=types.SimpleNamespace())
    assert transformers_batching.use_in_batches(made, trees=name == "mine") is made
    used = made.config._attn_implementation
    assert used.endswith(transformers_batching.TREES if name == "mine" else transformers_batching.NAME)
    assert held == {("AttentionInterface", used): transformers_batching.forward, ("AttentionMaskInterface", used): masking.flash_attention_mask}


def test_the_configuration_of_batches_may_be_said_otherwise():
    pytest.importorskip("transformers.generation.continuous_batching")
    size = "page_size" if transformers_batching.has_page_size() else "block_size"
    plain, other = transformers_batching.configuration(), transformers_batching.configuration(32, use_cuda_graph=False, num_blocks=7)
    assert (getattr(plain, size), plain.use_cuda_graph) == (256, (False, True))
    assert (getattr(other, size), other.use_cuda_graph, other.num_blocks) == (32, False, 7)


@pytest.mark.parametrize("sizes, known", [(["block_size"], "block_size"), (["page_size"], "page_size"), (["page_size", "block_size"], "page_size")])
def test_the_size_of_pages_has_the_name_of_its_version(monkeypatch, sizes, known):
    transformers = pytest.importorskip("transformers")
    config = types.SimpleNamespace
    signature = inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in ("use_cuda_graph", *sizes)])
    made = type("Config", (config,), {"__signature__": signature})
    monkeypatch.setattr(transformers, "ContinuousBatchingConfig", made, raising=False)
    assert transformers_batching.has_page_size() == (known == "page_size")
    assert vars(transformers_batching.configuration(64)) == {"use_cuda_graph": (False, True), known: 64}


def test_a_prefill_in_a_capture_is_refused(monkeypatch):
    """By the option that keeps it out of captures; block tables are not."""
    class OnGpu(torch.Tensor):
        is_cuda = True

    monkeypatch.setattr(transformers_batching, "supported", lambda *shape: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    q = torch.zeros(1, 2, 3, DIM).as_subclass(OnGpu)
    with pytest.raises(ValueError, match=r"use_cuda_graph=\(False, True\)"):
        transformers_batching.forward(types.SimpleNamespace(), q, q, q, None, cache="cache", cu_seq_lens_q=None)
    monkeypatch.setattr(transformers_batching, "decode_in_blocks", lambda *given: torch.ones(3))
    assert transformers_batching.forward(types.SimpleNamespace(), q, q, q, None, cache="cache", block_table=1, cu_seq_lens_k=2)[0].shape == (1, 3)
