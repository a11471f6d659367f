/* SPDX-License-Identifier: Apache-2.0
 * One decode step on the CPU executor: 2 requests, 4 query heads on one kv head of 64 bf16
 * elements. */
#include <assay/assay.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBatch = 2, kHeads = 4, kDim = 64, kPage = 16, kPages = 3 };

/* Memory of the call: 16-byte aligned. */
static void *zeros(size_t bytes) {
  void *p = aligned_alloc(16, (bytes + 15) / 16 * 16);
  if (p == NULL) exit(1);
  return memset(p, 0, bytes);
}

int main(void) {
  const int32_t page_table[kBatch][2] = {{2, 0},
                                         {1, 0}}; /* request 0 has 20 tokens, request 1 has 5 */
  const int32_t seq_lens[kBatch] = {20, 5};
  uint16_t *v = zeros(kPages * kPage * kDim * sizeof *v);
  for (int i = 0; i < kPages * kPage * kDim; ++i)
    v[i] = 0x3f80; /* 1.0 in bf16 */
  float *lse = zeros(kBatch * kHeads * sizeof *lse);
  uint16_t *o = zeros(kBatch * kHeads * kDim * sizeof *o);

  assay_paged_params p = assay_paged_params_init();
  p.target = ASSAY_TARGET_SIMT;
  p.dtype = p.kv_dtype = ASSAY_BF16;
  p.batch = kBatch;
  p.q_len = 1;
  p.num_qo_heads = kHeads;
  p.num_kv_heads = 1;
  p.head_dim = kDim;
  p.sm_scale = 0.125f; /* 1 / sqrt(head_dim) */
  p.q = zeros(kBatch * kHeads * kDim * sizeof(uint16_t));
  p.out = o;
  p.lse = lse;
  p.q_stride_batch = p.out_stride_batch = kHeads * kDim;
  p.q_stride_head = p.out_stride_head = kDim;
  p.lse_stride_batch = kHeads;
  p.lse_stride_head = 1;
  p.kv.k = zeros(kPages * kPage * kDim * sizeof(uint16_t));
  p.kv.v = v;
  p.kv.k_stride_page = p.kv.v_stride_page = kPage * kDim;
  p.kv.k_stride_token = p.kv.v_stride_token = kDim;
  p.kv.k_stride_head = p.kv.v_stride_head = kDim;
  p.kv.page_table = page_table[0];
  p.kv.page_table_stride = p.kv.max_pages = 2;
  p.kv.seq_lens = seq_lens;
  p.kv.rows = kBatch;
  p.kv.page_size = kPage;

  if (assay_paged_attention_v1(&p) != ASSAY_OK) {
    fprintf(stderr, "%s\n", assay_last_error());
    return 1;
  }
  /* All scores are 0, so every weight is 1 / seq_len: o is the mean of v, lse the log of seq_len.
   */
  for (int b = 0; b < kBatch; ++b) {
    printf("request %d: o 0x%04x, lse %.6f\n", b, o[b * kHeads * kDim], lse[b * kHeads]);
    if (o[b * kHeads * kDim] != 0x3f80 || fabs(lse[b * kHeads] - log(seq_lens[b])) > 1e-5) return 1;
  }
  return 0;
}
