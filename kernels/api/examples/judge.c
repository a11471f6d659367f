/* SPDX-License-Identifier: Apache-2.0
 * One row of attention over two keys, judged: the smallest use of assay_judge.h. */
#include <assay_judge.h>
#include <stdio.h>

static assay_array dense(const void *data, int32_t dtype, int32_t dims, const int64_t *shape) {
  assay_array a = {0};
  int64_t stride = 1;
  a.data = data;
  a.dtype = dtype;
  a.dims = dims;
  for (int32_t i = dims - 1; i >= 0; --i) {
    a.shape[i] = shape[i];
    a.stride[i] = stride;
    stride *= shape[i];
  }
  return a;
}

int main(void) {
  /* bf16: q and both keys are 1, the values 1 and 3. Any right kernel returns 2. */
  const uint16_t one = 0x3f80, q[8] = {one, one, one, one, one, one, one, one};
  uint16_t k[16], v[16], out[8];
  for (int i = 0; i < 16; ++i) {
    k[i] = one;
    v[i] = i < 8 ? one : 0x4040;
  }
  for (int i = 0; i < 8; ++i)
    out[i] = 0x4000;
  const int32_t keys = 2;
  assay_judge_attention_params p = {0};
  p.struct_size = sizeof p;
  p.out = dense(out, ASSAY_BF16, 3, (const int64_t[]){1, 1, 8});
  p.q = dense(q, ASSAY_BF16, 3, (const int64_t[]){1, 1, 8});
  p.k = dense(k, ASSAY_BF16, 4, (const int64_t[]){1, 2, 1, 8});
  p.v = dense(v, ASSAY_BF16, 4, (const int64_t[]){1, 2, 1, 8});
  p.seq_lens = dense(&keys, ASSAY_INT32, 1, (const int64_t[]){1});
  p.causal = 1;
  p.window_left = p.window_right = -1;
  p.sm_scale = 0.35f;
  p.arithmetic.p_format = ASSAY_FORMAT_CALL;
  p.arithmetic.exp2_rel_error = p.arithmetic.rcp_rel_error = 1e-6;
  assay_judge_report report = {0};
  report.struct_size = sizeof report;
  if (assay_judge_attention(&p, &report) != ASSAY_OK) {
    fprintf(stderr, "%s\n", assay_judge_last_error());
    return 1;
  }
  if (report.verdict != ASSAY_JUDGE_INSIDE) return 1;
  out[5] = 0x4010; /* 2.25 */
  if (assay_judge_attention(&p, &report) != ASSAY_OK) return 1;
  printf("judge: dim %d is %g, exact %g, allowed %g: %s\n", (int)report.worst.dim, report.worst.got,
         report.worst.exact, report.worst.allowed, report.worst.reason);
  return report.verdict == ASSAY_JUDGE_OUTSIDE && report.worst.dim == 5 ? 0 : 1;
}
