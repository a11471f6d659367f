// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

namespace assay::n_simt::arch {
namespace detail {

/// What a TensorMap of this target holds.
struct SimtTensorMap {
  static constexpr uint32_t kMagic = 0x54a11a9e;
  uint32_t magic;
  uint8_t rank, element_bytes, swizzled, unused;
  const std::byte *data;
  uint64_t stride[kMaxTensorRank - 1]; // of dimensions 1 on
  uint64_t size[kMaxTensorRank];
  uint16_t box[kMaxTensorRank];
};
static_assert(sizeof(SimtTensorMap) <= sizeof(TensorMap));

} // namespace detail

inline const char *make_tensor_map(TensorMap &map, const TensorShape &shape) {
  if (const char *reason = detail::refused(shape)) return reason;
  detail::SimtTensorMap made = {};
  made.magic = detail::SimtTensorMap::kMagic;
  made.rank = static_cast<uint8_t>(shape.rank);
  made.element_bytes = static_cast<uint8_t>(shape.element_bytes);
  made.swizzled = shape.swizzle == Swizzle::k128Bytes;
  made.data = static_cast<const std::byte *>(shape.data);
  for (int d = 0; d < kMaxTensorRank; ++d) {
    const bool has = d < shape.rank;
    made.size[d] = has ? shape.size[d] : 1;
    made.box[d] = static_cast<uint16_t>(has ? shape.box[d] : 1);
    if (d > 0) made.stride[d - 1] = has ? shape.stride[d] : 0;
  }
  map = {};
  std::memcpy(map.words, &made, sizeof made);
  return nullptr;
}

} // namespace assay::n_simt::arch
