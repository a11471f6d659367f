// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/abi/assay.h"

namespace assay {

/// assay_paged_attention_choose: from the cost model of kernels/decode/kernel_choice.h.
assay_status choose_version(const assay_paged_params *params, int64_t total_tokens,
                            int32_t max_seq_len, assay_paged_choice *choice);

} // namespace assay
