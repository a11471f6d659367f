# SPDX-License-Identifier: Apache-2.0
"""Attention over paged caches, as functions that make what is not given. torch.compile sees through all of them.

Everywhere: q, out are fp16 or bf16; page tables, lengths and starts int32; LSE fp32; all tensors on one device. Strides are
free but for the last axis (head_dim, or the entries of a row of a table), those of q, k, v and out being multiples of 8
elements (fp8: 16). Outputs must not overlap inputs. A call runs on the current stream and neither synchronises nor reads
device memory on the host: page ids of live tokens and lengths are trusted. Errors are errors.AssayError."""
import torch

from . import operators, paged
from ._abi import LSE_BASE
from .caches import fp8_of, pool_of
from .errors import InvalidArgument, require
from .paged_shape import TREE, VERSIONS
from .tensors import no_tensor, only_tensors

_ops = torch.ops.assay_torch
_BASES = {"e": LSE_BASE["e"], 2: LSE_BASE["2"]}
_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)


def _watched(tensor):
    """Whether somebody looks on: a compiler, a tracer, a profiler, a tensor subclass. torch's dispatcher shows them an operator; it
    takes 28 arguments apart and makes them again, for half of the host time of a call, and else what is below it is called."""
    return torch.compiler.is_compiling() or type(tensor) is not torch.Tensor or bool(_modes()) or torch.autograd._profiler_enabled()


def _operator(name, tensor):
    """What runs an operator."""
    return getattr(_ops, name).default if _watched(tensor) else getattr(operators, name)


def _base(lse_base):
    if lse_base not in _BASES:
        raise InvalidArgument(f"lse_base is {lse_base!r}, expected 'e' or 2")
    return _BASES[lse_base]


def dcp(world_size, rank, interleave):
    """(dcp_world_size, dcp_rank, dcp_interleave) as the C ABI has them."""
    return world_size, rank, interleave if world_size else 0


def starts(qo_indptr, cu_seqlens_q):
    """Where the tokens of a request begin, by either name."""
    if qo_indptr is not None and cu_seqlens_q is not None:
        raise InvalidArgument("qo_indptr and cu_seqlens_q are given, expected one: they are two names of the same")
    return cu_seqlens_q if qo_indptr is None else qo_indptr


def _scale(q, sm_scale):
    """1 / sqrt(head_dim) if None; of no elements at all any."""
    return (q.shape[-1] or 1) ** -0.5 if sm_scale is None else sm_scale


def _outputs(q, out, lse, return_lse):
    if out is None:
        out = torch.empty_like(q)
    if lse is None and return_lse:
        lse = torch.empty(q.shape[:-1], dtype=torch.float32, device=q.device)
    return out, lse


