// SPDX-License-Identifier: Apache-2.0
#include "kernels/arch/shuffle.cuh"

#include <string>

namespace assay::n_simt::arch::detail {
namespace {

using simt::Collective;
using simt::kLanes;
using simt::WarpCall;

// The lane whose value `lane` receives. Where a shift leaves the warp, that is the lane itself.
template <Collective kKind>
inline int32_t source_lane(int32_t lane, int32_t arg) {
  if constexpr (kKind == Collective::kShflXor) return lane ^ arg;
  if constexpr (kKind == Collective::kShflIdx) return arg;
  if constexpr (kKind == Collective::kShflUp) return arg > lane ? lane : lane - arg;
  return arg > 31 - lane ? lane : lane + arg;
}

[[noreturn]] void report_source(const WarpCall &call, uint32_t lane, int32_t source) {
  const int32_t arg = call.arg[lane];
  if (arg < 0 || arg >= static_cast<int32_t>(kLanes))
    simt::report_for_lane(lane, simt::HazardKind::kUnmodelled,
                          std::string(to_string(call.kind)) + " with lane argument " +
                              std::to_string(arg) + ", outside [0, 31]",
                          call.site);
  simt::report_for_lane(lane, simt::HazardKind::kAbsentLane,
                        std::string(to_string(call.kind)) + ": lane " + std::to_string(lane) +
                            " reads lane " + std::to_string(source) + ", which is not in the mask",
                        call.site);
}

} // namespace

template <Collective kKind, uint32_t kBytes>
void move_values(const WarpCall &call) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if (!((call.mask >> lane) & 1)) continue;
    const int32_t source = source_lane<kKind>(static_cast<int32_t>(lane), call.arg[lane]);
    const bool arg_ok = static_cast<uint32_t>(call.arg[lane]) < kLanes;
    if (!arg_ok || !((call.mask >> source) & 1)) report_source(call, lane, source);
    // NOTE: every lane's `in` and `out` are different objects, so no value is overwritten early.
    std::memcpy(call.out[lane], call.in[source], kBytes ? kBytes : call.bytes);
  }
}

template void move_values<Collective::kShflXor, 0>(const WarpCall &);
template void move_values<Collective::kShflXor, 4>(const WarpCall &);
template void move_values<Collective::kShflIdx, 0>(const WarpCall &);
template void move_values<Collective::kShflIdx, 4>(const WarpCall &);
template void move_values<Collective::kShflUp, 0>(const WarpCall &);
template void move_values<Collective::kShflUp, 4>(const WarpCall &);
template void move_values<Collective::kShflDown, 0>(const WarpCall &);
template void move_values<Collective::kShflDown, 4>(const WarpCall &);

void apply_vote(const WarpCall &call) {
  uint32_t bits = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    if ((call.mask >> lane) & 1) bits |= static_cast<uint32_t>(call.arg[lane]) << lane;
  const uint32_t result = call.kind == Collective::kBallot ? bits
                          : call.kind == Collective::kAny  ? (bits != 0)
                                                           : (bits == call.mask);
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    if ((call.mask >> lane) & 1) *static_cast<uint32_t *>(call.out[lane]) = result;
}

} // namespace assay::n_simt::arch::detail
