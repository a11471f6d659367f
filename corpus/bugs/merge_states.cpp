// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "corpus/bugs/bug.h"
#include "corpus/bugs/elements.h"
#include "corpus/bugs/launch.h"
#include "corpus/bugs/merge_states.h"
#include "kernels/arch/load_store.cuh"
#include "kernels/arch/shared_storage.cuh"
#include "kernels/arch/sync.cuh"
#include "kernels/arch/thread.cuh"

namespace assay::bugs {
namespace {

namespace arch = n_simt::arch;

constexpr int kThreads = 32;
constexpr int64_t kBlocks = 4; ///< each walks over its rows and heads
constexpr float kNegInf = -__builtin_inff();

/// A head of a row: which states it has.
struct Head {
  int64_t row, head, first;
  int count;
};

Head head_at(const assay_merge_states_params &p, int64_t index) {
  const int64_t row = index / p.num_heads;
  int64_t first = row * p.num_states, last = first + p.num_states;
  if (p.indptr != nullptr) {
    first = arch::global_load(p.indptr + row);
    last = arch::global_load(p.indptr + row + 1);
  }
  return {row, index % p.num_heads, first, static_cast<int>(last - first)};
}

void stage_lses(const assay_merge_states_params &p, const Head &at, float *staged) {
  const int thread = static_cast<int>(arch::thread_idx());
  const int last =
      is(Bug::merge_weights_by_one_thread_each) ? std::min(at.count, kThreads) : at.count;
  for (int s = thread; s < last; s += kThreads)
    arch::shared_store(staged + s,
                       arch::global_load(p.lse_in + (at.first + s) * p.lse_in_stride_state +
                                         at.head * p.lse_in_stride_head));
}

/// What the staged LSEs say before any component is loaded.
struct Mass {
  float top = kNegInf;
  int live = 0, lone = 0; ///< states that are not empty, and the last of them
};

Mass mass_of(const Head &at, const float *staged) {
  Mass mass;
  for (int s = 0; s < at.count; ++s) {
    const float lse = arch::shared_load(staged + s);
    if (lse != kNegInf) ++mass.live, mass.lone = s;
    mass.top = std::max(mass.top, lse);
  }
  return mass;
}

/// Eight components; returns the LSE.
float merge(const assay_merge_states_params &p, const Head &at, const Mass &mass,
            const float *staged, int dim, float *o) {
  const auto load = [&](int s, float *out) {
    load_piece(p.o_in, (at.first + s) * p.o_in_stride_state + at.head * p.o_in_stride_head + dim,
               p.dtype, out);
  };
  std::fill_n(o, kPiece, 0.0f);
  const bool guarded = !is(Bug::merge_all_empty_is_nan);
  if (mass.live == 0 && (guarded || at.count == 0)) return kNegInf;
  if (mass.live == 1) {
    load(mass.lone, o);
    return arch::shared_load(staged + mass.lone);
  }
  const bool natural = p.lse_base == ASSAY_LSE_BASE_E && !is(Bug::merge_always_in_base_2);
  float sum = 0, part[kPiece];
  for (int s = 0; s < at.count; ++s) {
    const float lse = arch::shared_load(staged + s);
    if (lse == kNegInf && guarded) continue;
    const float w = std::exp2((lse - mass.top) * (natural ? kLog2E : 1.0f));
    sum += w;
    load(s, part);
    for (int i = 0; i < kPiece; ++i)
      o[i] = std::fma(w, part[i], o[i]);
  }
  for (int i = 0; i < kPiece && !is(Bug::merge_never_divided); ++i)
    o[i] *= 1.0f / sum;
  return mass.top + std::log2(sum) * (natural ? kLn2 : 1.0f);
}

void merge_head(const assay_merge_states_params &p, const Head &at, const float *staged) {
  const Mass mass = mass_of(at, staged);
  for (int piece = static_cast<int>(arch::thread_idx()); piece < p.head_dim / kPiece;
       piece += kThreads) {
    float o[kPiece];
    const float lse = merge(p, at, mass, staged, piece * kPiece, o);
    store_piece(p.out, at.row * p.out_stride_row + at.head * p.out_stride_head + piece * kPiece,
                p.dtype, o);
    if (piece == 0 && p.lse != nullptr)
      arch::global_store(p.lse + at.row * p.lse_stride_row + at.head * p.lse_stride_head, lse);
  }
}

void merge_block(const assay_merge_states_params &p) {
  float *staged = p.num_states > 0 ? &arch::shared_storage<float>() : nullptr;
  const int64_t heads = int64_t{p.num_rows} * p.num_heads;
  for (int64_t index = arch::block_idx_x(); index < heads; index += arch::grid_dim_x()) {
    const Head at = head_at(p, index);
    // Some threads are still reading the LSEs of the head before.
    if (!is(Bug::merge_loop_without_barrier)) arch::block_barrier();
    stage_lses(p, at, staged);
    arch::block_barrier();
    merge_head(p, at, staged);
  }
}

} // namespace

assay_status run_merge_states(const void *params) {
  const auto &p = *static_cast<const assay_merge_states_params *>(params);
  const int64_t heads = int64_t{p.num_rows} * p.num_heads;
  const size_t bytes = static_cast<size_t>(p.num_states) * sizeof(float);
  return launch(p.stream, {std::min(heads, kBlocks), kThreads, bytes}, [&] { merge_block(p); });
}

} // namespace assay::bugs
