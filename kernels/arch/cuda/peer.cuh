// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay::n_cuda::arch {
namespace detail {

ASSAY_DEVICE uint32_t load_acquire_system(const uint32_t *p) {
  uint32_t v;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
               : "=r"(v)
               : "l"(__cvta_generic_to_global(p))
               : "memory");
  return v;
}
ASSAY_DEVICE uint64_t nanoseconds() {
  uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

} // namespace detail

ASSAY_DEVICE void store_release(uint32_t *p, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "r"(value)
               : "memory");
}

ASSAY_DEVICE bool await_at_least(const uint32_t *p, uint32_t value, uint64_t timeout_ns) {
  const auto reached = [&] {
    return static_cast<int32_t>(detail::load_acquire_system(p) - value) >= 0;
  };
  if (reached()) return true;
  const uint64_t begin = detail::nanoseconds();
  do
    if (reached()) return true;
  while (detail::nanoseconds() - begin < timeout_ns);
  return false;
}

ASSAY_DEVICE void atomic_or_relaxed(uint32_t *p, uint32_t bits) {
  asm volatile("red.relaxed.sys.global.or.b32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)),
               "r"(bits)
               : "memory");
}

} // namespace assay::n_cuda::arch
