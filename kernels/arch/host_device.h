// SPDX-License-Identifier: Apache-2.0
// ASSAY_HOST_DEVICE: functions that the host calls, and kernels too. It needs no target: plans and
// policies are such functions, and host code includes them.
#pragma once

#if defined(__CUDACC__)
#define ASSAY_HOST_DEVICE __host__ __device__ inline
#else
#define ASSAY_HOST_DEVICE inline
#endif
