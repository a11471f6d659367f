// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

namespace assay::n_cuda::arch {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
inline constexpr bool kWarpgroups = true;
#else
inline constexpr bool kWarpgroups = false;
#endif
ASSAY_DEVICE void trap_without_warpgroups() { __trap(); }

namespace detail {

/// A matrix descriptor: the address and two distances, all in units of 16 bytes, and the code of
/// the 128-byte swizzle.
struct MatrixDescriptor {
  uint64_t bits;

  ASSAY_DEVICE MatrixDescriptor(const void *p, uint32_t leading_bytes) {
    const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(p));
    constexpr uint64_t kGroupBytes = 1024, kSwizzle128 = 1;
    bits = (address & 0x3ffff) >> 4 | uint64_t{leading_bytes >> 4} << 16 |
           (kGroupBytes >> 4) << 32 | kSwizzle128 << 62;
  }
  ASSAY_DEVICE explicit MatrixDescriptor(uint64_t b) : bits(b) {}
};

} // namespace detail

struct KMajorMatrix : detail::MatrixDescriptor {
  ASSAY_DEVICE explicit KMajorMatrix(const void *p) : MatrixDescriptor(p, 16) {}
  ASSAY_DEVICE explicit KMajorMatrix(uint64_t b) : MatrixDescriptor(b) {}
  ASSAY_DEVICE KMajorMatrix at(uint32_t bytes) const { return KMajorMatrix(bits + (bytes >> 4)); }
};
struct NMajorMatrix : detail::MatrixDescriptor {
  ASSAY_DEVICE NMajorMatrix(const void *p, uint32_t block_bytes)
      : MatrixDescriptor(p, block_bytes) {}
  ASSAY_DEVICE explicit NMajorMatrix(uint64_t b) : MatrixDescriptor(b) {}
  ASSAY_DEVICE NMajorMatrix at(uint32_t bytes) const { return NMajorMatrix(bits + (bytes >> 4)); }
};

namespace detail {

// clang-format off
#define ASSAY_WGMMA_8(c, i)                                                                        \
  "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]),      \
      "+f"(c[i + 6]), "+f"(c[i + 7])
#define ASSAY_WGMMA_32(c, i)                                                                       \
  ASSAY_WGMMA_8(c, i), ASSAY_WGMMA_8(c, i + 8), ASSAY_WGMMA_8(c, i + 16), ASSAY_WGMMA_8(c, i + 24)
#define ASSAY_WGMMA_LIST_32 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, " \
  "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define ASSAY_WGMMA_LIST_64 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, " \
  "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, " \
  "%33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, " \
  "%49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

#define ASSAY_WGMMA_SS_64(type)                                                                    \
  asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0;"                                              \
               "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " "                       \
               ASSAY_WGMMA_LIST_32 ", %32, %33, p, 1, 1, 0, 0;}"                                     \
               : ASSAY_WGMMA_32(c, 0)                                                              \
               : "l"(a.bits), "l"(b.bits), "r"(scale))
#define ASSAY_WGMMA_RS_64(type)                                                                    \
  asm volatile("{.reg .pred p; setp.ne.b32 p, %37, 0;"                                              \
               "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " "                       \
               ASSAY_WGMMA_LIST_32 ", {%32, %33, %34, %35}, %36, p, 1, 1, 1;}"                  \
               : ASSAY_WGMMA_32(c, 0)                                                              \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.bits), "r"(scale))

#define ASSAY_WGMMA_SS_128(type)                                                                    \
  asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0;"                                              \
               "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " "                       \
               ASSAY_WGMMA_LIST_64 ", %64, %65, p, 1, 1, 0, 0;}"                                     \
               : ASSAY_WGMMA_32(c, 0), ASSAY_WGMMA_32(c, 32)                                                              \
               : "l"(a.bits), "l"(b.bits), "r"(scale))
#define ASSAY_WGMMA_RS_128(type)                                                                    \
  asm volatile("{.reg .pred p; setp.ne.b32 p, %69, 0;"                                              \
               "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " "                       \
               ASSAY_WGMMA_LIST_64 ", {%64, %65, %66, %67}, %68, p, 1, 1, 1;}"                  \
               : ASSAY_WGMMA_32(c, 0), ASSAY_WGMMA_32(c, 32)                                                              \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.bits), "r"(scale))
// clang-format on

/// Keeps the compiler from moving a use of these registers above this line, or a write of them
/// below it.
template <class T, int N>
ASSAY_DEVICE void touch(T (&r)[N]) {
  ASSAY_UNROLL
  for (int i = 0; i < N; ++i) {
    if constexpr (std::is_array_v<T>)
      touch(r[i]);
    else if constexpr (std::is_same_v<T, float>)
      asm volatile("" : "+f"(r[i])::"memory");
    else
      asm volatile("" : "+r"(r[i])::"memory");
  }
}

} // namespace detail

template <class E, int kWords>
ASSAY_DEVICE void wgmma_m64k16(float (&c)[kWords], KMajorMatrix a, KMajorMatrix b,
                               bool accumulate) {
  static_assert(kWords == 32 || kWords == 64);
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  const int scale = accumulate ? 1 : 0;
  if constexpr (kWords == 32 && std::is_same_v<E, bf16>)
    ASSAY_WGMMA_SS_64("bf16");
  else if constexpr (kWords == 32)
    ASSAY_WGMMA_SS_64("f16");
  else if constexpr (std::is_same_v<E, bf16>)
    ASSAY_WGMMA_SS_128("bf16");
  else
    ASSAY_WGMMA_SS_128("f16");
#else
  __trap();
#endif
}

template <class E, int kWords>
ASSAY_DEVICE void wgmma_m64k16(float (&c)[kWords], const uint32_t (&a)[4], NMajorMatrix b,
                               bool accumulate) {
  static_assert(kWords == 32 || kWords == 64);
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  const int scale = accumulate ? 1 : 0;
  if constexpr (kWords == 32 && std::is_same_v<E, bf16>)
    ASSAY_WGMMA_RS_64("bf16");
  else if constexpr (kWords == 32)
    ASSAY_WGMMA_RS_64("f16");
  else if constexpr (std::is_same_v<E, bf16>)
    ASSAY_WGMMA_RS_128("bf16");
  else
    ASSAY_WGMMA_RS_128("f16");
#else
  __trap();
#endif
}
#undef ASSAY_WGMMA_8
#undef ASSAY_WGMMA_32
#undef ASSAY_WGMMA_LIST_32
#undef ASSAY_WGMMA_LIST_64
#undef ASSAY_WGMMA_SS_64
#undef ASSAY_WGMMA_SS_128
#undef ASSAY_WGMMA_RS_64
#undef ASSAY_WGMMA_RS_128

template <class... Registers>
ASSAY_DEVICE void wgmma_fence(Registers &...registers) {
  (detail::touch(registers), ...);
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
ASSAY_DEVICE void wgmma_commit() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
template <int kPending, class... Registers>
ASSAY_DEVICE void wgmma_wait(Registers &...registers) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
#endif
  (detail::touch(registers), ...);
}

template <int kCount>
ASSAY_DEVICE void lower_registers() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
#endif
}
template <int kCount>
ASSAY_DEVICE void raise_registers() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
#endif
}

} // namespace assay::n_cuda::arch
