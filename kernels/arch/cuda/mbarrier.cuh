// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay::n_cuda::arch {
namespace detail {

ASSAY_DEVICE uint32_t mbarrier_address(const Mbarrier *b) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(b));
}

} // namespace detail

/// Waits until `try_wait` says that the phase of `b` with `parity` is complete.
#define ASSAY_MBARRIER_WAIT(try_wait)                                                              \
  asm volatile("{\n"                                                                               \
               ".reg .pred complete;\n"                                                            \
               "again:\n" try_wait " complete, [%0], %1;\n"                                        \
               "@complete bra done;\n"                                                             \
               "bra again;\n"                                                                      \
               "done:\n"                                                                           \
               "}" ::"r"(detail::mbarrier_address(b)),                                             \
               "r"(parity)                                                                         \
               : "memory")

ASSAY_DEVICE void mbarrier_init(Mbarrier *b, uint32_t count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(detail::mbarrier_address(b)), "r"(count)
               : "memory");
}
ASSAY_DEVICE void mbarrier_arrive(Mbarrier *b) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(detail::mbarrier_address(b)) : "memory");
}
ASSAY_DEVICE void mbarrier_expect_tx(Mbarrier *b, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(detail::mbarrier_address(b)),
      "r"(bytes)
      : "memory");
#else
  __trap();
#endif
}
ASSAY_DEVICE void mbarrier_arrive_expect_tx(Mbarrier *b, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(detail::mbarrier_address(b)),
      "r"(bytes)
      : "memory");
#else
  __trap();
#endif
}
ASSAY_DEVICE void fence_mbarrier_init() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
ASSAY_DEVICE void mbarrier_wait(Mbarrier *b, uint32_t parity) {
#if __CUDA_ARCH__ >= 900
  ASSAY_MBARRIER_WAIT("mbarrier.try_wait.parity.shared.b64");
#else
  __trap();
#endif
}

} // namespace assay::n_cuda::arch
