// SPDX-License-Identifier: Apache-2.0
// Whole-call checks: every row of a call against its reference.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "oracle/exact/dtype.h"
#include "oracle/judge/verdict.h"

namespace assay::oracle {
namespace {

constexpr int kMaxUnknownSplits = 1024;

int split_limit(const CheckOptions &options, int declared, const assay_arithmetic &arithmetic,
                size_t keys) {
  if (options.max_splits > 0) return options.max_splits;
  if (declared > 0) return declared;
  const size_t tiles = keys / static_cast<size_t>(std::max(arithmetic.tile_tokens, 1)) + 1;
  return static_cast<int>(std::min<size_t>(tiles, kMaxUnknownSplits));
}

template <class Params>
void require_heads(const Params &params) {
  if (params.num_kv_heads <= 0 || params.num_qo_heads % params.num_kv_heads != 0) {
    throw std::invalid_argument("oracle: num_qo_heads is not a multiple of num_kv_heads");
  }
}

int64_t output_at(const assay_paged_params &p, int row, int head) {
  return row / p.q_len * p.o_stride_batch + row % p.q_len * p.o_stride_token +
         head * p.o_stride_head;
}
int64_t output_at(const assay_cascade_params &p, int row, int head) {
  return row * p.o_stride_batch + head * p.o_stride_head;
}
int64_t lse_at(const assay_paged_params &p, int row, int head) {
  return row / p.q_len * p.lse_stride_batch + row % p.q_len * p.lse_stride_token +
         head * p.lse_stride_head;
}
int64_t lse_at(const assay_cascade_params &p, int row, int head) {
  return row * p.lse_stride_batch + head * p.lse_stride_head;
}

// One (row, kv head): its keys serve the whole group of query heads. `order` is over its keys.
template <class Params>
void check_group(const Params &params, const KeySet &keys, const TileOrder &order,
                 const assay_arithmetic &arithmetic, const CheckOptions &options, int max_splits,
                 int row, int kv_head, Report &report) {
  const int group = params.num_qo_heads / params.num_kv_heads;
  std::vector<float> o(static_cast<size_t>(params.head_dim));
  KeySet sunk;
  TileOrder sunk_order = order;
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const std::vector<float> q = gather_query(params, row, head);
    RowProblem problem;
    problem.q = q;
    problem.dtype = params.dtype;
    problem.features = gather_features(params, head);
    const bool sink = problem.features.has_sink();
    if (sink && !sunk.sink) {
      sunk = keys.with_sink(problem.operand());
      append_sink(sunk_order, static_cast<int>(keys.size()));
    }
    problem.keys = sink ? &sunk : &keys;
    problem.sm_scale = params.sm_scale;
    problem.lse_base = params.lse_base;
    problem.arithmetic = arithmetic;
    problem.order = !options.order ? nullptr : sink ? &sunk_order : &order;
    problem.max_splits = max_splits;
    problem.combine_stages = options.combine_stages;
    problem.replay_scores = options.replay_scores;
    for (int i = 0; i < params.head_dim; ++i) {
      o[static_cast<size_t>(i)] =
          load_element(params.dtype, params.o, output_at(params, row, head) + i);
    }
    const float *lse = params.lse ? params.lse + lse_at(params, row, head) : nullptr;
    report.merge(judge_row(problem, attention_row(problem), o.data(), lse, row, head));
  }
}

// One live state per (row, head): the inputs as the two merge entry points address them.
struct StateView {
  const void *o;
  int64_t o_at;
  float lse;
};

struct MergeTarget {
  const void *o;
  int64_t o_at;
  const float *lse; // may be null
};

Report check_merged(const std::vector<StateView> &states, const MergeTarget &target,
                    assay_dtype dtype, assay_lse_base base, int head_dim,
                    const assay_arithmetic &arithmetic, int row, int head) {
  MergeProblem problem;
  problem.head_dim = head_dim;
  problem.dtype = dtype;
  problem.lse_base = base;
  problem.arithmetic = arithmetic;
  for (const StateView &state : states) {
    problem.lse.push_back(state.lse);
    for (int i = 0; i < head_dim; ++i) {
      problem.o.push_back(load_element(dtype, state.o, state.o_at + i));
    }
  }
  std::vector<float> o(static_cast<size_t>(head_dim));
  for (int i = 0; i < head_dim; ++i) {
    o[static_cast<size_t>(i)] = load_element(dtype, target.o, target.o_at + i);
  }
  return judge_merge(problem, merge_row(problem), o.data(), target.lse, row, head);
}

} // namespace

