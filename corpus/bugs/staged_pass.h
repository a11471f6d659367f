// SPDX-License-Identifier: Apache-2.0
// A pass of the staged kernel: a block's place in the call, its shared memory, and what it attends
// to.
#pragma once

#include "corpus/bugs/elements.h"
#include "kernels/arch/load_store.cuh"
#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/sync.cuh"

namespace assay::bugs {

namespace arch = n_simt::arch;

inline constexpr int kStagedThreads = 64, kLanesOfRow = 4, kHalves = 2;
inline constexpr int kRowsOfPass = kStagedThreads / kLanesOfRow;
inline constexpr int kTileKeys = 16, kStepKeys = 8; ///< keys of a copy; of a maximum's update
inline constexpr float kMinusInf = -__builtin_inff();

struct StagedShared {
  alignas(16) uint16_t k[2][kTileKeys][256];
  alignas(16) uint16_t v[2][kTileKeys][256];
  float weights[kRowsOfPass][kStepKeys];
  uint32_t is_last;
};

/// The scratch of a call: counters of ended halves, partials by (request, half, head).
struct StagedCall {
  const assay_paged_params *p;
  uint32_t *counters;
  float *partial_o, *partial_lse;
  uint64_t bytes;

  int64_t slot(int request, int half, int head) const {
    return (int64_t{request} * kHalves + half) * p->num_qo_heads + head;
  }
};

struct StagedBlock {
  const assay_paged_params *p;
  int request, kv_head, half;
  int length, begin, end; ///< length of the request; keys of the half
  StagedShared *shared;

  int group() const { return p->num_qo_heads / p->num_kv_heads; }
  int tiles() const { return (end - begin + kTileKeys - 1) / kTileKeys; }
};

/// O and LSE of up to kRowsOfPass heads from `first` on, stored as partials.
void attend_pass(const StagedBlock &block, const StagedCall &call, int first);

} // namespace assay::bugs
