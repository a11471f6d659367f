// SPDX-License-Identifier: Apache-2.0
// Internal: the threads of a block that works on tiles of keys or values, their copies to shared
// memory, and their MMAs.
#pragma once

#include "oracle/device/call_rows.h"

namespace assay::oracle::device {

inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / 32;
static_assert(kThreads == 4 * kTileKeys);

/** Four threads load a key, and look at what they loaded. */
__device__ inline int own_key() { return static_cast<int>(threadIdx.x) / 4; }
__device__ inline int own_part() { return static_cast<int>(threadIdx.x) % 4; }

/// 16 bytes, or zeros; then `from` is any address that may be read.
__device__ inline void copy_async(void *to, const void *from, bool present) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from),
               "r"(present ? 16 : 0)
               : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ inline void await_copies() { asm volatile("cp.async.wait_group 0;" ::: "memory"); }

/** c += a b, 16 x 8 by 8 x 8, in fp64. Of a, a lane holds column lane % 4 of rows lane / 4 and 8
    more, then column 4 more of both; of b rows lane % 4 and 4 more of column lane / 4; of c rows as
    of a, columns 2 (lane % 4) and the next. */
__device__ inline void multiply8(double (&c)[4], const double (&a)[4], double b0, double b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
               : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
#else // The same in four quarters: lanes hold their operands alike.
  const auto quarter = [](double &left, double &right, double x, double b) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(left), "+d"(right)
                 : "d"(x), "d"(b));
  };
  quarter(c[0], c[1], a[0], b0);
  quarter(c[0], c[1], a[2], b1);
  quarter(c[2], c[3], a[1], b0);
  quarter(c[2], c[3], a[3], b1);
#endif
}

/// Four matrices of 8 x 8 halves, transposed; a lane gives a row.
__device__ inline void load_transposed(uint32_t (&out)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}

} // namespace assay::oracle::device
