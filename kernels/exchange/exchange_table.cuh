// SPDX-License-Identifier: Apache-2.0
// The exchange kernels of ASSAY_TARGET.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/exchange/exchange_call.h"
#include "kernels/exchange/exchange_states.cuh"
#include "kernels/host/find.h"
#include "kernels/host/launch_kernel.cuh"

namespace assay::ASSAY_TARGET {

template <class E, int kRanks, int kSlots>
assay_status launch_exchange(const ExchangeCall &call, void *stream) {
  return launch_kernel<&exchange_states<E, kRanks, kSlots>>(
      "exchange_states", {call.blocks, kExchangeThreads, call.enable_pdl}, call.params, stream);
}

/// A second slot costs those who have nothing for it a quarter of a microsecond.
template <class E>
assay_status launch_exchange_of(const ExchangeCall &call, void *stream) {
  const ExchangeParams &e = call.params;
  const bool once = e.packets <= 32 && e.states_per_worker <= 32 >> e.lanes_log2;
  if (e.window.num_ranks > 4) return launch_exchange<E, 8, 1>(call, stream);
  if (e.window.num_ranks > 2) return launch_exchange<E, 4, 1>(call, stream);
  return once ? launch_exchange<E, 2, 1>(call, stream) : launch_exchange<E, 2, 2>(call, stream);
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
