/* SPDX-License-Identifier: Apache-2.0
 * Compiled as strict C99: the ABI headers, their layout, and a call through them. */
#include "kernels/abi/assay.h"
#include "kernels/abi/assay_judge.h"
#include "kernels/abi/plugin.h"

#include <stddef.h>

/* C99 has no static_assert: an array of negative size is the error. */
#define LAYOUT(name, condition) typedef char layout_##name[(condition) ? 1 : -1]

LAYOUT(paged_kv, sizeof(assay_paged_kv) == 152);
LAYOUT(paged_size_first, offsetof(assay_paged_params, struct_size) == 0);
LAYOUT(paged_kv_aligned, offsetof(assay_paged_params, kv) % 8 == 0);
LAYOUT(paged_params, sizeof(assay_paged_params) == 424);
LAYOUT(cascade_level, sizeof(assay_cascade_level) == 184);
LAYOUT(cascade_params, sizeof(assay_cascade_params) == 152);
LAYOUT(merge_state, sizeof(assay_merge_state_params) == 184);
LAYOUT(merge_states, sizeof(assay_merge_states_params) == 144);
LAYOUT(key_tile, sizeof(assay_key_tile) == 24);
LAYOUT(enum_values, ASSAY_OK == 0 && ASSAY_HAZARD == 6 && ASSAY_FP16 == 0 && ASSAY_BF16 == 1 &&
                        ASSAY_FP32 == 2 && ASSAY_E4M3 == 3 && ASSAY_E5M2 == 4 &&
                        ASSAY_LSE_BASE_E == 0 && ASSAY_LSE_BASE_2 == 1 && ASSAY_TARGET_CUDA == 1 &&
                        ASSAY_SHARDS == 4 && ASSAY_FIELD61 == 64 && ASSAY_MAX_Q_LEN == 8 &&
                        ASSAY_MAX_CASCADE_LEVELS == 8 && ASSAY_MAX_RANKS == 8);

/* An empty batch through the C entry point: success, nothing launched. */
assay_status abi_c99_empty_batch(void) {
  assay_paged_params params = assay_paged_params_init();
  params.dtype = params.kv_dtype = ASSAY_BF16;
  params.q_len = 1;
  params.num_qo_heads = 8;
  params.num_kv_heads = 2;
  params.head_dim = 64;
  params.sm_scale = 0.125f;
  params.kv.page_size = 16;
  if (assay_abi_version() != (ASSAY_ABI_MAJOR << 16 | ASSAY_ABI_MINOR)) return ASSAY_INTERNAL;
  return assay_paged_attention_v1(&params);
}
