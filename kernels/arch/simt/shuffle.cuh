// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay::n_simt::arch {
namespace detail {

// In kernels/arch/simt/shuffle.cpp. kBytes is 0 for values of any size.
template <simt::Collective kKind, uint32_t kBytes>
void move_values(const simt::WarpCall &call);
void apply_vote(const simt::WarpCall &call);

template <simt::Collective kKind, class T>
inline T shuffle(const T &value, int32_t lane_arg, uint32_t mask, simt::Site site) {
  static_assert(std::is_trivially_copyable_v<T>);
  T result;
  simt::warp_collective({kKind, mask, sizeof(T), &value, &result, lane_arg, &move_values < kKind,
                         sizeof(T) == 4 ? 4 : 0 > },
                        site);
  return result;
}

inline uint32_t vote(simt::Collective kind, bool predicate, uint32_t mask, simt::Site site) {
  uint32_t result = 0;
  simt::warp_collective({kind, mask, 4, nullptr, &result, predicate, &apply_vote}, site);
  return result;
}

} // namespace detail

template <class T>
inline T shfl_xor(T value, int lane_mask, uint32_t mask = kFullMask,
                  simt::Site site = simt::Site::here()) {
  return detail::shuffle<simt::Collective::kShflXor>(value, lane_mask, mask, site);
}
template <class T>
inline T shfl_idx(T value, int src_lane, uint32_t mask = kFullMask,
                  simt::Site site = simt::Site::here()) {
  return detail::shuffle<simt::Collective::kShflIdx>(value, src_lane, mask, site);
}
template <class T>
inline T shfl_up(T value, unsigned delta, uint32_t mask = kFullMask,
                 simt::Site site = simt::Site::here()) {
  return detail::shuffle<simt::Collective::kShflUp>(value, static_cast<int32_t>(delta), mask, site);
}
template <class T>
inline T shfl_down(T value, unsigned delta, uint32_t mask = kFullMask,
                   simt::Site site = simt::Site::here()) {
  return detail::shuffle<simt::Collective::kShflDown>(value, static_cast<int32_t>(delta), mask,
                                                      site);
}

inline uint32_t ballot(bool predicate, uint32_t mask = kFullMask,
                       simt::Site site = simt::Site::here()) {
  return detail::vote(simt::Collective::kBallot, predicate, mask, site);
}
inline bool any(bool predicate, uint32_t mask = kFullMask, simt::Site site = simt::Site::here()) {
  return detail::vote(simt::Collective::kAny, predicate, mask, site) != 0;
}
inline bool all(bool predicate, uint32_t mask = kFullMask, simt::Site site = simt::Site::here()) {
  return detail::vote(simt::Collective::kAll, predicate, mask, site) != 0;
}

} // namespace assay::n_simt::arch
