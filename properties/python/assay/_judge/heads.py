# SPDX-License-Identifier: Apache-2.0
"""Whether a changed part of a call is inside, and the heads with whose inputs, or as which, the heads of some rows are."""
import functools

from . import parts
from .words import spans


def judged_right(changed, part, work):
    """Whether the changed part is inside, and as much is said about it as about the part itself."""
    # What is claimed is compared between calls of the same form.
    as_it_is = changed.tensors["out"].shape[0] != 1
    try:
        report = work.judge(changed, as_it_is)
    except ValueError:  # the judge takes no such call
        return False
    return report.passed and report.claimed >= work.judge(part, as_it_is).claimed > 0


def put(part, source, names=("out", "lse")):
    """A part with the outputs of another one, or with other tensors of it."""
    return parts.changed(part, **{name: source.tensors[name].numpy() for name in names if source.tensors[name] is not None})


def of_other_heads(rows, work):
    """Words for the heads that fail in any of the rows (a call each), where each is right with the inputs of another head, or
    as that one, in every row in which it fails."""
    count, group = parts.heads_of(rows[0]), parts.group_of(rows[0])
    alone = [[parts.one_head(row, head) for head in range(count)] for row in rows]
    bad = functools.cache(lambda row, head: not work.judge(alone[row][head]).passed)

    def words_of(words, of, others, change):
        chosen = {}
        for row in range(len(rows)):
            for head in (h for h in range(count) if bad(row, h)):
                tried = [chosen[head]] if head in chosen else [o for o in others if o != of(head)]
                fits = next((o for o in tried if judged_right(change(alone[row], head, o), alone[row][head], work)), None)
                if fits is None:
                    return
                chosen[head] = fits
        alike = {}
        for head, other in sorted(chosen.items()):
            alike.setdefault(other, []).append(head)
        yield ", ".join(f"head{'s' if len(heads) > 1 else ''} {spans(heads)} {words} head {other}" for other, heads in alike.items())

    kv_heads, all_heads = range(count // group), range(count)
    for names, words in ((("k", "v"), "with K and V of kv"), (("k",), "with K of kv"), (("v",), "with V of kv")):
        yield from words_of(words, lambda head: head // group, kv_heads, lambda part, head, o, names=names: put(part[head], part[o * group], names))
    for names in (("out", "lse"), ("out",)):
        if names == ("out", "lse") or rows[0].tensors["lse"] is not None:
            yield from words_of("as", lambda head: head, all_heads, lambda part, head, o, names=names: put(part[o], part[head], names))
    yield from words_of("with the query of", lambda head: head, all_heads, lambda part, head, o: put(part[head], part[o], ("q",)))
