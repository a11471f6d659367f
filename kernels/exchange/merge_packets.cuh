// SPDX-License-Identifier: Apache-2.0
// What an exchange makes of the packets of all ranks at one place of a state.
#pragma once

#include "kernels/arch/peer.cuh"
#include "kernels/common/merge_lanes.cuh"
#include "kernels/exchange/exchange_params.h"

namespace assay::ASSAY_TARGET {

/// Words of the merged state, and its LSE in the caller's base.
template <class Number>
struct MergedPacket {
  arch::Packet packet;
  Number lse;
};

/// The components in a packet, and zeros behind them.
template <class E>
ASSAY_DEVICE Pack8<E> components(const arch::Packet &packet) {
  Pack8<E> pack = {};
  pack.raw[0] = {packet.words[0], packet.words[1], packet.words[2], 0};
  return pack;
}
template <class E, class Number>
ASSAY_DEVICE arch::Packet packet_of(const Number (&o)[8]) {
  const arch::Vec4 words = Pack8<E>::pack(o).raw[0];
  return {{words.x, words.y, words.z}, 0};
}

/// One packet of one state, of all ranks, and their LSEs. Order and arithmetic are those of
/// merge_states.
template <class E, int kRanks, class Number>
ASSAY_DEVICE MergedPacket<Number> merge_packets(const ExchangeParams &params,
                                                const arch::Packet *packets, const Number *lse) {
  const int ranks = params.window.num_ranks;
  MergedStates<Number> sum = MergedStates<Number>::none();
  ASSAY_UNROLL
  for (int r = 0; r < kRanks; ++r)
    if (r < ranks) sum.m = arch::max_num(sum.m, lse[r]);
  MergedPacket<Number> lone = {packets[0], sum.m}; // the LSE stays where no state has a weight
  ASSAY_UNROLL
  for (int r = 0; r < kRanks; ++r) {
    if (r >= ranks) continue;
    const Number weight = AttentionState<Number, 1>::weight(lse[r], sum.m, params.scale);
    if (weight == 0.0f) continue;
    sum.add(weight, components<E>(packets[r]), r);
    lone = {packets[r], lse[r]};
  }
  SliceOf<Number> state = SliceOf<Number>::from_normalized(sum.m, sum.o);
  state.d = sum.d;
  state.normalize();
  const Number mass = lse_in_unit(arch::log2_approx(sum.d), params.unit);
  const MergedPacket<Number> merged = {packet_of<E>(state.o),
                                       sum.d == 0.0f ? sum.m : Number(sum.m + mass)};
  // Where one state alone has a weight, the result has its bits, also the payloads of NaNs.
  return sum.weighted == 1 ? lone : merged;
}

} // namespace assay::ASSAY_TARGET