def paged_attention(
    q, kv_cache, page_table, seq_lens, *, version=2, out=None, lse=None, return_lse=False, qo_indptr=None, max_q_len=1,
    sm_scale=None, window_left=-1, logits_soft_cap=0.0, alibi_slopes=None, sinks=None, k_scale=None, v_scale=None, kv_layout="NHD",
    kv_dtype=None, lse_base="e", num_splits=0, even_lengths=False, enable_pdl=False, global_lens=None,
    dcp_world_size=0, dcp_rank=0, dcp_interleave=1, cu_seqlens_q=None, page_indptr=None, max_pages=None,
):  # fmt: skip
    """Decode attention of each request's newest tokens over its keys: paged attention v1 or v2. Layers of one step take a plan().

    q           [batch, num_qo_heads, head_dim], [batch, q_len, num_qo_heads, head_dim] with q_len 1 .. 8, or with qo_indptr
                [tokens, num_qo_heads, head_dim]; head_dim 64, 128 or 256
    kv_cache    (k, v), each [pages, page_size, num_kv_heads, head_dim] (NHD) or [pages, num_kv_heads, page_size, head_dim]
                (HND) by kv_layout; or one tensor of both: see caches.pool_of. Of q's dtype, or fp8; kv_dtype ("e4m3", "e5m2")
                says what uint8 holds
    page_table  [batch, max_pages]; entries past a request's keys may hold anything. Or lists of pages one behind the other, [entries],
                or [num_kv_heads, entries] where each kv head has its own:
    page_indptr [batch + 1] ascending, of lists (FlashInfer's paged_kv_indptr): request r has the entries page_indptr[r] ..
                page_indptr[r + 1] - 1, max_pages at most, and at least those of its keys
    seq_lens    [batch] keys of each request, its newest tokens among them, 0 .. max_pages * page_size; 0 gives o = 0, lse = -inf
    version     1 or 2: choose() says which is faster where the host knows lengths
    out, lse    outputs, made if None; lse has q's shape without head_dim, by any strides: `lse.t()` of [heads, tokens]
    qo_indptr   [batch + 1] ascending (or cu_seqlens_q: the same): request r has the tokens qo_indptr[r] .. qo_indptr[r + 1] - 1
                of q, max_q_len (1 .. 8) at most; later rows of q (padding) are not looked at, nor their outputs written
    sm_scale    1 / sqrt(head_dim) if None
    window_left keys that a token sees beside its own at most, those in front of it; -1: all
    logits_soft_cap, alibi_slopes [num_qo_heads], sinks [num_qo_heads]: as in kernels/abi/assay.h; fp32
    k_scale, v_scale  of an fp8 cache: fp32 tensors of one or num_kv_heads elements
    num_splits, even_lengths, enable_pdl: hints and promises as in kernels/abi/assay.h
    dcp_world_size, dcp_rank, dcp_interleave  decode context parallelism: the cache holds the keys of one of dcp_world_size ranks,
                token t of a request on rank (t // dcp_interleave) % dcp_world_size; 0: it holds all. seq_lens are the rank's own
                then, and global_lens [batch] those of all ranks, from which positions count. exchange_states merges what ranks give
    lse_base    "e" or 2

    Returns out, or (out, lse) where lse is given or asked for. Nothing has a gradient.
    """
    if version not in VERSIONS:
        raise InvalidArgument(f"version is {version!r}, expected 1 or 2")
    if not isinstance(q, torch.Tensor):
        raise no_tensor(q=q)
    k, v = pool_of(kv_cache, kv_layout, fp8_of(kv_dtype), q.shape[-1])
    out, lse = _outputs(q, out, lse, return_lse)
    options = (starts(qo_indptr, cu_seqlens_q), k_scale, v_scale, alibi_slopes, sinks, global_lens, page_indptr)
    numbers = (_base(lse_base), _scale(q, sm_scale), logits_soft_cap, window_left, num_splits, enable_pdl, even_lengths, max_q_len,
               dcp_world_size, dcp_rank, dcp_interleave if dcp_world_size else 0, max_pages)  # fmt: skip
    if _watched(q):
        _ops.paged_attention.default(q, k, v, page_table, seq_lens, out, lse, None, *options, *numbers, version)
    else:
        paged.attention(VERSIONS[version], q, k, v, page_table, seq_lens, out, lse, None, options, numbers)
    return out if lse is None else (out, lse)


def tree_attention(
    q, kv_cache, page_table, seq_lens, *, out=None, lse=None, return_lse=False, qo_indptr=None, max_q_len=1,
    sm_scale=None, window_left=-1, logits_soft_cap=0.0, alibi_slopes=None, sinks=None, k_scale=None, v_scale=None, kv_layout="NHD",
    kv_dtype=None, lse_base="e", num_splits=0, enable_pdl=False, global_lens=None,
    dcp_world_size=0, dcp_rank=0, dcp_interleave=1, cu_seqlens_q=None, page_indptr=None, max_pages=None,
):  # fmt: skip
    """paged_attention that finds out which requests begin with the same pages, and computes those once for all of them.

    Arguments and results are those of paged_attention.
    """
    if not isinstance(q, torch.Tensor):
        raise no_tensor(q=q)
    k, v = pool_of(kv_cache, kv_layout, fp8_of(kv_dtype), q.shape[-1])
    out, lse = _outputs(q, out, lse, return_lse)
    options = (starts(qo_indptr, cu_seqlens_q), k_scale, v_scale, alibi_slopes, sinks, global_lens, page_indptr)
    numbers = (_base(lse_base), _scale(q, sm_scale), logits_soft_cap, window_left, num_splits, enable_pdl, False, max_q_len,
               dcp_world_size, dcp_rank, dcp_interleave if dcp_world_size else 0, max_pages)  # fmt: skip
    if _watched(q):
        _ops.tree_attention.default(q, k, v, page_table, seq_lens, out, lse, None, *options, *numbers)
    else:
        paged.attention(TREE, q, k, v, page_table, seq_lens, out, lse, None, options, numbers)
    return out if lse is None else (out, lse)


