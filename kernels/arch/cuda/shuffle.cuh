// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay::n_cuda::arch {
namespace detail {

// Moves a T as 32-bit words, which the compiler keeps in registers.
template <class T, class Move>
ASSAY_DEVICE T shuffle_words(const T &value, Move move) {
  static_assert(std::is_trivially_copyable_v<T>);
  constexpr int kWords = (sizeof(T) + 3) / 4;
  uint32_t words[kWords] = {};
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < kWords; ++i)
    words[i] = move(words[i]);
  T result;
  memcpy(&result, words, sizeof(T));
  return result;
}

} // namespace detail

template <class T>
ASSAY_DEVICE T shfl_xor(T value, int lane_mask, uint32_t mask = kFullMask) {
  return detail::shuffle_words(value,
                               [=](uint32_t w) { return __shfl_xor_sync(mask, w, lane_mask); });
}
template <class T>
ASSAY_DEVICE T shfl_idx(T value, int src_lane, uint32_t mask = kFullMask) {
  return detail::shuffle_words(value, [=](uint32_t w) { return __shfl_sync(mask, w, src_lane); });
}
template <class T>
ASSAY_DEVICE T shfl_up(T value, unsigned delta, uint32_t mask = kFullMask) {
  return detail::shuffle_words(value, [=](uint32_t w) { return __shfl_up_sync(mask, w, delta); });
}
template <class T>
ASSAY_DEVICE T shfl_down(T value, unsigned delta, uint32_t mask = kFullMask) {
  return detail::shuffle_words(value, [=](uint32_t w) { return __shfl_down_sync(mask, w, delta); });
}

ASSAY_DEVICE uint32_t ballot(bool predicate, uint32_t mask = kFullMask) {
  return __ballot_sync(mask, predicate);
}
ASSAY_DEVICE bool any(bool predicate, uint32_t mask = kFullMask) {
  return __any_sync(mask, predicate) != 0;
}
ASSAY_DEVICE bool all(bool predicate, uint32_t mask = kFullMask) {
  return __all_sync(mask, predicate) != 0;
}

} // namespace assay::n_cuda::arch
