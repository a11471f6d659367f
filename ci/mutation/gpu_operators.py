# SPDX-License-Identifier: Apache-2.0
"""Operators for what only GPU code has, after Zhu and Zaidman, "Massively Parallel, Highly Efficient, but What About the
Test Suite Quality?" (ICST 2020): barriers, indices of threads, grids, atomics and shared memory, in the words of
kernels/arch; and for what came since: asynchronous copies, mbarriers, shuffles, grids that start early."""
import re

from mutation.operators import whole

BARRIERS = {"block_barrier", "warp_barrier", "named_barrier", "mbarrier_arrive", "mbarrier_wait", "mbarrier_init"}
ORDER = {"cp_async_commit", "cp_async_wait", "fence_async_proxy", "fence_gpu", "wait_for_previous_grid", "start_next_grid",
         "wgmma_fence", "wgmma_commit", "wgmma_wait"}
INDICES = {"thread_idx": "lane_id", "lane_id": "thread_idx", "warp_id": "lane_id", "block_idx_x": "thread_idx"}


def call_of(tree, node):
    """(name, template arguments, argument texts) of a call of kernels/arch, or Nones."""
    if node.kind != "CALL_EXPR":
        return None, None, None
    first = node.arguments[0][0] if node.arguments else node.end
    match = re.match(r"arch::(\w+)(<.*>)?\s*\(", tree.text[node.start:max(first, node.start)], re.S)
    if match is None:
        return None, None, None
    return match[1], match[2] or "", [tree.text[a:b] for a, b in node.arguments]


def sync_removal(tree, node):
    name = call_of(tree, node)[0]
    if name in BARRIERS or name in ORDER:
        yield whole(node, "void()")


def sync_conditional(tree, node):
    """Only one lane, or all warps but the first, take part."""
    name = call_of(tree, node)[0]
    if name in BARRIERS or name in ORDER:
        yield whole(node, f"arch::lane_id() == 0 ? {tree.text_of(node)} : void()")
        yield whole(node, f"arch::warp_id() != 0 ? {tree.text_of(node)} : void()")


def wait_count(tree, node):
    """Waits for one group of copies less, or more."""
    name, templates, texts = call_of(tree, node)
    if name is not None and templates and name.endswith("_wait"):
        for change in ("+ 1", "- 1"):
            yield whole(node, f"arch::{name}<({templates[1:-1]}) {change}>({', '.join(texts)})")


def sync_weakening(tree, node):
    """The phase beside the right one, one arrival less or more, an atomic that is none, or has half of its order or the scope
    of its block."""
    name, _, texts = call_of(tree, node)
    if name == "mbarrier_wait":
        yield whole(node, f"arch::mbarrier_wait({texts[0]}, ({texts[1]}) ^ 1u)")
    if name in ("mbarrier_init", "named_barrier"):
        step = 1 if name == "mbarrier_init" else 32
        for sign in "-+":
            yield whole(node, f"arch::{name}({texts[0]}, ({texts[1]}) {sign} {step})")
    if name == "atomic_inc_acq_rel":
        for order, scope in (("kRelaxed", "kGpu"), ("kAcquire", "kGpu"), ("kRelease", "kGpu"), ("kAcqRel", "kBlock")):
            yield whole(node, f"arch::detail::atomic_inc({texts[0]}, {texts[1]}, ::assay::simt::AtomicOrder::{order}, "
                              f"::assay::simt::Scope::{scope}, ::assay::simt::Site::here())")
    if name == "atomic_or_relaxed":
        yield whole(node, f"arch::global_store({texts[0]}, arch::global_load({texts[0]}) | ({texts[1]}))")


def index_replacement(tree, node):
    name = call_of(tree, node)[0]
    if name in INDICES:
        yield whole(node, f"arch::{INDICES[name]}()")


def index_increment(tree, node):
    if call_of(tree, node)[0] in INDICES:
        yield whole(node, f"{tree.text_of(node)} + 1")


def index_decrement(tree, node):
    if call_of(tree, node)[0] in INDICES:
        yield whole(node, f"{tree.text_of(node)} - 1")


def atomic_removal(tree, node):
    name, _, texts = call_of(tree, node)
    if name is not None and name.startswith("atomic_") and len(texts) == 2:
        step = f"old_ >= ({texts[1]}) ? 0u : old_ + 1" if "inc" in name else f"old_ + ({texts[1]})"
        yield whole(node, f"[&] {{ const auto old_ = arch::global_load({texts[0]}); "
                          f"arch::global_store({texts[0]}, {step}); return old_; }}()")


def share_removal(tree, node):
    """A store to shared memory, where other threads would see it, is lost."""
    if call_of(tree, node)[0] == "shared_store":
        yield whole(node, "void()")


def shuffle_removal(tree, node):
    """A lane keeps its own value, or votes alone."""
    name, _, texts = call_of(tree, node)
    if name is not None and texts and (name.startswith("shfl_") or name in ("any", "all", "ballot", "movmatrix_trans")):
        yield whole(node, texts[0])


def allocation(tree, node):
    """Grid and block exchanged, or off by one."""
    if node.kind != "CALL_EXPR" or not re.match(r"launch_kernel[(<]", tree.text_of(node)):
        return
    lists = [c for c in node.children if c.kind == "INIT_LIST_EXPR" and len(c.children) >= 2]
    if len(lists) != 1:
        return
    blocks, threads = lists[0].children[:2]
    for wrong in ("{1}, static_cast<int>({0})", "{0} + 1, {1}", "{0} - 1, {1}", "{0}, {1} + 1", "{0}, {1} - 1", "{0}, {1} + 32",
                  "{0}, {1} - 32"):
        text = wrong.format(tree.text_of(blocks), tree.text_of(threads))
        yield whole(node, tree.text[node.start:blocks.start] + text + tree.text[threads.end:node.end])


GPU = {f.__name__: f for f in (sync_removal, sync_conditional, sync_weakening, wait_count, index_replacement, index_increment, index_decrement,
                               atomic_removal, share_removal, shuffle_removal, allocation)}
