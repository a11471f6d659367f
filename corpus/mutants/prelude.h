// SPDX-License-Identifier: Apache-2.0
// Compiled before the mutated headers: the unmodified arch vocabulary, and a namespace of their own
// for the mutated kernels, so that right and wrong kernels share one binary.
#pragma once

#include "kernels/arch/async_copy.cuh"
#include "kernels/arch/convert.cuh"
#include "kernels/arch/grid_order.cuh"
#include "kernels/arch/load_store.cuh"
#include "kernels/arch/math.cuh"
#include "kernels/arch/mbarrier.cuh"
#include "kernels/arch/mma.cuh"
#include "kernels/arch/peer.cuh"
#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/shuffle.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/thread.cuh"
#include "kernels/arch/wgmma.cuh"

// Functions that host and device share stand in no target's namespace. They are inlined here, so
// that those of the library stay as they are.
#undef ASSAY_HOST_DEVICE
#define ASSAY_HOST_DEVICE [[gnu::always_inline]] inline

#undef ASSAY_TARGET
#define ASSAY_TARGET n_mutants
namespace assay::n_mutants {
namespace arch = n_simt::arch;
}