Report check_paged(const assay_paged_params &params, const assay_arithmetic &arithmetic,
                   const CheckOptions &options) {
  require_heads(params);
  Report report;
  for (int row = 0; row < params.batch * params.q_len; ++row) {
    const KeyRange range = visible_keys(params, row);
    for (int kv_head = 0; kv_head < params.num_kv_heads; ++kv_head) {
      const KeySet keys = gather_paged(params, row, kv_head);
      TileOrder order;
      if (options.order)
        order = clip_order(options.order(row / params.q_len, kv_head), range.begin, range.end);
      const int splits = split_limit(options, params.num_splits, arithmetic, keys.size());
      check_group(params, keys, order, arithmetic, options, splits, row, kv_head, report);
    }
  }
  return report;
}

Report check_cascade(const assay_cascade_params &params, const assay_arithmetic &arithmetic,
                     const CheckOptions &options) {
  require_heads(params);
  Report report;
  for (int request = 0; request < params.batch; ++request) {
    for (int kv_head = 0; kv_head < params.num_kv_heads; ++kv_head) {
      const KeySet keys = gather_cascade(params, request, kv_head);
      const int declared = params.num_splits * params.num_levels;
      const int splits = split_limit(options, declared, arithmetic, keys.size()) +
                         (declared > 0 ? 0 : params.num_levels);
      const TileOrder order = options.order ? options.order(request, kv_head) : TileOrder{};
      check_group(params, keys, order, arithmetic, options, splits, request, kv_head, report);
    }
  }
  return report;
}

Report check_merge_state(const assay_merge_state_params &p, const assay_arithmetic &arithmetic) {
  Report report;
  for (int row = 0; row < p.num_rows; ++row) {
    for (int head = 0; head < p.num_heads; ++head) {
      const std::vector<StateView> states = {
          {p.o_a, row * p.o_a_stride_row + head * p.o_a_stride_head,
           p.lse_a[row * p.lse_a_stride_row + head * p.lse_a_stride_head]},
          {p.o_b, row * p.o_b_stride_row + head * p.o_b_stride_head,
           p.lse_b[row * p.lse_b_stride_row + head * p.lse_b_stride_head]}};
      const float *lse =
          p.lse ? p.lse + row * p.lse_stride_row + head * p.lse_stride_head : nullptr;
      const MergeTarget target{p.o, row * p.o_stride_row + head * p.o_stride_head, lse};
      report.merge(
          check_merged(states, target, p.dtype, p.lse_base, p.head_dim, arithmetic, row, head));
    }
  }
  return report;
}

Report check_merge_states(const assay_merge_states_params &p, const assay_arithmetic &arithmetic) {
  Report report;
  for (int row = 0; row < p.num_rows; ++row) {
    const int64_t first = p.indptr ? p.indptr[row] : static_cast<int64_t>(row) * p.num_states;
    const int64_t last = p.indptr ? p.indptr[row + 1] : first + p.num_states;
    for (int head = 0; head < p.num_heads; ++head) {
      std::vector<StateView> states;
      for (int64_t s = first; s < last; ++s) {
        states.push_back({p.o_in, s * p.o_in_stride_state + head * p.o_in_stride_head,
                          p.lse_in[s * p.lse_in_stride_state + head * p.lse_in_stride_head]});
      }
      const float *lse =
          p.lse ? p.lse + row * p.lse_stride_row + head * p.lse_stride_head : nullptr;
      const MergeTarget target{p.o, row * p.o_stride_row + head * p.o_stride_head, lse};
      report.merge(
          check_merged(states, target, p.dtype, p.lse_base, p.head_dim, arithmetic, row, head));
    }
  }
  return report;
}

} // namespace assay::oracle
