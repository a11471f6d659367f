// SPDX-License-Identifier: Apache-2.0
// Which target this translation unit compiles for, and the few words of CUDA that kernels need.
//
// The build defines ASSAY_COMPILE_CUDA for .cu files that hold device code; every other file
// compiles for the CPU executor. Code stands in assay::ASSAY_TARGET, so that both targets fit in
// one binary.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/arch/host_device.h"

#if defined(ASSAY_COMPILE_CUDA)

#if !defined(__CUDACC__)
#error "ASSAY_COMPILE_CUDA needs nvcc"
#endif
#define ASSAY_IS_CUDA 1
#define ASSAY_TARGET n_cuda
#define ASSAY_DEVICE __device__ __forceinline__
#define ASSAY_KERNEL(max_threads, min_blocks)                                                      \
  __global__ void __launch_bounds__(max_threads, min_blocks)
#define ASSAY_GRID_CONSTANT __grid_constant__
#define ASSAY_UNROLL _Pragma("unroll")
#define ASSAY_PRAGMA(text) _Pragma(#text)
#define ASSAY_UNROLL_BY(n) ASSAY_PRAGMA(unroll n)
// A last parameter for device functions whose caller's line should be reported, and the argument
// that hands it on. On cuda both are nothing.
#define ASSAY_SITE_PARAM
#define ASSAY_SITE_ONLY
#define ASSAY_SITE_ARG
#define ASSAY_SITE_ARG_ONLY

#else

#include "kernels/simt/site.h"

#define ASSAY_IS_CUDA 0
#define ASSAY_TARGET n_simt
#define ASSAY_DEVICE inline
#define ASSAY_KERNEL(max_threads, min_blocks) void
#define ASSAY_GRID_CONSTANT
#if defined(__clang__)
#define ASSAY_UNROLL _Pragma("unroll")
#else
#define ASSAY_UNROLL
#endif
#define ASSAY_UNROLL_BY(n) // a hint for device code only
#define ASSAY_SITE_PARAM , ::assay::simt::Site site = ::assay::simt::Site::here()
#define ASSAY_SITE_ONLY ::assay::simt::Site site = ::assay::simt::Site::here()
#define ASSAY_SITE_ARG , site
#define ASSAY_SITE_ARG_ONLY site

#endif
