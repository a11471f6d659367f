// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace assay::n_cuda::arch {
namespace detail {

/// cuTensorMapEncodeTiled of the driver, which nothing links; null where it has none.
inline auto tensor_map_encoder() {
  void *function = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                   &result);
#else
  cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &result);
#endif
  if (result != cudaDriverEntryPointSuccess) function = nullptr;
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

inline CUtensorMapDataType word_of(int element_bytes) {
  switch (element_bytes) {
  case 1:
    return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  case 2:
    return CU_TENSOR_MAP_DATA_TYPE_UINT16;
  case 4:
    return CU_TENSOR_MAP_DATA_TYPE_UINT32;
  default:
    return CU_TENSOR_MAP_DATA_TYPE_UINT64;
  }
}

} // namespace detail

inline const char *make_tensor_map(TensorMap &map, const TensorShape &shape) {
  static_assert(sizeof(TensorMap) == sizeof(CUtensorMap));
  if (const char *reason = detail::refused(shape)) return reason;
  static const auto encode = detail::tensor_map_encoder();
  if (encode == nullptr) return "the driver has no cuTensorMapEncodeTiled";
  cuuint32_t steps[kMaxTensorRank] = {1, 1, 1, 1, 1}; // takes every element
  cuuint64_t sizes[kMaxTensorRank], strides[kMaxTensorRank];
  for (int d = 0; d < shape.rank; ++d) {
    sizes[d] = shape.size[d];
    if (d > 0) strides[d - 1] = shape.stride[d];
  }
  const CUresult status = encode(
      reinterpret_cast<CUtensorMap *>(&map), detail::word_of(shape.element_bytes),
      static_cast<cuuint32_t>(shape.rank), const_cast<void *>(shape.data), sizes, strides,
      shape.box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      shape.swizzle == Swizzle::kNone ? CU_TENSOR_MAP_SWIZZLE_NONE : CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return status == CUDA_SUCCESS ? nullptr : "the driver refuses the tensor map";
}

} // namespace assay::n_cuda::arch
