// SPDX-License-Identifier: Apache-2.0
// The exchange kernels of ASSAY_TARGET.
#pragma once

#include "kernels/exchange/exchange_call.h"
#include "kernels/exchange/exchange_states.cuh"
#include "kernels/host/find.h"
#include "kernels/host/launch_kernel.cuh"

namespace assay::ASSAY_TARGET {

template <class E, int kRanks>
assay_status launch_exchange(const ExchangeCall &call, void *stream) {
  return launch_kernel<&exchange_states<E, kRanks>>(
      "exchange_states", {call.blocks, kExchangeThreads, call.early_start}, call.params, stream);
}

template <class E>
assay_status launch_exchange_of(const ExchangeCall &call, void *stream) {
  if (call.params.window.num_ranks <= 2) return launch_exchange<E, 2>(call, stream);
  if (call.params.window.num_ranks <= 4) return launch_exchange<E, 4>(call, stream);
  return launch_exchange<E, 8>(call, stream);
}

inline assay_status find_exchange_states(const ExchangeCall &call, Launch<ExchangeCall> &launch) {
  switch (call.dtype) {
  case ASSAY_FP16:
    launch = &launch_exchange_of<arch::fp16>;
    return ASSAY_OK;
  case ASSAY_BF16:
    launch = &launch_exchange_of<arch::bf16>;
    return ASSAY_OK;
#if !ASSAY_IS_CUDA
  case ASSAY_FIELD61:
    launch = &launch_exchange_of<arch::field>;
    return ASSAY_OK;
#endif
  default:
    launch = &launch_exchange_of<float>;
    return ASSAY_OK;
  }
}

} // namespace assay::ASSAY_TARGET
