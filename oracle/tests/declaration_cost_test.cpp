// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/declaration_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>

#include "oracle/bounds/arithmetic_fields.h"
#include "oracle/exact/dtype.h"
#include "oracle/rows/build.h"
#include "oracle/tests/flat_order.h"

namespace assay::oracle::test {
namespace {

constexpr int kKeys = 300, kDim = 64;

/// One request of 300 keys in one page, with a softcap.
struct PagedCall {
  std::vector<uint16_t> q = draw(kDim, 1), k = draw(kKeys * kDim, 2), v = draw(kKeys * kDim, 3);
  int32_t page = 0, length = kKeys;
  assay_paged_params params = assay_paged_params_init();

  PagedCall() {
    params.struct_size = sizeof params;
    params.dtype = params.kv_dtype = ASSAY_BF16;
    params.lse_base = ASSAY_LSE_BASE_2;
    params.batch = params.q_len = params.num_qo_heads = params.num_kv_heads = 1;
    params.head_dim = kDim;
    params.sm_scale = 0.125f;
    params.logits_soft_cap = 30;
    params.q = q.data();
    params.kv = {k.data(), v.data(), kKeys * kDim,
                 kDim,     kDim,     kKeys * kDim,
                 kDim,     kDim,     &page,
                 &length,  1,        nullptr,
                 0,        1,        1,
                 kKeys,    {}};
  }

  static std::vector<uint16_t> draw(int count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<uint16_t> out(static_cast<size_t>(count));
    for (size_t i = 0; i < out.size(); ++i)
      store_element(ASSAY_BF16, out.data(), static_cast<int64_t>(i), normal(random));
    return out;
  }
  DeclarationCost cost(const assay_arithmetic &a) const {
    return declaration_cost(rows_of(params), {a});
  }
};

assay_arithmetic all_exact(assay_arithmetic a) {
  for (const DeclaredField &field : declared_fields())
    field.make_exact(a);
  return a;
}

size_t index_of(const std::string &name) {
  const auto &fields = declared_fields();
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const DeclaredField &field) { return name == field.name; });
  return static_cast<size_t>(found - fields.begin());
}

bool same(const BoundSums &a, const BoundSums &b) {
  using T = BudgetTerms;
  for (auto term : {&T::weights, &T::p_rounding, &T::accumulation, &T::normalisation, &T::merge,
                    &T::output_rounding, &T::flush, &T::total})
    if (a.o.*term != b.o.*term) return false;
  return a.lse == b.lse;
}

/// One field that is not exact, and the term of O's bound that it pays for; null: the LSE.
struct Fault {
  const char *field;
  void (*make)(assay_arithmetic &a);
  double BudgetTerms::*term;
};
const Fault kFaults[] = {
    {"mma_block, mma_fraction_bits",
     [](assay_arithmetic &a) { a.mma_block = 8, a.mma_fraction_bits = 13; },
     &BudgetTerms::accumulation},
    {"p_format", [](assay_arithmetic &a) { a.p_format = ASSAY_FORMAT_BF16; },
     &BudgetTerms::p_rounding},
    {"sum_format", [](assay_arithmetic &a) { a.sum_format = ASSAY_FORMAT_BF16; },
     &BudgetTerms::normalisation},
    {"exponential", [](assay_arithmetic &a) { a.exponential = ASSAY_EXP_NATURAL; },
     &BudgetTerms::weights},
    {"sum_depth", [](assay_arithmetic &a) { a.sum_depth = 64; }, &BudgetTerms::normalisation},
    {"q_abs_error", [](assay_arithmetic &a) { a.q_abs_error = 0x1p-6; }, &BudgetTerms::weights},
    {"exp2_rel_error", [](assay_arithmetic &a) { a.exp2_rel_error = 0x1p-12; },
     &BudgetTerms::weights},
    {"log2_abs_error", [](assay_arithmetic &a) { a.log2_abs_error = 0x1p-12; }, nullptr},
    {"rcp_rel_error", [](assay_arithmetic &a) { a.rcp_rel_error = 0x1p-12; },
     &BudgetTerms::normalisation},
    {"tanh_abs_error", [](assay_arithmetic &a) { a.tanh_abs_error = 0x1p-12; },
     &BudgetTerms::weights},
    {"tile_tokens", [](assay_arithmetic &a) { a.tile_tokens = 1; }, &BudgetTerms::accumulation},
    {"max_parallel_states", [](assay_arithmetic &a) { a.max_parallel_states = 8; },
     &BudgetTerms::merge},
    {"max_splits, merge_stages", [](assay_arithmetic &a) { a.max_splits = 16, a.merge_stages = 1; },
     &BudgetTerms::merge},
    {"score_format", [](assay_arithmetic &a) { a.score_format = ASSAY_FORMAT_BF16; },
     &BudgetTerms::weights},
    {"q_format", [](assay_arithmetic &a) { a.q_format = ASSAY_FORMAT_BF16; },
     &BudgetTerms::weights},
    {"product_format", [](assay_arithmetic &a) { a.product_format = ASSAY_FORMAT_BF16; },
     &BudgetTerms::weights},
    {"qk_sum_format", [](assay_arithmetic &a) { a.qk_sum_format = ASSAY_FORMAT_BF16; },
     &BudgetTerms::weights},
    {"output_format", [](assay_arithmetic &a) { a.output_format = ASSAY_FORMAT_BF16; },
     &BudgetTerms::output_rounding}};

