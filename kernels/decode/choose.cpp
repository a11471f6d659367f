// SPDX-License-Identifier: Apache-2.0
#include "kernels/decode/choose.h"

#include "kernels/blocks/split_kv_call.h"
#include "kernels/decode/kernel_choice.h"
#include "kernels/host/attention_call.h"

namespace assay {

assay_status choose_version(const assay_paged_params *p, int64_t total_tokens, int32_t max_seq_len,
                            assay_paged_choice *choice) {
  PagedShape shape;
  ASSAY_RETURN_IF_ERROR(build_paged_shape(p, shape));
  ASSAY_RETURN_IF_ERROR(check_splits(shape, p->num_splits));
  ASSAY_RETURN_IF_ERROR(check_range("max_seq_len", max_seq_len, 0, kMaxTokens));
  ASSAY_RETURN_IF_ERROR(
      check_range("total_tokens", total_tokens, 0, int64_t{p->batch} * max_seq_len));
  if (choice == nullptr) return fail(ASSAY_INVALID_ARGUMENT, "choice is null");
  const DecodeLoad load{.batch = std::max<int64_t>(p->batch, 1),
                        .total_tokens = total_tokens,
                        .max_seq_len = max_seq_len,
                        .kv_heads = p->num_kv_heads,
                        .row_bytes = int64_t{2} * p->head_dim * shape.kv_bytes,
                        .head_dim = p->head_dim};
  *choice = {.version = p->num_splits > 0 || v2_cost(load) < v1_cost(load) ? 2 : 1,
             .even_lengths = lengths_are_even(load),
             .reserved = {}};
  return ASSAY_OK;
}

} // namespace assay
