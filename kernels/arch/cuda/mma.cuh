// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

namespace assay::n_cuda::arch {
namespace detail {

ASSAY_DEVICE uint32_t shared_address(const void *p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

} // namespace detail

ASSAY_DEVICE void ldmatrix_x1(uint32_t (&r)[1], const void *shared_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(detail::shared_address(shared_row))
               : "memory");
}
ASSAY_DEVICE void ldmatrix_x2(uint32_t (&r)[2], const void *shared_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(detail::shared_address(shared_row))
               : "memory");
}
ASSAY_DEVICE void ldmatrix_x4(uint32_t (&r)[4], const void *shared_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(detail::shared_address(shared_row))
               : "memory");
}
ASSAY_DEVICE void ldmatrix_x1_trans(uint32_t (&r)[1], const void *shared_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(detail::shared_address(shared_row))
               : "memory");
}
ASSAY_DEVICE void ldmatrix_x2_trans(uint32_t (&r)[2], const void *shared_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(detail::shared_address(shared_row))
               : "memory");
}
ASSAY_DEVICE void ldmatrix_x4_trans(uint32_t (&r)[4], const void *shared_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(detail::shared_address(shared_row))
               : "memory");
}

ASSAY_DEVICE uint32_t movmatrix_trans(uint32_t r) {
  uint32_t result;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(r));
  return result;
}

template <class E>
ASSAY_DEVICE void mma_m16n8k16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  static_assert(std::is_same_v<E, bf16> || std::is_same_v<E, fp16>);
  if constexpr (std::is_same_v<E, bf16>)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

} // namespace assay::n_cuda::arch
