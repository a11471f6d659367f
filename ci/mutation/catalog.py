# SPDX-License-Identifier: Apache-2.0
"""Every mutant that the operators make of the kernels: deterministic, given the sources."""
import bisect
import collections
import re

from mutation import syntax
from mutation.gpu_operators import GPU, share_removal, sync_removal
from mutation.operators import CONVENTIONAL

TREE = "tree_attention"
V2 = f"paged_attention_v2, {TREE}"  # what is no tree, the tree kernel computes as v2
PAGED = f"paged_attention_v1, {V2}"
WIDE = f"cascade_attention, {TREE}"
ATTENTION = f"{PAGED}, cascade_attention"
MERGES = "merge_state, merge_states"
EXCHANGES = "exchange_scatter, exchange_all"
ALL = f"{ATTENTION}, {MERGES}"
#: What is mutated: path prefix, group, and the kernels that run it. The first row that fits counts.
FILES = (
    ("kernels/common/attention_state", "tile", ALL),
    ("kernels/common/dtype", "tile", ALL),
    ("kernels/common/scalar", "tile", ALL),
    ("kernels/common/row_output", "tile", ALL),
    ("kernels/common/merge_lanes", "tile", "cascade_attention, merge_states"),
    ("kernels/common/block_queries", "tile", PAGED),
    ("kernels/common/decode_types", "tile", PAGED),
    ("kernels/common/score_features", "tile", PAGED),
    ("kernels/common/query_tokens", "tile", PAGED),
    ("kernels/common/token_positions", "tile", PAGED),
    ("kernels/common/", "tile", ATTENTION),
    ("kernels/blocks/sm90_", "cascade", WIDE),
    ("kernels/blocks/mma_", "cascade", "cascade_attention"),
    ("kernels/blocks/narrow_", "cascade", "cascade_attention"),
    ("kernels/blocks/split_kv_call", "calls", V2),
    ("kernels/blocks/split_kv", "decode", V2),
    ("kernels/blocks/plan_launch", "plan", V2),
    ("kernels/blocks/plan_items", "decode", V2),
    ("kernels/blocks/with_core", "decode", V2),
    ("kernels/blocks/decode_", "decode", PAGED),
    ("kernels/blocks/paged_", "calls", PAGED),
    ("kernels/decode/paged_attention_v1", "decode", "paged_attention_v1"),
    ("kernels/decode/v1_call", "calls", "paged_attention_v1"),
    ("kernels/decode/v1_", "decode", "paged_attention_v1"),
    ("kernels/decode/paged_attention_v2", "decode", V2),
    ("kernels/decode/v2_call", "calls", V2),
    ("kernels/decode/plan_call", "calls", V2),
    ("kernels/decode/decode_", "decode", PAGED),
    ("kernels/plan/prefix_tree", "tree", TREE),
    ("kernels/plan/find_prefix_tree", "tree", TREE),
    ("kernels/plan/tree_", "tree", TREE),
    ("kernels/plan/host_tree", "tree", TREE),
    ("kernels/tree/tree_call", "calls", TREE),
    ("kernels/tree/", "tree", TREE),
    ("kernels/plan/", "plan", V2),
    ("kernels/cascade/cascade_call", "calls", "cascade_attention"),
    ("kernels/cascade/", "cascade", "cascade_attention"),
    ("kernels/exchange/exchange_call", "calls", EXCHANGES),
    ("kernels/exchange/", "exchange", EXCHANGES),
    ("kernels/merge/merge_call", "calls", MERGES),
    ("kernels/merge/merge_states", "merge", "merge_states"),
    ("kernels/merge/merge_few", "merge", "merge_states"),
    ("kernels/merge/merge_row", "merge", "merge_states"),
    ("kernels/merge/merge_state.", "merge", "merge_state"),
    ("kernels/merge/", "merge", MERGES),
    ("kernels/host/attention_call", "calls", ATTENTION),
    ("kernels/host/key_tiles", "calls", ATTENTION),
    ("kernels/host/checks", "calls", ALL),
    ("kernels/host/state_checks", "calls", f"{MERGES}, {EXCHANGES}"),
    ("kernels/host/arithmetic", "calls", ALL),
    ("kernels/host/launch_kernel", "calls", ALL),
)
#: Translation units beside those of the headers.
SOURCES = ("kernels/plan/host_plan.cpp", "kernels/plan/host_tree.cpp", "kernels/host/checks.cpp",
           "kernels/blocks/paged_call.cpp",
           "kernels/blocks/paged_shape.cpp", "kernels/blocks/split_kv_call.cpp",
           "kernels/decode/plan_call.cpp", "kernels/decode/v1_call.cpp",
           "kernels/decode/v2_call.cpp", "kernels/cascade/cascade_call.cpp", "kernels/merge/merge_call.cpp",
           "kernels/tree/tree_call.cpp", "kernels/exchange/exchange_call.cpp", "kernels/host/state_checks.cpp")
