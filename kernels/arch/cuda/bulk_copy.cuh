// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay::n_cuda::arch {

// clang-format off
#define ASSAY_TENSOR_COPY(rank, coordinates, ...)                                                  \
  asm volatile("cp.async.bulk.tensor." rank ".shared::cluster.global.tile"                         \
               ".mbarrier::complete_tx::bytes [%0], [%1, {" coordinates "}], [%2];"                \
               ::"r"(to), "l"(&map), "r"(barrier), __VA_ARGS__ : "memory")
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
  if constexpr (kRank == 1)
    ASSAY_TENSOR_COPY("1d", "%3", "r"(at[0]));
  else if constexpr (kRank == 2)
    ASSAY_TENSOR_COPY("2d", "%3, %4", "r"(at[0]), "r"(at[1]));
  else if constexpr (kRank == 3)
    ASSAY_TENSOR_COPY("3d", "%3, %4, %5", "r"(at[0]), "r"(at[1]), "r"(at[2]));
  else if constexpr (kRank == 4)
    ASSAY_TENSOR_COPY("4d", "%3, %4, %5, %6", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]));
  else
    ASSAY_TENSOR_COPY("5d", "%3, %4, %5, %6, %7", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]),
                      "r"(at[4]));
#else
  __trap();
#endif
}
#undef ASSAY_TENSOR_COPY

ASSAY_DEVICE void prefetch_tensor_map(const TensorMap &map) {
#if __CUDA_ARCH__ >= 900
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
#endif
}

} // namespace assay::n_cuda::arch
