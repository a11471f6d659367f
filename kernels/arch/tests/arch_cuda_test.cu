// SPDX-License-Identifier: Apache-2.0
#include "kernels/arch/target.cuh"
#if !ASSAY_IS_CUDA
#error "this file tests the cuda target: the build must define ASSAY_COMPILE_CUDA"
#endif

#include "kernels/arch/tests/bulk_tests.inl"
#include "kernels/arch/tests/cluster_tests.inl"
#include "kernels/arch/tests/memory_tests.inl"
#include "kernels/arch/tests/mma_tests.inl"
#include "kernels/arch/tests/number_tests.inl"
#include "kernels/arch/tests/warp_tests.inl"
#include "kernels/arch/tests/wgmma_tests.inl"
