# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's reference for paged decode (flashinfer.trace), judged on a page that is full and on one that is not.

It takes no last_page_len, so it attends to every slot of a request's last page. With flashinfer-python installed
(no GPU is needed): python3 flashinfer_trace_reference.py"""
import assay
import torch

PAGE = 2


def judged(last_page_len):
    """The report of one request of one page, one head of one element: keys are 0, values 1 in front and 0 behind."""
    from flashinfer.trace.templates.attention import gqa_paged_decode_trace

    q = torch.ones(1, 1, 1, dtype=torch.bfloat16)
    k = torch.zeros(1, PAGE, 1, 1, dtype=torch.bfloat16)
    v = torch.tensor([1.0, 0.0], dtype=torch.bfloat16).reshape(1, PAGE, 1, 1)
    indptr, indices = torch.tensor([0, 1], dtype=torch.int32), torch.tensor([0], dtype=torch.int32)
    out, lse = gqa_paged_decode_trace.reference(q, k, v, indptr, indices, 1.0)
    return assay.judge(
        out, q, (k, v), page_table=indices, page_indptr=indptr, last_page_len=torch.tensor([last_page_len], dtype=torch.int32),
        sm_scale=1.0, lse=lse, lse_layout="TH", lse_base=2, like="sdpa_math",
    )  # fmt: skip


if __name__ == "__main__":
    import flashinfer

    print(f"flashinfer {flashinfer.__version__}: the reference of gqa_paged_decode, pages of {PAGE} tokens")
    for last in (PAGE, PAGE - 1):
        print(f"\nlast_page_len {last}: {judged(last)}")
