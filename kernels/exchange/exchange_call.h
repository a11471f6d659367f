// SPDX-License-Identifier: Apache-2.0
// The call of exchange_states: arguments checked and turned into device parameters.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/exchange/exchange_params.h"

namespace assay {

struct ExchangeCall {
  ExchangeParams params;
  assay_dtype dtype;
  int64_t blocks;
  bool empty, enable_pdl;
};

/// exchange_states in the table of kernels (kernels/api/kernels.def).
struct ExchangeStates {
  using Params = assay_exchange_params;
  using Call = ExchangeCall;
  static assay_status build(const Params *params, Call &call);
  static assay_status window_size(const Params *params, uint64_t *bytes);
  /// Where a window of these calls has what. The sizes are valid.
  static ExchangeWindow window_of(const Params &params);
};

} // namespace assay
