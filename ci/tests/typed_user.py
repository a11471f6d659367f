# SPDX-License-Identifier: Apache-2.0
"""What users write, for `mypy --strict` (ci/wheel.sh): the public names have types, and the right ones. Never run."""
import typing

import numpy as np

import assay

q = np.zeros((1, 1, 8), np.float16)
report: assay.JudgeReport = assay.judge(q, q, (q, q), seq_lens=[1], like="fa2", window_left=47)
passed: bool = report.passed
text: str = str(report.raise_for_findings()) + assay.__version__ + assay.find_program()
merged = assay.judge_merge(q, [q, q], [q, q], lse_base=2, like=assay.Declaration.like("fa3"))
worst: float = max(merged.ratio, report.worst["ratio"])
names: typing.List[str] = assay.arithmetic.names()
bits = assay.from_float32(assay.to_float32(q, "fp16"), "bf16")

try:
    assay.assert_attention(q, q, (q, q), seq_lens=[1], findings=None)
    assay.assert_merge(q, [q], [q], hint_seconds=0.5)
except assay.AttentionError as error:
    verdict: str = error.report.verdict
    print(error.path, *error.notes)

assay.judge(q, q, (q, q), windw=1)  # type: ignore[call-arg]
assay.judge(q, q, (q, q), kv_layout="NDH")  # type: ignore[arg-type]


@assay.kernel(family="merge_state", declaration=assay.Declaration(exp2_rel_error=2.0**-21), checks_arguments=True)
def merge(case: typing.Any) -> None:
    raise assay.Unsupported("never")


merge(None)
result: assay.Result = assay.check(merge, budget="5s", only={"dtype": "bf16"})
found: typing.List[assay.Finding] = result.raise_for_findings().findings
watch = assay.flashinfer.install(every=10)