/// Those that cost something beside another field alone, or of an fp8 cache.
const Fault kJoinedFaults[] = {
    {"partial_format, stored_merges",
     [](assay_arithmetic &a) {
       a.max_splits = 16, a.merge_stages = a.stored_merges = 1;
       a.partial_format = ASSAY_FORMAT_BF16;
     },
     &BudgetTerms::merge},
    {"p_scale_log2",
     [](assay_arithmetic &a) { a.p_format = ASSAY_FORMAT_E4M3, a.p_scale_log2 = 0; },
     &BudgetTerms::p_rounding},
    {"accumulator", [](assay_arithmetic &a) { a.mma_block = a.mma_fraction_bits = 0; },
     &BudgetTerms::accumulation},
    {"kv_format", [](assay_arithmetic &a) { a.kv_format = ASSAY_FORMAT_BF16; },
     &BudgetTerms::accumulation},
    {"rounded_before_scale", [](assay_arithmetic &a) { a.rounded_before_scale = 1; },
     &BudgetTerms::output_rounding}};

/// The call with bytes of its cache as e4m3, and scales.
struct Fp8Call : PagedCall {
  float k_scale = 0.7f, v_scale = 0.3f;
  Fp8Call() {
    for (auto *values : {&k, &v})
      for (uint16_t &two : *values)
        two &= 0x3f3f; // below 2, no NaN
    params.kv_dtype = ASSAY_E4M3;
    params.k_scale = &k_scale;
    params.v_scale = &v_scale;
  }
};

TEST(DeclarationCost, AFaultlessDeclarationCostsNothing) {
  const DeclarationCost cost = PagedCall().cost(all_exact({}));
  EXPECT_EQ(cost.outputs, uint64_t{kDim});
  EXPECT_GT(cost.magnitude, 0);
  for (const BoundSums &field : cost.fields)
    EXPECT_TRUE(same(field, cost.declared));
  EXPECT_TRUE(same(cost.exact, cost.declared));
  EXPECT_GT(cost.declared.o.output_rounding, 0);
}

// Made exact again, the one wrong field is what the difference comes from; the others change
// nothing.
TEST(DeclarationCost, EachFieldPaysForItself) {
  const PagedCall call;
  const auto &fields = declared_fields();
  ASSERT_EQ(std::size(kFaults) + std::size(kJoinedFaults), fields.size());
  for (const Fault &fault : kFaults) {
    const size_t i = index_of(fault.field);
    SCOPED_TRACE(fault.field);
    assay_arithmetic a = all_exact({});
    fault.make(a);
    const DeclarationCost cost = call.cost(a);
    for (size_t j = 0; j < fields.size(); ++j)
      EXPECT_TRUE(same(cost.fields[j], j == i ? cost.exact : cost.declared)) << fields[j].name;
    if (fault.term == nullptr) {
      EXPECT_EQ(cost.declared.o.total, cost.exact.o.total);
      EXPECT_GT(cost.declared.lse, cost.exact.lse * 2);
    } else {
      EXPECT_GT(cost.declared.o.total, cost.exact.o.total);
      EXPECT_GT(cost.declared.o.*fault.term, cost.exact.o.*fault.term * 1.05);
    }
  }
}

TEST(DeclarationCost, JoinedFieldsPayForThemselves) {
  PagedCall plain;
  plain.params.sm_scale = 1; // many weights are subnormal in e4m3
  plain.params.logits_soft_cap = 0;
  const Fp8Call fp8;
  for (const Fault &fault : kJoinedFaults) {
    SCOPED_TRACE(fault.field);
    assay_arithmetic a = all_exact({});
    fault.make(a);
    const bool of_fp8 = a.kv_format != ASSAY_FORMAT_FP32 || a.rounded_before_scale != 0;
    const DeclarationCost cost = of_fp8 ? fp8.cost(a) : plain.cost(a);
    ASSERT_GT(cost.outputs, 0u);
    const BoundSums &without = cost.fields[index_of(fault.field)];
    EXPECT_GT(cost.declared.o.total, without.o.total);
    EXPECT_GT(cost.declared.o.*fault.term, without.o.*fault.term * 1.05);
  }
}

// A field of assay_arithmetic that none of them names would keep what it had.
TEST(DeclarationCost, NoFieldIsForgotten) {
  assay_arithmetic wild{};
  const int32_t count = 7;
  const double error = 0.25;
  for (const ArithmeticField &field : arithmetic_fields()) {
    if (field.count != nullptr)
      wild.*field.count = count;
    else
      wild.*field.error = error;
  }
  wild.tile_tokens = wild.p_scale_log2 = 3;
  const assay_arithmetic a = all_exact(wild), b = all_exact({});
  for (const ArithmeticField &field : arithmetic_fields()) {
    if (field.count != nullptr)
      EXPECT_EQ(a.*field.count, b.*field.count) << field.name;
    else
      EXPECT_EQ(a.*field.error, b.*field.error) << field.name;
  }
}

