// SPDX-License-Identifier: Apache-2.0
#include "kernels/arch/shuffle.cuh"

#include <string>

namespace assay::n_simt::arch::detail {
namespace {

using simt::Collective;
using simt::kLanes;
using simt::WarpCall;

// The lane whose value `lane` receives; out-of-range shifts give the lane itself.
int32_t source_lane(const WarpCall &call, int32_t lane) {
  const int32_t arg = call.arg[lane];
  switch (call.kind) {
  case Collective::kShflXor:
    return lane ^ arg;
  case Collective::kShflIdx:
    return arg;
  case Collective::kShflUp:
    return arg > lane ? lane : lane - arg;
  default:
    return arg > 31 - lane ? lane : lane + arg;
  }
}

void check_source(const WarpCall &call, uint32_t lane, int32_t source) {
  const bool in_warp = source >= 0 && source < static_cast<int32_t>(kLanes);
  if (in_warp && ((call.mask >> source) & 1)) return;
  if (call.arg[lane] < 0 || !in_warp)
    simt::report_for_lane(lane, simt::HazardKind::kUnmodelled,
                          std::string(to_string(call.kind)) + " with lane argument " +
                              std::to_string(call.arg[lane]) + ", outside [0, 31]",
                          call.site);
  simt::report_for_lane(lane, simt::HazardKind::kAbsentLane,
                        std::string(to_string(call.kind)) + ": lane " + std::to_string(lane) +
                            " reads lane " + std::to_string(source) + ", which is not in the mask",
                        call.site);
}

template <uint32_t kBytes>
void move_values(const WarpCall &call) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if (!((call.mask >> lane) & 1)) continue;
    const int32_t source = source_lane(call, static_cast<int32_t>(lane));
    check_source(call, lane, source);
    // NOTE: every lane's `in` and `out` are different objects, so no value is overwritten early.
    std::memcpy(call.out[lane], call.in[source], kBytes ? kBytes : call.bytes);
  }
}

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

} // namespace

void shuffle(Collective kind, const void *in, void *out, uint32_t bytes, int32_t lane_arg,
             uint32_t mask, simt::Site site) {
  simt::warp_collective({kind, mask, bytes, in, out, lane_arg,
                         bytes == 4   ? &move_values<4>
                         : bytes == 8 ? &move_values<8>
                                      : &move_values<0>},
                        site);
}

uint32_t vote(Collective kind, bool predicate, uint32_t mask, simt::Site site) {
  uint32_t result = 0;
  simt::warp_collective({kind, mask, 4, nullptr, &result, predicate, &apply_vote}, site);
  return result;
}

} // namespace assay::n_simt::arch::detail
