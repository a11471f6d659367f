# SPDX-License-Identifier: Apache-2.0
"""One element of judge_one.py's output, and what is allowed of it under three claims: prints JSON."""
import json

import assay
import judge_one as example

CLAIMS = ("sdpa_math", "fa2")
ROW, HEAD, DIM = 0, 0, 0


def judged(like):
    """What is allowed at the element: a wrong output makes it the worst of its call."""
    out = example.my_kernel()
    got = float(out[ROW, HEAD, DIM])
    out[ROW, HEAD, DIM] = 1
    report = assay.judge(out, example.q, (example.k_cache, example.v_cache), page_table=example.block_table,
                         seq_lens=example.seq_lens, like=like)
    worst = report.worst
    assert (worst["row"], worst["head"], worst["dim"]) == (ROW, HEAD, DIM)
    terms = {name: float(f"{size:.3g}") for name, size in worst["budget"].items() if size > worst["allowed"] / 1000}
    return got, worst["exact"], float(f"{worst['allowed']:.3g}"), terms


def main():
    claims = []
    for like in CLAIMS:
        got, exact, allowed, terms = judged(like)
        claims.append({"like": like, "allowed": allowed, "terms": terms})
    wrong = float(example.my_kernel(mistake=1)[ROW, HEAD, DIM])
    print(json.dumps({"element": f"row {ROW} head {HEAD} dim {DIM} of judge_one.py, fp16", "exact": float(f"{exact:.12g}"),
                      "right_kernel": got, "one_key_lost": wrong, "claims": claims}, indent=1))


if __name__ == "__main__":
    main()
