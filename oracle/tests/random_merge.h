// SPDX-License-Identifier: Apache-2.0
// Merges of random states, whose outputs are the exact ones, rounded; and what device/merges says
// of them against what the host says.
#pragma once

#include "oracle/device/merges.h"
#include "oracle/tests/tiers_compare.h"

namespace assay::oracle::test {

class RandomMerge {
public:
  RandomMerge(unsigned seed, CallMemory &memory) : random_(seed) {
    RowOutputs &out = rows.out;
    out.dtype = among({ASSAY_FP16, ASSAY_BF16, ASSAY_FP32});
    out.lse_base = among({ASSAY_LSE_BASE_E, ASSAY_LSE_BASE_2});
    out.heads = among({1, 3});
    out.dims = among({64, 40, 128});
    const int count = among({3, 7});
    rows.first = {0};
    for (int row = 0; row < count; ++row)
      rows.first.push_back(rows.first.back() + among({0, 1, 2, 2, 5, 9, 40}));
    const auto states = static_cast<size_t>(rows.first.back());
    const auto width = static_cast<size_t>(out.heads * out.dims);
    const auto size = static_cast<size_t>(element_size(out.dtype));
    auto *o = memory.make<unsigned char>(states * width * size);
    auto *lse = memory.make<float>(states * static_cast<size_t>(out.heads));
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < states * width; ++i)
      store_element(out.dtype, o, static_cast<int64_t>(i),
                    static_cast<float>(i % static_cast<size_t>(out.dims) == 17
                                           ? 0.0
                                           : round_to(format_of(out.dtype), normal(random_))));
    const float spread = static_cast<float>(among({1, 10, 200}));
    const int dead = among({2, 5, 100}); // one in so many
    for (size_t i = 0; i < states * static_cast<size_t>(out.heads); ++i)
      lse[i] = random_() % static_cast<unsigned>(dead) == 0 ? -INFINITY : spread * normal(random_);
    rows.arrays = {{o, lse, out.dims, 1}};
    for (size_t s = 0; s < states; ++s)
      rows.states.push_back(
          {0, static_cast<int64_t>(s * width), static_cast<int64_t>(s) * out.heads});
    for (int row = 0; row < count; ++row) {
      out.o_at.push_back(static_cast<int64_t>(row) * static_cast<int64_t>(width));
      out.lse_at.push_back(int64_t{row} * out.heads);
    }
    out.out_stride_head = out.dims;
    out.lse_stride_head = 1;
    model.arithmetic.exp2_rel_error = 0x1p-22;
    model.arithmetic.log2_abs_error = 0x1p-22;
    model.arithmetic.rcp_rel_error = 0x1p-23;
    model.arithmetic.sum_depth = 1;
    model.arithmetic.tile_tokens = 1;
    model.arithmetic.max_parallel_states = 1;
    model.arithmetic.exponential = among({ASSAY_EXP_BASE2, ASSAY_EXP_NATURAL});
    o_ = memory.make<unsigned char>(static_cast<size_t>(count) * width * size);
    lse_ = memory.make<float>(static_cast<size_t>(count * out.heads));
    fill();
  }

  CallOutputs outputs() const { return {o_, lse_}; }
  int64_t at(int row, int head, int dim) const {
    return rows.out.o_at[static_cast<size_t>(row)] + int64_t{head} * rows.out.dims + dim;
  }

  MergeRows rows;
  KernelModel model;

private:
  int among(std::initializer_list<int> values) {
    return *(values.begin() + random_() % values.size());
  }
  void fill() {
    MergeReader reader(rows, model);
    const RowOutputs &out = rows.out;
    for (int row = 0; row < out.rows(); ++row)
      for (int head = 0; head < out.heads; ++head) {
        const MergeProblem &problem = reader.problem(row, head);
        const MergeReference exact = merge_row(problem);
        const auto only = static_cast<size_t>(std::max(exact.only_state, 0));
        for (int dim = 0; dim < out.dims; ++dim) {
          const auto i = static_cast<size_t>(dim);
          const double value = exact.row.empty ? 0.0
                               : exact.only_state >= 0
                                   ? problem.o[only * static_cast<size_t>(out.dims) + i]
                                   : exact.row.o[i].mid;
          store_element(out.dtype, o_, at(row, head, dim),
                        static_cast<float>(round_to(format_of(out.dtype), value)));
        }
        lse_[out.lse_at[static_cast<size_t>(row)] + head] =
            exact.row.empty         ? -INFINITY
            : exact.only_state >= 0 ? problem.lse[only]
                                    : static_cast<float>(exact.row.lse.mid);
      }
  }

  std::mt19937 random_;
  unsigned char *o_ = nullptr;
  float *lse_ = nullptr;
};

inline TiersCompared compare_merges(const RandomMerge &call, const TierReport &report) {
  TiersCompared out;
  MergeReader reader(call.rows, call.model);
  const RowOutputs &shape = call.rows.out;
  const auto dims = static_cast<size_t>(shape.dims);
  for (int row = 0; row < shape.rows(); ++row)
    for (int head = 0; head < shape.heads; ++head) {
      const MergeReference exact = merge_row(reader.problem(row, head));
      const auto at = static_cast<size_t>(row * shape.heads + head);
      const TierRow &ours = report.rows[at];
      const Report host = judge_one(call.rows, call.outputs(), call.model, row, head);
      ++out.rows;
      out.inside += ours.inside != 0 ? 1 : 0;
      const bool inside = host.verdict == Verdict::kInside && host.no_claim == 0;
      if (ours.inside != 0 ? !inside : inside && host.escalated == 0) ++out.verdicts_apart;
      if (ours.inside != 0 && !(same_ratio(ours.worst[0], host.worst_ratio_t0, 0) &&
                                same_ratio(ours.worst[3], host.worst_ratio_lse, 0)))
        ++out.ratios_apart;
      const CallOutputs outputs = call.outputs();
      const Written written = read_outputs(shape, outputs, {}, row, head);
      if (ours.inside != 0)
        compare_as_one(ours, along_error(exact.live.data(), exact.row, written.o), out);
      if (exact.row.empty || !exact.row.claim) continue;
      const auto *elements = &report.elements[at * (dims + 1)];
      for (size_t i = 0; i < dims; ++i)
        compare_element(elements[i][0], exact.only_state >= 0 || !exact.row.t0[i].overflow_possible,
                        exact.row.o[i], exact.row.t0[i].total, 0, out);
      compare_element(elements[dims][0], true, exact.row.lse, exact.row.lse_budget, 0, out);
    }
  return out;
}

} // namespace assay::oracle::test
