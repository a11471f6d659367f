// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/declaration_cost.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

namespace assay::oracle {
namespace {

/// The largest block, and tiles of one: longer ones would be cut into more steps than they need.
constexpr int32_t kExactTokens = 1024;

constexpr double BudgetTerms::*kTerms[] = {
    &BudgetTerms::weights,       &BudgetTerms::p_rounding, &BudgetTerms::accumulation,
    &BudgetTerms::normalisation, &BudgetTerms::merge,      &BudgetTerms::output_rounding,
    &BudgetTerms::flush,         &BudgetTerms::total};

struct Variant {
  assay_arithmetic arithmetic;
  bool ordered; ///< keys in the declared order; else in any
};

/// The declaration, each field exact, all exact. An order cuts the row into its tiles: to a kernel
/// without an error in any field it is of no use.
std::vector<Variant> variants_of(const assay_arithmetic &declared) {
  std::vector<Variant> out = {{declared, true}};
  Variant all{declared, false};
  for (const DeclaredField &field : declared_fields()) {
    field.make_exact(all.arithmetic);
    out.push_back({declared, true});
    field.make_exact(out.back().arithmetic);
  }
  out.push_back(all);
  return out;
}

/// Bounds of one row's outputs: the sharper of its tiers.
struct RowBounds {
  std::vector<BudgetTerms> o;
  double lse = 0.0;
};

/// Nothing where the oracle makes no claim.
std::optional<RowBounds> bounds_of(const RowReference &row) {
  if (row.empty || !row.claim || std::isinf(row.lse_budget)) return std::nullopt;
  RowBounds out{row.t0, row.lse_budget};
  for (size_t i = 0; i < out.o.size(); ++i) {
    if (out.o[i].overflow_possible || std::isinf(out.o[i].total)) return std::nullopt;
    if (row.t1.applies() && row.t1.budget[i].total < out.o[i].total) out.o[i] = row.t1.budget[i];
  }
  return out;
}

void add(const RowBounds &row, BoundSums &sums) {
  for (const BudgetTerms &t : row.o)
    for (auto term : kTerms)
      sums.o.*term += t.*term;
  sums.lse += row.lse;
}

/// A kernel that does not split, or has one state a split, has another order of keys.
TileOrder order_under(const assay_arithmetic &arithmetic, const assay_arithmetic &declared,
                      TileOrder order) {
  const bool joined = declared.max_splits > 0 && arithmetic.max_splits == 0;
  const bool single = declared.max_parallel_states > 1 && arithmetic.max_parallel_states <= 1;
  for (KeyTile &tile : order) {
    if (joined) tile.split = 0;
    if (single || joined) tile.state = 0;
  }
  return order;
}

RowReference row_under(const Variant &variant, const RowProblem &declared) {
  const assay_arithmetic &arithmetic = variant.arithmetic;
  RowProblem problem = declared;
  problem.arithmetic = arithmetic;
  problem.replay_scores = false;
  problem.combine_stages = arithmetic.merge_stages;
  if (arithmetic.max_splits == 0) problem.max_splits = 1;
  problem.order = nullptr;
  TileOrder order;
  if (declared.order != nullptr && variant.ordered) {
    order = order_under(arithmetic, declared.arithmetic, *declared.order);
    problem.order = &order;
  }
  return attention_row(problem);
}

RowReference row_under(const Variant &variant, MergeProblem problem) {
  problem.arithmetic = variant.arithmetic;
  MergeReference reference = merge_row(problem);
  // The bits of a single state are returned: there is no bound.
  reference.row.claim &= reference.only_state < 0;
  return reference.row;
}

class Collector {
public:
  explicit Collector(const assay_arithmetic &declared) : variants_(variants_of(declared)) {
    cost_.fields.resize(declared_fields().size());
  }

