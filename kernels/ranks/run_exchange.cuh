// SPDX-License-Identifier: Apache-2.0
// What calls of several ranks share.
#pragma once

#include "kernels/exchange/exchange_table.cuh"
#include "kernels/ranks/rank_memory.h"

#include <optional>

namespace assay::ASSAY_TARGET {

/// The executor's stream of a call that may have none.
class RankStream {
public:
  explicit RankStream(void *stream) : stream_(static_cast<simt::Stream *>(stream)) {
    if (stream_ != nullptr) return;
    own_.emplace();
    own_->strict_global = false;
    stream_ = &*own_;
  }
  simt::Stream &operator*() const { return *stream_; }

private:
  std::optional<simt::Stream> own_;
  simt::Stream *stream_;
};

inline assay_status run_exchange(const assay_exchange_params &params) {
  ExchangeCall call{};
  Launch<ExchangeCall> launch = nullptr;
  ASSAY_RETURN_IF_ERROR(ExchangeStates::build(&params, call));
  ASSAY_RETURN_IF_ERROR(find_exchange_states(call, launch));
  return call.empty ? ASSAY_OK : launch(call, params.stream);
}

} // namespace assay::ASSAY_TARGET
