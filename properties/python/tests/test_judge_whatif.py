# SPDX-License-Identifier: Apache-2.0
"""Every supposition about a wrong call is the row that its words say: which keys it sees, and which numbers are others.

Run as a program, this file writes what it finds to recorded/suppositions.txt: a change of a supposition shows there."""
import pathlib

import numpy as np
from assay import judging
from assay._judge import whatif
from assay._judge.excerpt import excerpt
from assay._judge.words import spans

RECORDED = pathlib.Path(__file__).parent / "recorded/suppositions.txt"
HEADS, KV_HEADS, DIM, SLOTS = 4, 2, 16, 4
F = np.float32


def attention(queries, lengths, table=None, **options):
    """A call whose keys say their place in the pool: K of slot s of page p begins with SLOTS * p + s."""
    rows = queries * len(lengths)
    pages = 12 if table is not None else len(lengths)
    slots = SLOTS if table is not None else 20
    k = np.zeros((pages, slots, KV_HEADS, DIM), np.float16)
    k[..., 0] = np.arange(pages * slots).reshape(pages, slots, 1)
    v = k + 1
    out = np.arange(rows * HEADS * DIM, dtype=np.float16).reshape(rows, HEADS, DIM)
    q = out / 100
    return judging.attention_call(out, q.astype(np.float16), (k, v), page_table=table, seq_lens=lengths, like="fa2", **options)


def position_of(part):
    """Of the row that is judged, the first."""
    return int(part.tensors["seq_lens"].numpy()[0]) - part.tensors["out"].shape[0]


def seen(part, name="k"):
    """Places in the pool of the keys, or values, that the row sees."""
    length, table = int(part.tensors["seq_lens"].numpy()[0]), part.tensors["page_table"].numpy()[0]
    pool = part.tensors[name].numpy()[..., 0, 0]
    if part.tensors["mask"] is not None:
        at = np.flatnonzero(part.tensors["mask"].numpy()[:length])
    else:
        left, right = part.scalars["window_left"], part.scalars["window_right"]
        right, position = 0 if part.scalars["causal"] else right, position_of(part)
        at = [i for i in range(length) if (left < 0 or i >= position - left) and (right < 0 or i <= position + right)]
    return [int(pool[table[i // pool.shape[1]], i % pool.shape[1]]) for i in at]


def value_of(tensor):
    array = tensor.numpy()
    return f"{array.flat[0]:g} everywhere" if np.all(array == array.flat[0]) else f"from {array.flat[0]:g} to {array.flat[-1]:g}"


def said_of(part, plain):
    """What the row sees, and what is other than in the row as it is."""
    words = []
    if part.kind == "attention":
        words.append(f"sees {spans(seen(part))}")
        values = [place - 1 for place in seen(part, "v")]
        words += [f"values {spans(values)}"] if values != seen(part) else []
    for name, number in part.scalars.items():
        if number != plain.scalars[name] and name not in ("causal", "window_left", "window_right", "max_rows"):
            words.append(f"{name} {number:.6g}")
    for name, tensor in part.tensors.items():
        if name in ("k", "v", "page_table", "seq_lens", "mask", "mask_indptr", "page_indptr") or tensor is None:
            continue
        old = plain.tensors[name].numpy()
        new = tensor.numpy()
        if (new[:1].tobytes() != old[:1].tobytes()) if part.kind == "attention" else (new.shape, new.tobytes()) != (old.shape, old.tobytes()):
            words.append(f"{name} {value_of(tensor)}{'' if new.shape[0] == old.shape[0] or part.kind == 'attention' else f' of {new.shape[0]}'}")
    return "; ".join(words)


TABLE = [[7, 2, 9], [4, 11, 0]]
CALLS = {
    "pages": (attention(1, [10, 8], TABLE), 0),
    "causal order of three queries, a window": (attention(3, [10, 8], TABLE, causal=True, window_left=3), 1),
    "a window on both sides": (attention(3, [10, 8], TABLE, causal=False, window_left=2, window_right=1), 4),
    "a dense cache": (attention(2, [10, 8]), 2),
    "lists of pages": (attention(1, [10, 8], np.array([7, 2, 9, 4, 11, 0]), page_indptr=[0, 3, 6]), 1),
    "scales, slopes, sinks, a cap and an LSE": (
        attention(2, [10, 8], TABLE, logits_soft_cap=3.0, alibi_slopes=np.full(HEADS, 0.5, F), sinks=np.full(HEADS, 0.25, F), k_scale=[2.0], v_scale=[3.0], o_scale=[1.5], q_scale=[1.25],
                  lse=np.arange(16, dtype=F).reshape(4, HEADS), lse_base=2, lse_layout="TH"), 3),
    "a mask": (attention(2, [10, 8], TABLE, mask=np.arange(2 * 18) % 3 > 0), 1),
}  # fmt: skip


def merges():
    o, lse = np.arange(3 * 5 * 2 * 8, dtype=F).reshape(3, 5, 2, 8), np.arange(3 * 5 * 2, dtype=F).reshape(3, 5, 2)
    return judging.merge_call(o[0], list(o), list(lse), lse=np.arange(10, dtype=F).reshape(5, 2))


def lines():
    for name, (call, row) in {**CALLS, "a merge": (merges(), 2)}.items():
        whole = {row: excerpt(call, row)}
        yield f"{name}: {said_of(whole[row], whole[row])}"
        for words, change in whatif._changes(call, whole, 0):
            part = change(row)
            yield f"  {words}: {'no such call' if part is None else said_of(part, whole[row])}"


def test_every_supposition_is_what_it_says():
    assert list(lines()) == RECORDED.read_text().splitlines()


if __name__ == "__main__":
    RECORDED.write_text("\n".join(lines()) + "\n")
