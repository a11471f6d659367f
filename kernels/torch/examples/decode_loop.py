# SPDX-License-Identifier: Apache-2.0
"""Decode steps of a model with several layers: one plan a step, one launch a layer. Each output is judged where the judge is
installed. On a GPU where there is one, else on the CPU executor."""
import importlib.util

import assay_torch
import torch

LAYERS, STEPS, BATCH, PAGE, PAGES = 2, 3, 2, 16, 8
HEADS, KV_HEADS, DIM = 8, 2, 64


def judged(out, q, caches, page_table, seq_lens):
    """A word on the outputs of a call."""
    if importlib.util.find_spec("assay") is None:
        return "not judged"
    import assay

    report = assay.judge(out, q, caches, page_table=page_table, seq_lens=seq_lens, like="assay")
    return f"{report.verdict}, worst {report.ratio:.2f} of what is allowed"


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    new = lambda *shape: torch.randn(*shape, device=device).bfloat16()  # noqa: E731
    caches = [(new(BATCH * PAGES, PAGE, KV_HEADS, DIM), new(BATCH * PAGES, PAGE, KV_HEADS, DIM)) for _ in range(LAYERS)]
    page_table = torch.arange(BATCH * PAGES, dtype=torch.int32, device=device).view(BATCH, PAGES)
    seq_lens = torch.tensor([100, 33], dtype=torch.int32, device=device)
    for step in range(STEPS):
        seq_lens += 1  # every layer writes K and V of the new token to its cache first
        plan = assay_torch.plan(page_table, seq_lens, num_qo_heads=HEADS, num_kv_heads=KV_HEADS, head_dim=DIM, page_size=PAGE,
                                dtype=torch.bfloat16)
        for layer, cache in enumerate(caches):
            q = new(BATCH, HEADS, DIM)
            out = plan.run(q, cache)
            print(f"step {step} layer {layer}: {judged(out, q, cache, page_table, seq_lens)}")


if __name__ == "__main__":
    main()