  template <class Problem>
  void add_row(const Problem &problem) {
    std::vector<RowBounds> bounds;
    double magnitude = 0.0;
    for (const Variant &variant : variants_) {
      const RowReference row = row_under(variant, problem);
      const auto of_row = bounds_of(row);
      if (!of_row) return;
      if (bounds.empty())
        for (const Enclosure &o : row.o)
          magnitude += std::fabs(o.mid);
      bounds.push_back(*of_row);
    }
    add(bounds.front(), cost_.declared);
    for (size_t i = 0; i < cost_.fields.size(); ++i)
      add(bounds[i + 1], cost_.fields[i]);
    add(bounds.back(), cost_.exact);
    cost_.outputs += bounds.front().o.size();
    cost_.magnitude += magnitude;
  }

  const DeclarationCost &cost() const { return cost_; }

private:
  std::vector<Variant> variants_;
  DeclarationCost cost_;
};

} // namespace

const std::vector<DeclaredField> &declared_fields() {
  using A = assay_arithmetic;
  static const std::vector<DeclaredField> kFields = {
      {"mma_block, mma_fraction_bits", "1024 products, rounded once",
       [](A &a) { a.mma_block = kExactTokens, a.mma_fraction_bits = 1022; }},
      {"p_format", "fp32", [](A &a) { a.p_format = ASSAY_FORMAT_FP32; }},
      {"sum_format", "fp32", [](A &a) { a.sum_format = ASSAY_FORMAT_FP32; }},
      {"exponential", "base2", [](A &a) { a.exponential = ASSAY_EXP_BASE2; }},
      {"sum_depth", "0", [](A &a) { a.sum_depth = 0; }},
      {"q_abs_error", "0", [](A &a) { a.q_abs_error = 0; }},
      {"exp2_rel_error", "0", [](A &a) { a.exp2_rel_error = 0; }},
      {"log2_abs_error", "0", [](A &a) { a.log2_abs_error = 0; }},
      {"rcp_rel_error", "0", [](A &a) { a.rcp_rel_error = 0; }},
      {"tanh_abs_error", "0", [](A &a) { a.tanh_abs_error = 0; }},
      {"tile_tokens", "1024 at least",
       [](A &a) { a.tile_tokens = std::max(a.tile_tokens, kExactTokens); }},
      {"max_parallel_states", "one state", [](A &a) { a.max_parallel_states = 0; }},
      {"max_splits, merge_stages", "no splits",
       [](A &a) {
         a.max_splits = a.merge_stages = a.stored_merges = 0;
         a.partial_format = ASSAY_FORMAT_FP32;
       }},
      {"partial_format, stored_merges", "fp32",
       [](A &a) { a.partial_format = ASSAY_FORMAT_FP32, a.stored_merges = 0; }},
      {"score_format", "fp32", [](A &a) { a.score_format = ASSAY_FORMAT_FP32; }},
      {"p_scale_log2", "8 at least", [](A &a) { a.p_scale_log2 = std::max(a.p_scale_log2, 8); }},
      {"accumulator", "fp64",
       [](A &a) {
         a.accumulator = a.mma_block == 0 ? ASSAY_ACCUMULATOR_FP64 : ASSAY_ACCUMULATOR_FP32;
       }},
      {"kv_format", "fp32", [](A &a) { a.kv_format = ASSAY_FORMAT_FP32; }},
      {"q_format", "fp32", [](A &a) { a.q_format = ASSAY_FORMAT_FP32; }},
      {"product_format", "fp32", [](A &a) { a.product_format = ASSAY_FORMAT_FP32; }},
      {"qk_sum_format", "fp32", [](A &a) { a.qk_sum_format = ASSAY_FORMAT_FP32; }},
      {"output_format", "fp32", [](A &a) { a.output_format = ASSAY_FORMAT_FP32; }},
      {"rounded_before_scale", "0", [](A &a) { a.rounded_before_scale = 0; }}};
  return kFields;
}

DeclarationCost declaration_cost(const CallRows &rows, const KernelModel &model) {
  return with_reader(rows, model, {}, [&](auto &reader, const RowOutputs &out) {
    Collector collector(model.arithmetic);
    for (int row = 0; row < out.rows(); ++row)
      for (int head = 0; head < out.heads; ++head)
        collector.add_row(reader.problem(row, head));
    return collector.cost();
  });
}

} // namespace assay::oracle