/// Two splits of two states each, in tiles of 25 keys.
TileOrder four_states(int) {
  TileOrder order;
  for (int begin = 0; begin < kKeys; begin += 25)
    order.push_back({begin / 150, begin / 25 % 2, begin, begin + 25});
  return order;
}

// With a declared order the replay takes most of P's rounding back: what p_format costs is less.
TEST(DeclarationCost, AKeyOrderMakesPCheaper) {
  const PagedCall call;
  assay_arithmetic a = all_exact({});
  a.p_format = ASSAY_FORMAT_BF16;
  a.tile_tokens = 25;
  a.max_parallel_states = 2;
  a.max_splits = 2;
  a.merge_stages = 1;
  assay_paged_params plain = call.params;
  plain.logits_soft_cap = 0;
  const DeclarationCost blind = declaration_cost(rows_of(plain), {a});
  const DeclarationCost ordered = declaration_cost(rows_of(plain), {a, flat_order(1, four_states)});
  EXPECT_LT(ordered.declared.o.p_rounding, 0.5 * blind.declared.o.p_rounding);
  for (const BoundSums &field : ordered.fields)
    EXPECT_LE(field.o.total, ordered.declared.o.total * (1 + 1e-9));
}

// Without parallel states, or splits, the same tiles belong to one state.
TEST(DeclarationCost, StatesAndSplitsAreJoinedInTheOrderToo) {
  const PagedCall call;
  assay_arithmetic a = all_exact({});
  a.max_parallel_states = 2;
  a.max_splits = 2;
  a.merge_stages = 1;
  const DeclarationCost cost =
      declaration_cost(rows_of(call.params), {a, flat_order(1, four_states)});
  const auto one_state = [](int request) {
    TileOrder order = four_states(request);
    for (KeyTile &tile : order)
      tile.state = 0;
    return order;
  };
  const auto one_split = [&](int request) {
    TileOrder order = one_state(request);
    for (KeyTile &tile : order)
      tile.split = 0;
    return order;
  };
  assay_arithmetic single = a, joined = a;
  single.max_parallel_states = 0;
  joined.max_splits = joined.merge_stages = 0;
  const size_t states = index_of("max_parallel_states"), splits = states + 1;
  EXPECT_FALSE(same(cost.fields[states], cost.declared));
  EXPECT_FALSE(same(cost.fields[splits], cost.declared));
  const auto declared = [&](const assay_arithmetic &arithmetic, auto order) {
    return declaration_cost(rows_of(call.params), {arithmetic, flat_order(1, order)}).declared;
  };
  EXPECT_TRUE(same(cost.fields[states], declared(single, one_state)));
  EXPECT_TRUE(same(cost.fields[splits], declared(joined, one_split)));
}

TEST(DeclarationCost, ABadKeyOrderIsNamed) {
  const PagedCall call;
  const auto short_order = [](int) { return TileOrder{{0, 0, 0, kKeys - 1}}; };
  EXPECT_THROW(declaration_cost(rows_of(call.params), {all_exact({}), flat_order(1, short_order)}),
               OrderError);
}

struct MergeCall {
  std::vector<float> o = std::vector<float>(3 * 8, 0.5f), lse = {1.0f, 2.0f, 0.5f};
  assay_merge_states_params params{};
  MergeCall() {
    o[3] = -2;
    params.struct_size = sizeof params;
    params.dtype = ASSAY_FP32;
    params.lse_base = ASSAY_LSE_BASE_2;
    params.num_rows = params.num_heads = 1;
    params.num_states = 3;
    params.head_dim = 8;
    params.o_in = o.data();
    params.lse_in = lse.data();
    params.o_in_stride_state = 8;
    params.lse_in_stride_state = 1;
  }
};

TEST(DeclarationCost, MergesPayForTheirExponentialAlone) {
  MergeCall call;
  assay_arithmetic a = all_exact({});
  a.exp2_rel_error = 0x1p-12;
  a.p_format = ASSAY_FORMAT_BF16; // no weight of a merge is rounded
  const DeclarationCost cost = declaration_cost(rows_of(call.params), {a});
  const auto &fields = declared_fields();
  for (size_t i = 0; i < fields.size(); ++i) {
    const bool paid = std::string_view(fields[i].name) == "exp2_rel_error";
    EXPECT_EQ(same(cost.fields[i], cost.declared), !paid) << fields[i].name;
  }
  // A single state is returned bit for bit: there is nothing to pay for.
  call.lse[1] = call.lse[2] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(declaration_cost(rows_of(call.params), {a}).outputs, 0u);
}

} // namespace
} // namespace assay::oracle::test
