/* SPDX-License-Identifier: Apache-2.0
 * What a call on the GPU needs, asked before anything is allocated. */
#include <assay/assay.h>

#include <inttypes.h>
#include <stdio.h>

int main(void) {
  assay_paged_params p = assay_paged_params_init();
  p.target = ASSAY_TARGET_CUDA;
  p.dtype = p.kv_dtype = ASSAY_BF16;
  p.batch = p.kv.rows = 64;
  p.q_len = 1;
  p.num_qo_heads = 32;
  p.num_kv_heads = 8;
  p.head_dim = 128;
  p.sm_scale = 0.0883883f;
  p.kv.page_size = 16;
  p.kv.max_pages = p.kv.page_table_stride = 512;

  uint64_t bytes = 0;
  const assay_status status = assay_paged_attention_v2_workspace_size(&p, &bytes);
  if (status == ASSAY_OK)
    printf("paged_attention_v2 needs %" PRIu64 " bytes of workspace\n", bytes);
  else if (status == ASSAY_LAUNCH_FAILED) /* no CUDA device answers */
    printf("%s: %s\n", assay_status_name(status), assay_last_error());
  else
    return 1;

  /* q is still null: refused by name, device or not. */
  if (assay_paged_attention_v2_supports(&p) != ASSAY_INVALID_ARGUMENT) return 1;
  printf("refused: %s\n", assay_last_error());
  /* This library has no CPU executor. */
  p.target = ASSAY_TARGET_SIMT;
  return assay_paged_attention_v2_supports(&p) == ASSAY_UNSUPPORTED ? 0 : 1;
}
