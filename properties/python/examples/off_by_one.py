# SPDX-License-Identifier: Apache-2.0
"""The kernel of paged_attention.py with a mistake: it leaves out each request's newest token.

python3 examples/off_by_one.py
"""
import assay
import numpy as np

from paged_attention import FP32, attend_all


@assay.kernel(family="paged", declaration=FP32)
def off_by_one(case):
    attend_all(case, np.maximum(case.seq_lens - 1, 0))


if __name__ == "__main__":
    for finding in assay.check(off_by_one, cases=2, property="within_budget").findings:
        print(finding)
