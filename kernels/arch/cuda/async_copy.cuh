// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay::n_cuda::arch {

ASSAY_DEVICE void cp_async_16(void *shared_dst, const void *global_src, bool valid) {
  const uint32_t dst = static_cast<uint32_t>(__cvta_generic_to_shared(shared_dst));
  const uint32_t source_bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(dst),
               "l"(__cvta_generic_to_global(global_src)), "r"(source_bytes)
               : "memory");
}
ASSAY_DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
ASSAY_DEVICE void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

} // namespace assay::n_cuda::arch