HEADERS = """#include "corpus/mutants/prelude.h"
#include "kernels/api/launch_table.cuh"
#include "kernels/cascade/cascade_launch.cuh"
#include "kernels/decode/decode_launch.cuh"
#include "kernels/tree/tree_launch.cuh"
"""

Mutant = collections.namedtuple("Mutant", "name file line at kind find replace group operator kernels why")


def row_of(path):
    row = next((row for row in FILES if path.startswith(row[0])), None)
    return row if row and row[1] else None


def all_trees(root):
    """By path, each file from the first translation unit that has it."""
    found = syntax.trees(root, HEADERS, row_of)
    for source in SOURCES:
        for path, tree in syntax.trees(root, (root / source).read_text(), row_of, source).items():
            found.setdefault(path, tree)
    return [found[path] for path in sorted(found)]


def one_line(text):
    return " ".join(text.split())


def shown(text, most=60):
    """For a message: a C string literal without escapes."""
    text = one_line(text).replace('"', "'").replace("\\", "/")
    return text if len(text) <= most else text[: most - 3] + "..."


def candidates(tree):
    """(operator, node, start, end, kind, replacement), each change of a place once."""
    seen = set()
    for root in tree.roots:
        for node in root.walk():
            if node.parent is None or re.match(r"[A-Z][A-Z_0-9]+\(", tree.text_of(node)) and node.kind != "DO_STMT":
                continue
            for operator, make in {**CONVENTIONAL, **GPU}.items():
                if operator == "statement" and any((*sync_removal(tree, node), *share_removal(tree, node))):
                    continue  # those operators drop it
                for start, end, kind, replacement in make(tree, node):
                    key = (start, end, one_line(replacement))
                    if key not in seen and one_line(replacement) != one_line(tree.text[start:end]):
                        seen.add(key)
                        yield operator, node, start, end, kind, replacement


def mutants_of(tree, not_made):
    """Those that a schema can hold; the others are counted by reason."""
    _, group, kernels = row_of(tree.path)
    lines = [match.start() for match in re.finditer("\n", tree.text)]
    stem = re.sub(r"\W", "_", tree.path.rsplit("/", 1)[1].rsplit(".", 1)[0])
    counts = collections.Counter()
    for operator, node, start, end, kind, replacement in candidates(tree):
        find = tree.text[start:end]
        reason = node.compile_time or ("a comment within" if "//" in find or "//" in replacement else "")
        if reason:
            not_made[reason] += 1
            continue
        line = bisect.bisect(lines, start) + 1
        counts[line, operator] += 1
        name = f"{stem}_{line}_{operator}_{counts[line, operator]}"
        why = f"{operator}: {shown(find)} becomes {shown(replacement) or 'nothing'}"
        yield Mutant(name, tree.path, line, start, kind, one_line(find), one_line(replacement), group, operator,
                     kernels, why)


def catalog(root):
    """(mutants, counts of those not made by reason)."""
    not_made = collections.Counter()
    mutants = [m for tree in all_trees(root) for m in mutants_of(tree, not_made)]
    return mutants, not_made
