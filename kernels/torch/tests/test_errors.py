# SPDX-License-Identifier: Apache-2.0
"""A wrong argument is named with its limit, in the library's words where it is the library that looks; nothing is written."""
import os
import re
import types

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
import assay_torch
from assay_torch import library
from batches import batch, listed, zeroed

WRONG = {
    "page_table is torch.int64": lambda b: dict(page_table=b.page_table.long()),
    r"page_table is \[3, 10\], expected \[4, 'any'\]": lambda b: dict(page_table=b.page_table[:3]),
    "page_table has stride 2": lambda b: dict(page_table=torch.stack([b.page_table] * 2, 2)[..., 0]),
    r"seq_lens is \[4, 1\]": lambda b: dict(seq_lens=b.seq_lens[:, None]),
    r"q is \[3, 8, 64\], expected \[4, num_qo_heads": lambda b: dict(q=b.q[:3]),
    "q has head_dim 32, expected 64 as k": lambda b: dict(q=b.q[..., :32]),
    "q is complex64, supported are float16": lambda b: dict(q=b.q.to(torch.complex64), out=None),
    "invalid argument: q .*aligned": lambda b: dict(q=torch.zeros(2049, dtype=b.q.dtype)[1:].view(4, 8, 64)),
    "v is torch.float16, expected torch.bfloat16": lambda b: dict(kv_cache=(b.k, b.v.half())),
    r"v is \[\d+, 16, 1, 64\]": lambda b: dict(kv_cache=(b.k, b.v[:, :, :1])),
    "k is on meta, expected cpu as q": lambda b: dict(kv_cache=(b.k.to("meta"), b.v.to("meta"))),
    r"out is \[4, 8, 128\]": lambda b: dict(out=torch.zeros(4, 8, 128, dtype=b.q.dtype)),
    "out is torch.float32": lambda b: dict(out=b.q.float()),
    r"lse is \[8, 4\], expected \[4, 8\]": lambda b: dict(lse=torch.zeros(8, 4)),
    "invalid argument: out aliases q": lambda b: dict(out=b.q),
    "unsupported: k_scale is given, supported with fp8 KV only": lambda b: dict(k_scale=torch.ones(1)),
    r"sinks is \[3\], expected \[8\]": lambda b: dict(sinks=torch.ones(3)),
    "alibi_slopes is torch.float64": lambda b: dict(alibi_slopes=torch.ones(8, dtype=torch.float64)),
    r"qo_indptr is \[4\], expected \[5\]": lambda b: dict(qo_indptr=torch.zeros(4, dtype=torch.int32)),
    "sm_scale is -1, expected finite and > 0": lambda b: dict(sm_scale=-1.0),
    "window_left is -2, expected -1": lambda b: dict(window_left=-2),
    "window_left is 4294967297, expected a number of 32 bits": lambda b: dict(window_left=2**32 + 1),
    "q_len is 9, expected 1": lambda b: dict(q=torch.zeros(4, 9, 8, 64, dtype=b.q.dtype), out=None),
    "seq_lens is a list, expected a tensor": lambda b: dict(seq_lens=[1, 2, 3, 4]),
    "sinks is a float, expected a tensor": lambda b: dict(sinks=1.0),
    "sm_scale is '1', expected a number": lambda b: dict(sm_scale="1"),
    "version is 3, expected 1 or 2": lambda b: dict(version=3),
    "kv_layout is 'NDH'": lambda b: dict(kv_layout="NDH"),
    "kv_dtype is 'e3m4'": lambda b: dict(kv_dtype="e3m4"),
    "lse_base is 'natural', expected 'e' or 2": lambda b: dict(lse_base="natural"),
    r"page_table is \[40\], expected \[batch, max_pages\]; lists need page_indptr": lambda b: dict(page_table=b.page_table.flatten()),
    "max_pages is 9, expected none without page_indptr": lambda b: dict(max_pages=9),
    "k has stride 2 in its last axis": lambda b: dict(kv_cache=(torch.stack([b.k] * 2, 4)[..., 0], b.v)),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_calls(message):
    b = batch("cpu")
    out = torch.full_like(b.q, 7)
    given = dict(q=b.q, kv_cache=(b.k, b.v), page_table=b.page_table, seq_lens=b.seq_lens, out=out)
    with pytest.raises(assay_torch.AssayError, match=message):
        assay_torch.paged_attention(**{**given, **WRONG[message](b)})
    assert (out == 7).all()


WRONG_LISTS = {
    "max_pages is missing, expected the most entries of a row in page_indptr": lambda b: dict(max_pages=None),
    "max_pages is '9', expected a number": lambda b: dict(max_pages="9"),
    "kv.max_pages is -1, expected": lambda b: dict(max_pages=-1),
    "max_pages is 4294967296, expected a number of 32 bits": lambda b: dict(max_pages=2**32),
    r"page_indptr is \[4\], expected \[5\]": lambda b: dict(page_indptr=b.options["page_indptr"][:4]),
    "page_indptr is torch.int64, expected torch.int32": lambda b: dict(page_indptr=b.options["page_indptr"].long()),
    "page_indptr is on meta, expected cpu": lambda b: dict(page_indptr=b.options["page_indptr"].to("meta")),
    "page_indptr has stride 2": lambda b: dict(page_indptr=torch.stack([b.options["page_indptr"]] * 2, 1)[:, 0]),
    "page_indptr is a list, expected a tensor": lambda b: dict(page_indptr=[0, 1, 2, 3, 4]),
    "page_table is torch.int64": lambda b: dict(page_table=b.page_table.long()),
    "page_table has stride 2": lambda b: dict(page_table=torch.stack([b.page_table] * 2, 1)[:, 0]),
    r"page_table is \[3, \d+\], expected \[entries\] or \[2, entries\] with page_indptr": lambda b: dict(page_table=torch.stack([b.page_table] * 3)),
    "page_table is on meta, expected cpu|tensors are on meta": lambda b: dict(page_table=b.page_table.to("meta")),
}


@pytest.mark.parametrize("message", WRONG_LISTS)
@pytest.mark.parametrize("seen", [False, True])
def test_wrong_page_lists(message, seen):
    """In a call, a plan and a level of a cascade, also where such a call without the mistake went before."""
    b = listed(batch("cpu"))
    out = torch.full_like(b.q, 7)
    lists = dict(page_table=b.page_table, page_indptr=b.options["page_indptr"], max_pages=b.options["max_pages"])
    if seen:
        b.call(assay_torch.paged_attention), b.plan()
    wrong = {**lists, **WRONG_LISTS[message](b)}
    with pytest.raises(assay_torch.AssayError, match=message):
        assay_torch.paged_attention(b.q, (b.k, b.v), seq_lens=b.seq_lens, out=out, **wrong)
    with pytest.raises(assay_torch.AssayError, match=message):
        b.plan(**wrong)
    level = (b.k, b.v), wrong["page_table"], b.seq_lens, torch.arange(5, dtype=torch.int32), wrong["page_indptr"], wrong["max_pages"]
    with pytest.raises(assay_torch.AssayError, match=message.replace("kv.max_pages is -1, expected", "max_pages is missing")):
        assay_torch.cascade_attention(b.q, [level], out=out)
    assert (out == 7).all()


def test_an_error_is_of_pythons_own_kinds_too():
    b = batch("cpu")
    with pytest.raises(ValueError):
        b.call(assay_torch.paged_attention, sm_scale=float("nan"))
    with pytest.raises(NotImplementedError, match="head_dim is 80, supported are 64, 128 and 256"):
        batch("cpu", head_dim=80).call(assay_torch.paged_attention)


def test_a_refused_call_leaves_the_next_one_alone():
    b = batch("cpu")
    want = b.call(assay_torch.paged_attention)
    for _ in range(3):
        with pytest.raises(assay_torch.InvalidArgument):
            b.call(assay_torch.paged_attention, out=b.q)
    assert torch.equal(b.call(assay_torch.paged_attention), want)


def test_sizes_say_what_a_call_would():
    shape = dict(num_qo_heads=8, num_kv_heads=3, head_dim=64, page_size=16, dtype=torch.bfloat16)
    with pytest.raises(assay_torch.InvalidArgument, match="num_qo_heads is 8, expected a multiple"):
        assay_torch.plan_bytes(4, 8, "cpu", **shape)
    with pytest.raises(TypeError, match="unknown option windows"):
        assay_torch.plan_bytes(4, 8, "cpu", windows=3, **shape)
    shape["num_kv_heads"] = 2
    with pytest.raises(assay_torch.InvalidArgument, match="total_tokens is 99"):
        assay_torch.choose(1, 1, "cpu", total_tokens=99, max_seq_len=16, **shape)
    assert assay_torch.choose(4, 8, "cpu", total_tokens=99, max_seq_len=99, **shape)[0] in (1, 2)


def test_a_plan_that_is_too_small():
    b = batch("cpu")
    with pytest.raises(assay_torch.WorkspaceTooSmall, match="plan has 64 bytes, calls of this shape need"):
        b.plan(memory=torch.zeros(64, dtype=torch.uint8))


def test_merges_and_cascades():
    o, lse = torch.zeros(2, 3, 40), torch.zeros(2, 3)
    with pytest.raises(assay_torch.InvalidArgument, match=r"lse_b is \[3, 2\], expected \[2, 3\]"):
        assay_torch.merge_state(o, lse, o, lse.t().contiguous())
    with pytest.raises(assay_torch.InvalidArgument, match="o_in is .*expected .rows, states, heads"):
        assay_torch.merge_states(o, lse)
    with pytest.raises(assay_torch.Unsupported, match="head_dim is 12, expected a multiple of 8"):
        assay_torch.merge_state(o[..., :12].contiguous(), lse, o[..., :12].contiguous(), lse)
    b = batch("cpu")
    with pytest.raises(assay_torch.InvalidArgument, match="levels is empty"):
        assay_torch.cascade_attention(b.q, [])
    with pytest.raises(assay_torch.InvalidArgument, match=r"levels\[0\].segment_indptr is \[4\], expected \[5\]"):
        assay_torch.cascade_attention(b.q, [((b.k, b.v), b.page_table, b.seq_lens, torch.arange(4, dtype=torch.int32))])


LEVEL = ("k", "v", "page_table", "seq_lens", "segment_indptr")
OPTIONS = ("out", "lse", "qo_indptr", "alibi_slopes", "sinks", "k_scale", "v_scale", "global_lens", "page_indptr")
#: Tensors of each function: those that a call must have, and others.
TENSORS = {
    "paged_attention": (("q", "kv_cache", "page_table", "seq_lens"), OPTIONS), "tree_attention": (("q", "kv_cache", "page_table", "seq_lens"), OPTIONS),
    "run": (("q", "kv_cache"), ("out", "lse", "k_scale", "v_scale")), "merge_state": (("o_a", "lse_a", "o_b", "lse_b"), ("out", "lse")),
    "merge_states": (("o_in", "lse_in"), ("indptr", "out", "lse")), "cascade_attention": (("q", *(f"levels[0].{part}" for part in LEVEL)), ("out", "lse")),
    "exchange_states": (("o_in", "lse_in"), ("out", "lse")),
}  # fmt: skip


@pytest.mark.parametrize("function, name", [(f, name) for f, names in TENSORS.items() for name in (*names[0], *names[1])])
@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_what_is_no_tensor_is_named(function, name, layout):
    b, o, lse = batch("cpu"), torch.zeros(4, 1, 3, 8), torch.zeros(4, 1, 3)
    held = dict(q=b.q, kv_cache=(b.k, b.v), page_table=b.page_table, seq_lens=b.seq_lens, o_in=o, lse_in=lse, o_a=o[:, 0], lse_a=lse[:, 0], o_b=o[:, 0], lse_b=lse[:, 0])
    given, call = {n: held[n] for n in TENSORS[function][0] if n in held}, getattr(assay_torch, function, None) or b.plan(kv_layout=layout).run
    if "paged" in function or "tree" in function:
        given["kv_layout"] = layout
    if function == "cascade_attention":
        k, v, *rest = (1.0 if name.endswith(f".{part}") else x for part, x in zip(LEVEL, (b.k, b.v, b.page_table, b.seq_lens, torch.arange(5, dtype=torch.int32))))
        given["levels"] = [((k, v), *rest)]
    if function == "exchange_states":
        sizes = dict(num_heads=3, head_dim=8, dtype=torch.float32, max_rows=4)
        window = zeroed(assay_torch.Windows.bytes("cpu", 1, **sizes), "cpu")
        given.update(o_in=o[:, 0], lse_in=lse[:, 0], windows=assay_torch.Windows(window, [window.data_ptr()], 0, **sizes))
    with pytest.raises(assay_torch.InvalidArgument, match=f"^{re.escape(name)} is a float, expected a tensor$"):
        call(**given | ({} if "." in name else {name: 1.0}))


@pytest.mark.parametrize("layout", ["NHD", "HND"])
@pytest.mark.parametrize("kv_dtype", [None, "e4m3"])
def test_half_a_cache_is_named(layout, kv_dtype):
    b = batch("cpu")
    for cache, name in (((1.0, b.v), "k"), ((b.k, 1.0), "v")):
        with pytest.raises(assay_torch.InvalidArgument, match=f"^{name} is a float, expected a tensor$"):
            assay_torch.paged_attention(b.q, cache, b.page_table, b.seq_lens, kv_layout=layout, kv_dtype=kv_dtype)


def test_a_type_without_a_number_is_named():
    """By the argument that decides it, where all tensors are of it."""
    b, o, lse = batch("cpu"), torch.zeros(2, 3, 8, dtype=torch.float64), torch.zeros(2, 3)
    q, k, level = b.q.double(), b.k.double(), (b.page_table, b.seq_lens, torch.arange(5, dtype=torch.int32))
    for name, call in (("o_a", lambda: assay_torch.merge_state(o, lse, o, lse)), ("o_in", lambda: assay_torch.merge_states(o[:, None], lse[:, None])),
                       ("q", lambda: assay_torch.cascade_attention(q, [((k, k), *level)])), ("q", lambda: assay_torch.paged_attention(q, (k, k), *level[:2])),
                       ("k", lambda: assay_torch.paged_attention(b.q, (k, k), *level[:2]))):  # fmt: skip
        with pytest.raises(assay_torch.Unsupported, match=f"^{name} is float64, supported are float16, bfloat16, float32, float8_e4m3fn, float8_e5m2$"):
            call()


def test_a_library_that_is_not_there(monkeypatch):
    monkeypatch.setenv("ASSAY_LIBRARY_CUDA", "/nowhere/libassay_cuda.so")
    library.library.cache_clear()
    try:
        with pytest.raises(assay_torch.Unsupported, match="no library for CUDA tensors: set ASSAY_LIBRARY_CUDA"):
            library.library(1)
    finally:
        library.library.cache_clear()


def test_a_library_is_looked_for_in_its_order(monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_LIBRARY_CUDA", "/given")
    assert library._candidates("cuda") == ["/given"]
    monkeypatch.delenv("ASSAY_LIBRARY_CUDA")
    packages = {"assay": types.SimpleNamespace(submodule_search_locations=[str(tmp_path), str(tmp_path / "other")])}
    monkeypatch.setattr(library.importlib.util, "find_spec", packages.get)
    assert library._candidates("cuda") == ["libassay_cuda.so"]
    for folder in (tmp_path, tmp_path / "other"):
        (folder / "lib").mkdir(parents=True)
        (folder / "lib" / "libassay_cuda.so").touch()
    assert library._candidates("cuda") == [str(tmp_path / "lib/libassay_cuda.so"), str(tmp_path / "other/lib/libassay_cuda.so"), "libassay_cuda.so"]
    packages.clear()
    assert library._candidates("simt" if "ASSAY_LIBRARY_SIMT" not in os.environ else "cuda")[-1].startswith("libassay_")
    assert library.target_of("cpu") == 0 and library.target_of("cuda") == 1
    with pytest.raises(assay_torch.Unsupported, match="tensors are on meta, supported are cpu and cuda"):
        library.target_of("meta")


def test_a_status_is_an_error_of_its_own():
    made = library.library(0)
    for status, kind in {1: "InvalidArgument", 2: "Unsupported", 3: "WorkspaceTooSmall", 4: "CapacityExceeded", 5: "LaunchFailed", 6: "Hazard", 7: "AssayError"}.items():
        error = made.error("call", status)
        assert type(error) is getattr(assay_torch, kind) and error.status == status and str(error).startswith("call: ")


def test_options_that_are_missing_are_named():
    with pytest.raises(TypeError, match="option num_qo_heads is missing"):
        assay_torch.plan_bytes(4, 8, "cpu", dtype=torch.bfloat16)
