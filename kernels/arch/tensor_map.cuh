// SPDX-License-Identifier: Apache-2.0
// Tensor maps: what a bulk tensor copy knows of a tensor in global memory (sm_90; PTX ISA,
// "Tensors" and "Tensor-map"). The host makes a map, and a kernel has it as a __grid_constant__
// parameter, or inside one.
//   const char *make_tensor_map(map, shape)   fills `map`. Returns null, or why there is no such
//                                             map: what the shape breaks of the ranges below, on
//                                             cuda also what the driver says
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/arch/target.cuh"

namespace assay::ASSAY_TARGET::arch {

/// The device's representation.
struct alignas(64) TensorMap {
  uint64_t words[16];
};

inline constexpr int kMaxTensorRank = 5;

/// How the box of a copy lies in shared memory.
///   kNone        dense, dimension 0 innermost
///   k128Bytes    rows of 128 bytes, whose 16-byte chunks are swizzled as wgmma reads them: chunk c
///                of row r is at c ^ (r % 8). Dimension 0 of the box has 128 bytes
enum class Swizzle : uint8_t { kNone, k128Bytes };

/// A tensor, and the box of it that one copy takes. Dimension 0 is innermost and contiguous.
struct TensorShape {
  const void *data = nullptr;           // a multiple of 16
  int rank = 1;                         // 1 to 5
  int element_bytes = 2;                // 1, 2, 4 or 8
  uint64_t size[kMaxTensorRank] = {};   // elements, 1 to 2^32
  uint64_t stride[kMaxTensorRank] = {}; // bytes, of dimensions 1 on: multiples of 16 below 2^40
  uint32_t box[kMaxTensorRank] = {};    // elements, 1 to 256; of dimension 0 a multiple of 16 bytes
  Swizzle swizzle = Swizzle::kNone;
};

/// Bytes of a box, and so of a copy, whether or not it reaches past the end of the tensor.
inline uint32_t box_bytes(const TensorShape &shape) {
  auto bytes = static_cast<uint32_t>(shape.element_bytes);
  for (int d = 0; d < shape.rank; ++d)
    bytes *= shape.box[d];
  return bytes;
}

namespace detail {

/// What the shape breaks, or null.
inline const char *refused(const TensorShape &shape) {
  if (shape.rank < 1 || shape.rank > kMaxTensorRank) return "the rank is not 1 to 5";
  if (shape.element_bytes != 1 && shape.element_bytes != 2 && shape.element_bytes != 4 &&
      shape.element_bytes != 8)
    return "an element does not have 1, 2, 4 or 8 bytes";
  if (shape.data == nullptr || reinterpret_cast<uintptr_t>(shape.data) % 16 != 0)
    return "the data is null, or not at a multiple of 16 bytes";
  for (int d = 0; d < shape.rank; ++d) {
    if (shape.size[d] < 1 || shape.size[d] > uint64_t{1} << 32) return "a size is not 1 to 2^32";
    if (shape.box[d] < 1 || shape.box[d] > 256) return "a box has not 1 to 256 elements";
    if (d > 0 && (shape.stride[d] % 16 != 0 || shape.stride[d] >= uint64_t{1} << 40))
      return "a stride is not a multiple of 16 bytes below 2^40";
  }
  const uint32_t row = shape.box[0] * static_cast<uint32_t>(shape.element_bytes);
  if (row % 16 != 0) return "a row of the box is not a multiple of 16 bytes";
  if (shape.swizzle == Swizzle::k128Bytes && row != 128)
    return "a row of a swizzled box does not have 128 bytes";
  return nullptr;
}

} // namespace detail
} // namespace assay::ASSAY_TARGET::arch

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/tensor_map.cuh"
#else
#include "kernels/arch/simt/tensor_map.cuh"
#endif
