// SPDX-License-Identifier: Apache-2.0
// Bulk copies from global to shared memory (sm_90; PTX ISA, "Asynchronous Copy"). One thread issues
// each. An mbarrier counts its bytes (expect_tx, mbarrier.cuh): who waits for the phase that they
// complete sees them.
//   void bulk_copy(dst, src, bytes, b)   copies `bytes`, a multiple of 16 up to 2^20 - 16; both
//                                        addresses are multiples of 16
//   void tensor_copy(dst, map, at, b)    copies the box of `map` that begins at the element `at`,
//                                        an int32_t[rank], dimension 0 first. at[0] elements are
//                                        a multiple of 16 bytes: else the device ends the kernel
//                                        with an illegal instruction. Elements outside the tensor,
//                                        also those before its first, are zeros and are not read;
//                                        they count as bytes all the same. dst is a multiple of
//                                        128, and of 1,024 where the map swizzles
//   void prefetch_tensor_map(map)        brings the map near
// The copy is of the async proxy (PTX ISA, "Async proxy"). It needs
//   - a fence of the thread that initialised b, since then: fence_mbarrier_init or
//     fence_async_proxy, in front of a barrier
//   - a fence_async_proxy of every thread that wrote to dst by ordinary stores, since then
//   - a source that this kernel does not write
//   - that those who read dst before have arrived at something that the issuer has waited for
// From its issue until the phase nobody may read or write dst, nor write the source.
#pragma once

#include "kernels/arch/mbarrier.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/tensor_map.cuh"

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/bulk_copy.cuh"
#else
#include "kernels/arch/simt/bulk_copy.cuh"
#endif