def merge_state(o_a, lse_a, o_b, lse_b, *, out=None, lse=None, lse_base="e"):
    """Two attention states over disjoint keys as one: (o, lse).

    o_a, o_b [rows, heads, head_dim] fp16, bf16 or fp32, head_dim a multiple of 8 up to 512; lse_a, lse_b [rows, heads]. In place
    allowed: out may be o_a or o_b, lse may be lse_a or lse_b.
    """
    if not isinstance(o_a, torch.Tensor):
        raise no_tensor(o_a=o_a)
    out, lse = _outputs(o_a, out, lse, True)
    _operator("merge_state", o_a)(o_a, lse_a, o_b, lse_b, out, lse, _base(lse_base))
    return out, lse


def merge_states(o_in, lse_in, *, indptr=None, max_states=None, out=None, lse=None, lse_base="e"):
    """n states of each row as one, in their order: (o, lse). Never in place.

    o_in [rows, n, heads, head_dim] and lse_in [rows, n, heads]; or, with indptr [rows + 1] ascending, [states, heads, head_dim] and
    [states, heads], where row r has the states indptr[r] .. indptr[r + 1] - 1, max_states at most (all of them if None).
    """
    only_tensors(o_in=o_in, lse_in=lse_in, indptr=indptr, out=out, lse=lse)
    if indptr is None:
        require(o_in.dim() == 4, lambda: f"o_in is {list(o_in.shape)}, expected [rows, states, heads, head_dim] without indptr")
        require(lse_in.dim() == 3, lambda: f"lse_in is {list(lse_in.shape)}, expected [rows, states, heads] without indptr")
        rows, num_states = o_in.shape[:2]
        o_in, lse_in = o_in.flatten(0, 1), lse_in.flatten(0, 1)
    else:
        require(indptr.dim() == 1 and len(indptr) > 0, lambda: f"indptr is {list(indptr.shape)}, expected [rows + 1]")
        rows, num_states = indptr.shape[0] - 1, o_in.shape[0] if max_states is None else max_states
    if out is None:
        out = torch.empty((rows, *o_in.shape[1:]), dtype=o_in.dtype, device=o_in.device)
    require(out.dim() == 3 and len(out) == rows, lambda: f"out is {list(out.shape)}, expected {[rows, *o_in.shape[1:]]}")
    if lse is None:
        lse = torch.empty(out.shape[:-1], dtype=torch.float32, device=o_in.device)
    _operator("merge_states", o_in)(o_in, lse_in, indptr, out, lse, num_states, _base(lse_base))
    return out, lse


def cascade_attention(
    q, levels, *, out=None, lse=None, return_lse=False, sm_scale=None, num_splits=0, kv_layout="NHD", lse_base="e"
):
    """Decode attention of requests that share segments of keys, level by level.

    q [batch, num_qo_heads, head_dim]. levels: up to 8 of (kv_cache, page_table, seq_lens, segment_indptr), with a cache as in
    paged_attention of q's dtype, page_table [segments, max_pages], seq_lens [segments], and segment_indptr [segments + 1]
    ascending: segment s serves the requests segment_indptr[s] .. segment_indptr[s + 1] - 1. A level of page lists has two more:
    (kv_cache, page_table, seq_lens, segment_indptr, page_indptr, max_pages). Returns out, or (out, lse).
    """
    if not isinstance(q, torch.Tensor):
        raise no_tensor(q=q)
    listed = False
    for i, level in enumerate(levels):
        if not isinstance(level, (tuple, list)) or len(level) not in (4, 6):
            four = "four: (kv_cache, page_table, seq_lens, segment_indptr), or six: page_indptr and max_pages behind them"
            raise InvalidArgument(f"levels[{i}] is a {type(level).__name__}, expected {four}")
        listed = listed or len(level) == 6
    lists = [level[4:] or (None, None) for level in levels] if listed else ()
    pools = [pool_of(level[0], kv_layout, None, q.shape[-1]) for level in levels]
    out, lse = _outputs(q, out, lse, return_lse)
    columns = [[pool[i] for pool in pools] for i in (0, 1)] + [[level[i] for level in levels] for i in (1, 2, 3)]
    listed = ([indptr for indptr, _ in lists], [-1 if most is None else most for _, most in lists]) if lists else ((), ())
    _operator("cascade_attention", q)(q, *columns, out, lse, *listed, _base(lse_base), _scale(q, sm_scale), num_splits)
    return out if lse is None else (out, lse)
