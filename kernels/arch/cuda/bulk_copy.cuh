// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay::n_cuda::arch {

// clang-format off
#define ASSAY_TENSOR_COPY_OF(rank, coordinates, cast, blocks_at, ...)                              \
  asm volatile("cp.async.bulk.tensor." rank ".shared::cluster.global.tile"                         \
               ".mbarrier::complete_tx::bytes" cast                                                \
               " [%0], [%1, {" coordinates "}], [%2]" blocks_at ";"                                \
               ::"r"(to), "l"(&map), "r"(barrier), "h"(blocks), __VA_ARGS__ : "memory")
/// A copy of kRank dimensions from `at` of `map` to `to`: to this block, or, with `cast` and
/// `blocks_at` as multicast has them, to `blocks`.
#define ASSAY_TENSOR_COPY(cast, blocks_at)                                                         \
  if constexpr (kRank == 1)                                                                        \
    ASSAY_TENSOR_COPY_OF("1d", "%4", cast, blocks_at, "r"(at[0]));                                 \
  else if constexpr (kRank == 2)                                                                   \
    ASSAY_TENSOR_COPY_OF("2d", "%4, %5", cast, blocks_at, "r"(at[0]), "r"(at[1]));                 \
  else if constexpr (kRank == 3)                                                                   \
    ASSAY_TENSOR_COPY_OF("3d", "%4, %5, %6", cast, blocks_at, "r"(at[0]), "r"(at[1]), "r"(at[2])); \
  else if constexpr (kRank == 4)                                                                   \
    ASSAY_TENSOR_COPY_OF("4d", "%4, %5, %6, %7", cast, blocks_at, "r"(at[0]), "r"(at[1]),          \
                         "r"(at[2]), "r"(at[3]));                                                  \
  else                                                                                             \
    ASSAY_TENSOR_COPY_OF("5d", "%4, %5, %6, %7, %8", cast, blocks_at, "r"(at[0]), "r"(at[1]),      \
                         "r"(at[2]), "r"(at[3]), "r"(at[4]))
// clang-format on

ASSAY_DEVICE void bulk_copy(void *dst, const void *src, uint32_t bytes, Mbarrier *b) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1], %2, [%3];" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(dst))),
               "l"(__cvta_generic_to_global(src)), "r"(bytes), "r"(detail::mbarrier_address(b))
               : "memory");
#else
  __trap();
#endif
}

template <int kRank>
ASSAY_DEVICE void tensor_copy(void *dst, const TensorMap &map, const int32_t (&at)[kRank],
                              Mbarrier *b) {
  static_assert(kRank >= 1 && kRank <= kMaxTensorRank);
#if __CUDA_ARCH__ >= 900
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(dst));
  const uint32_t barrier = detail::mbarrier_address(b);
  constexpr uint16_t blocks = 0;
  ASSAY_TENSOR_COPY("", "");
#else
  __trap();
#endif
}

ASSAY_DEVICE void prefetch_tensor_map(const TensorMap &map) {
#if __CUDA_ARCH__ >= 900
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
#endif
}

} // namespace assay::n_cuda::arch
