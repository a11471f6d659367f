// SPDX-License-Identifier: Apache-2.0
// merge_state, merge_states and the sink.
#include "fuzz/paths/merge_run.h"

#include "kernels/common/score_features.cuh"
#include "kernels/merge/merge_few_states.cuh"
#include "kernels/merge/merge_many_states.cuh"
#include "kernels/merge/merge_state.cuh"
#include "kernels/simt/launch.h"

namespace assay::fuzz {
namespace {

namespace arch = n_simt::arch;

constexpr float kLn2 = 0.693147181f;

struct Units {
  float scale, unit;
  explicit Units(bool natural) : scale(natural ? n_simt::kLog2E : 1.0f), unit(natural ? kLn2 : 1) {}
};

template <class E>
void merge_pair(const MergeProgram &program, MergeResult &result) {
  using Pack = n_simt::Pack8<E>;
  const Units units(program.natural);
  float o[2][kMergeDims];
  for (size_t i = 0; i < 2; ++i)
    std::copy(program.states[i].o.begin(), program.states[i].o.end(), o[i]);
  Pack a = Pack::pack(o[0]), other = Pack::pack(o[1]);
  const Pack b = other, first = a;
  const float lse_a = program.states[0].lse, lse_b = program.states[1].lse;
  result.lse = n_simt::merge_pair<float, E>(lse_a, lse_b, a, b, units.scale, units.unit);
  n_simt::merge_pair<float, E>(lse_b, lse_a, other, first, units.scale, units.unit);
  float merged[2][kMergeDims];
  a.unpack(merged[0]);
  other.unpack(merged[1]);
  std::copy(merged[0], merged[0] + kMergeDims, result.o.begin());
  for (int c = 0; c < kMergeDims; ++c)
    if (!(merged[0][c] == merged[1][c]) && merged[0][c] == merged[0][c])
      result.violation = "merge_state is not commutative";
}

/// The tensors of one row of merge_states, 8 components.
class StoredStates {
public:
  explicit StoredStates(const MergeProgram &program) {
    for (int i = 0; i < program.count; ++i) {
      const MergeState &state = program.states[static_cast<size_t>(i)];
      std::copy(state.o.begin(), state.o.end(), o_[i]);
      lse_[i] = state.lse;
    }
    const Units units(program.natural);
    params_ = {.in = {o_, lse_, kMergeDims, kMergeDims, 1, 1},
               .out = {out_, &out_lse_, kMergeDims, kMergeDims, 1, 1},
               .indptr = nullptr,
               .num_rows = 1,
               .num_states = program.count,
               .num_heads = 1,
               .head_dim = kMergeDims,
               .lanes_log2 = 0,
               .workers = 1,
               .scale = units.scale,
               .unit = units.unit};
  }

  MergeStatesParams &params() { return params_; }
  void publish(MergeResult &result) const {
    std::copy(out_, out_ + kMergeDims, result.o.begin());
    result.lse = out_lse_;
  }

private:
  alignas(16) float o_[kMaxStates][kMergeDims];
  alignas(16) float out_[kMergeDims] = {};
  float lse_[kMaxStates], out_lse_ = 0;
  MergeStatesParams params_;
};

} // namespace

void run_pair(const MergeProgram &program, MergeResult &result) {
  if (program.form == MergeForm::kPairFp32)
    merge_pair<float>(program, result);
  else
    merge_pair<arch::bf16>(program, result);
}

void run_sink(const MergeProgram &program, MergeResult &result) {
  float o[kMergeDims];
  std::copy(program.states[0].o.begin(), program.states[0].o.end(), o);
  result.lse = program.states[0].lse;
  n_simt::join_sink(o, result.lse, program.states[1].lse);
  std::copy(o, o + kMergeDims, result.o.begin());
}

/// With four lanes a worker a warp is a block of eight workers.
void run_stored(const MergeProgram &program, MergeResult &result) {
  using Block = n_simt::MergeManyStates<float, 4>;
  StoredStates stored(program);
  MergeStatesParams &params = stored.params();
  const bool few = program.form == MergeForm::kFew;
  if (!few) params.workers = 8;
  const auto few_states = [&] {
    const n_simt::MergeRow<float> row(params, 0);
    row.store(0, n_simt::merge_few<4>(row, 0));
  };
  const auto many_states = [&] { Block::run(params); };
  const auto status =
      few ? simt::launch(nullptr, {.block = 1}, few_states)
          : simt::launch(nullptr, {.block = 32, .shared_bytes = sizeof(Block::SharedStorage)},
                         many_states);
  if (status != simt::LaunchStatus::kOk) result.violation = "the executor reports a hazard";
  stored.publish(result);
}

void run_merge_program(const MergeProgram &program, MergeResult &result) {
  result.violation.clear();
  switch (program.form) {
  case MergeForm::kPairFp32:
  case MergeForm::kPairBf16:
    return run_pair(program, result);
  case MergeForm::kSink:
    return run_sink(program, result);
  case MergeForm::kFew:
  case MergeForm::kMany:
    return run_stored(program, result);
  case MergeForm::kBlock:
    return run_block(program, result);
  case MergeForm::kSplits:
    return run_splits(program, result);
  default:
    return run_cascade(program, result);
  }
}

} // namespace assay::fuzz
