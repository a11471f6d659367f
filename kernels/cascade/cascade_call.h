// SPDX-License-Identifier: Apache-2.0
// The call of cascade_attention: arguments checked and turned into device parameters. Nothing here
// touches a device.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/cascade/cascade_policy.h"
#include "kernels/common/params.h"
#include "kernels/host/arithmetic.h"

#include <vector>

namespace assay {

/// Device view of one level without its kernel-side block offset.
struct CascadeLevelCall {
  PagedKvParams kv;
  const int32_t *segment_indptr;
};

struct CascadeCall {
  assay_dtype dtype;
  int32_t head_dim;
  AttentionParams attention;
  std::vector<CascadeLevelCall> levels; // those with segments
  int splits;
  float *o_accum, *lse_accum; // in the workspace
  bool empty;
};

/// cascade_attention in the table of kernels (kernels/api/kernels.def).
struct Cascade {
  using Params = assay_cascade_params;
  using Call = CascadeCall;
  static constexpr assay_family kFamily = ASSAY_FAMILY_CASCADE;
  static constexpr assay_arithmetic kArithmetic =
      tensor_core_arithmetic(cascade_policy(128).tile, cascade_policy(128).tile, 1);

  static assay_status build(const Params *params, Call &call);
  /// Looks at shapes and at the levels.
  static assay_status workspace_size(const Params *params, uint64_t *bytes);
  static assay_status key_order(const void *params, int32_t request, int32_t qo_head,
                                assay_key_tile *tiles, int32_t capacity, int32_t *count);
};

} // namespace assay
