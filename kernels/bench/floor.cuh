// SPDX-License-Identifier: Apache-2.0
// The floor: the fastest plain read of the same bytes, nothing else. What an attention kernel is
// measured against; reading once is the least it can do. A merge also writes: its floor reads as
// many vectors for each that it writes.
#pragma once

#include "kernels/bench/cells/cells.h"
#include "kernels/bench/device.cuh"

#include <cstdint>

namespace assay::bench {

struct FloorShape {
  int blocks_per_sm, threads, unroll;
  bool ranges = false; // each block reads a range of its own, as decode does, or all read in step
};

/// Enqueues a read of `bytes` (a multiple of 16) at `data`. `sink` receives nothing in practice: it
/// is written only if all bytes XOR to a value they do not have, so that the loads cannot be
/// removed. With enable_pdl reads of one launch run into those of the next.
void enqueue_floor(const FloorShape &shape, const void *data, uint64_t bytes, uint32_t *sink,
                   int multiprocessors, bool enable_pdl, cudaStream_t stream);

/// Shapes tried; the best one is the floor.
inline constexpr FloorShape kFloorShapes[] = {
    {1, 1024, 4},      {2, 512, 4},       {2, 1024, 4},      {4, 512, 4},
    {2, 512, 8},       {2, 1024, 8},      {4, 512, 8},       {8, 256, 8},
    {2, 256, 4, true}, {2, 512, 4, true}, {2, 512, 8, true}, {4, 512, 8, true}};

/// Vectors of 16 bytes: rows of `row` vectors each, one written for `states` read. State s of row r
/// begins at vector (r * states + s) * row of the input.
struct MergeFloor {
  uint32_t rows, states, row;
};

struct MergeFloorShape {
  int threads, outputs, depth; // a thread's outputs; states read at once
};

/// Enqueues that. The states of a vector are read by `parts` threads, of which the first writes;
/// the others write `sink` as above.
void enqueue_merge_floor(const MergeFloorShape &shape, const MergeFloor &merge, uint32_t parts,
                         const void *in, void *out, uint32_t *sink, cudaStream_t stream);

/// Shapes tried, each with 1, 2, 4, ... parts; the best one is the floor.
inline constexpr MergeFloorShape kMergeFloorShapes[] = {
    {256, 1, 2}, {256, 2, 2}, {256, 4, 2}, {512, 1, 2}, {512, 2, 2}, {256, 1, 3},
    {256, 2, 3}, {256, 1, 8}, {512, 1, 8}, {256, 2, 4}, {512, 2, 4}};

/// Enqueues a kernel of one block that does nothing, by the function that launches the kernels
/// (cudaLaunchKernelEx, kernels/host/launch_kernel.cuh).
void enqueue_empty(cudaStream_t stream);

/// Fills `n` 16-bit values with bf16 numbers uniform in [-1, 1), from a hash of index and seed.
void fill_bf16(uint16_t *data, uint64_t n, uint64_t seed, cudaStream_t stream);

/// Fills a cache: as above, or with bytes that have a zero in every exponent field, no fp8 NaN.
void fill_cache(void *data, uint64_t bytes, KvDtype dtype, cudaStream_t stream);

} // namespace assay::bench
