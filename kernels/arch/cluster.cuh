// SPDX-License-Identifier: Apache-2.0
// Clusters: blocks of a launch that run at once and reach each other's shared memory (sm_90; PTX
// ISA, "Cluster of Cooperative Thread Arrays", "mapa", "barrier.cluster", "cp.async.bulk.tensor").
// A pointer names the same place in each block; `rank` says in which.
//   uint32_t cluster_rank(), cluster_size()   which block of the cluster this is, and of how many
//   void cluster_barrier()            every thread of the cluster that has not exited, whole warps
//                                     from one line. Orders as block_barrier does
//   T cluster_load(p, rank)           T has 4, 8 or 16 bytes and is aligned to its size
//   void cluster_store(p, v, rank)
//   void mbarrier_arrive_cluster(b, rank)   counts one arrival at the b of that block
//   void mbarrier_wait_cluster(b, parity)   as mbarrier_wait, where threads of other blocks arrive
//   void tensor_copy_multicast(dst, map, at, b, blocks)   as tensor_copy, to the dst of every block
//                                     whose bit is in the uint16_t `blocks`; the bytes count at the
//                                     b of each (sm_90a)
// A cluster_barrier, or another order, must stand between the start of a block and the first use of
// its memory by another one, and between the last use and its end.
#pragma once

#include "kernels/arch/bulk_copy.cuh"
#include "kernels/arch/mbarrier.cuh"
#include "kernels/arch/shared_storage.cuh"

#if ASSAY_IS_CUDA
#include "kernels/arch/cuda/cluster.cuh"
#else
#include "kernels/arch/simt/cluster.cuh"
#endif
