// SPDX-License-Identifier: Apache-2.0
// A declaration that bounds nothing is refused, field by field, wherever a reference is made.
#include "oracle/bounds/declaration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "oracle/bounds/error_model.h"
#include "oracle/judge/verdict.h"
#include "oracle/tests/emulation.h"

namespace assay::oracle::test {
namespace {

constexpr int kIntMin = std::numeric_limits<int32_t>::min();
constexpr int kIntMax = std::numeric_limits<int32_t>::max();

/// With `value` in the field, the message says its name first.
template <class Value>
void expect_defect(const char *name, Value assay_arithmetic::*field, Value value) {
  assay_arithmetic a = declared({});
  a.*field = value;
  EXPECT_EQ(declaration_defect(a).rfind(std::string(name) + " is ", 0), 0u)
      << name << " = " << value << ": " << declaration_defect(a);
  EXPECT_THROW(make_error_model(a, ASSAY_BF16, 64), std::invalid_argument) << name;
}
template <class Value>
void expect_fine(Value assay_arithmetic::*field, Value value) {
  assay_arithmetic a = declared({});
  a.*field = value;
  EXPECT_EQ(declaration_defect(a), "");
  EXPECT_NO_THROW(make_error_model(a, ASSAY_BF16, 64));
}

TEST(Declaration, EveryErrorIsANumberBelowOne) {
  using A = assay_arithmetic;
  const std::pair<const char *, double A::*> fields[] = {{"q_abs_error", &A::q_abs_error},
                                                         {"exp2_rel_error", &A::exp2_rel_error},
                                                         {"log2_abs_error", &A::log2_abs_error},
                                                         {"rcp_rel_error", &A::rcp_rel_error},
                                                         {"tanh_abs_error", &A::tanh_abs_error}};
  for (const auto &[name, field] : fields) {
    for (double bad : {double(NAN), double(INFINITY), -double(INFINITY), -0x1p-1074, -1.0, 1.0})
      expect_defect(name, field, bad);
    for (double good : {0.0, 0x1p-22, 0.5})
      expect_fine(field, good);
  }
}

TEST(Declaration, EveryCountHasARange) {
  using A = assay_arithmetic;
  struct Count {
    const char *name;
    int32_t A::*field;
    int32_t least, most;
  };
  // mma_fraction_bits: blocks of 16 must lose less than they sum.
  for (const Count &c : {Count{"mma_block", &A::mma_block, 0, 1024},
                         {"mma_fraction_bits", &A::mma_fraction_bits, 5, 1022},
                         {"p_format", &A::p_format, 0, 6},
                         {"q_format", &A::q_format, 0, 6},
                         {"product_format", &A::product_format, 0, 3},
                         {"qk_sum_format", &A::qk_sum_format, 0, 3},
                         {"output_format", &A::output_format, 0, 3},
                         {"sum_format", &A::sum_format, 0, 3},
                         {"exponential", &A::exponential, 0, 1},
                         {"sum_depth", &A::sum_depth, 0, 1 << 20},
                         {"tile_tokens", &A::tile_tokens, 0, 1 << 30},
                         {"max_parallel_states", &A::max_parallel_states, 0, 1 << 20},
                         {"score_format", &A::score_format, 0, 3},
                         {"p_scale_log2", &A::p_scale_log2, 0, 15},
                         {"rounded_before_scale", &A::rounded_before_scale, 0, 1},
                         {"kv_format", &A::kv_format, 0, 6}}) {
    for (int32_t bad : {kIntMin, -1, c.least - 1, c.most + 1, kIntMax})
      expect_defect(c.name, c.field, bad);
    expect_fine(c.field, c.least);
    expect_fine(c.field, c.most);
  }
}

TEST(Declaration, SaysWhatWasExpected) {
  assay_arithmetic a = declared({});
  a.rcp_rel_error = NAN;
  EXPECT_EQ(declaration_defect(a), "rcp_rel_error is nan, expected 0 to below 1");
  a = declared({});
  a.mma_fraction_bits = 4;
  EXPECT_EQ(declaration_defect(a),
            "mma_fraction_bits is 4, expected 2^bits above mma_block + 1 = 17");
  a.mma_block = 0; // no blocks, no truncation
  EXPECT_EQ(declaration_defect(a), "");
}

TEST(Declaration, FieldsMustAgree) {
  using A = assay_arithmetic;
  for (int32_t bad : {kIntMin, -1, 65537, kIntMax})
    expect_defect("max_splits", &assay_arithmetic::max_splits, bad);
  for (int32_t bad : {kIntMin, -1, 0, 17, kIntMax})
    expect_defect("merge_stages", &assay_arithmetic::merge_stages, bad);
  assay_arithmetic a = declared({});
  a.max_splits = 0;
  EXPECT_EQ(declaration_defect(a), "merge_stages is 1, expected 0 beside max_splits of 0");
  a.merge_stages = 0;
  EXPECT_EQ(declaration_defect(a), "");
  a.max_splits = 2;
  EXPECT_EQ(declaration_defect(a), "merge_stages is 0, expected 1 .. 16 beside max_splits above 0");
  a = declared({});
  a.sum_format = ASSAY_FORMAT_E4M3;
  EXPECT_EQ(declaration_defect(a), "sum_format is 4, expected 0 .. 3");
  a = declared({});
  for (int32_t bad : {kIntMin, -1, 4, kIntMax})
    expect_defect("partial_format", &A::partial_format, bad);
  for (int32_t bad : {kIntMin, -1, 1, 17, kIntMax}) // no partials are stored
    expect_defect("stored_merges", &A::stored_merges, bad);
  a.partial_format = ASSAY_FORMAT_CALL;
  EXPECT_EQ(declaration_defect(a), "stored_merges is 0, expected 1 .. merge_stages");
  a.stored_merges = 2;
  EXPECT_EQ(declaration_defect(a), "stored_merges is 2, expected 1 .. merge_stages");
  a.stored_merges = 1;
  EXPECT_EQ(declaration_defect(a), "");
  for (int32_t fp8 : {ASSAY_FORMAT_E4M3, ASSAY_FORMAT_E5M2})
    expect_defect("kv_format", &A::kv_format, fp8);
  a = declared({});
  a.accumulator = ASSAY_ACCUMULATOR_FP64;
  EXPECT_EQ(declaration_defect(a), "accumulator is 1, expected 0 (fp32) beside mma_block above 0");
  a.accumulator = ASSAY_ACCUMULATOR_FP32;
  a.p_format = ASSAY_FORMAT_E4M3;
  a.p_scale_log2 = 9; // 512 is beyond e4m3's 448
  EXPECT_EQ(declaration_defect(a), "p_scale_log2 is 9, expected 0 .. 8 with weights in e4m3");
}

TEST(Declaration, MergesAskForASoundOneToo) {
  MergeProblem problem;
  problem.head_dim = 1;
  problem.o = {1.0f, 2.0f};
  problem.lse = {0.0f, 0.0f};
  problem.arithmetic = declared({});
  EXPECT_NO_THROW(merge_row(problem));
  problem.arithmetic.rcp_rel_error = NAN;
  EXPECT_THROW(merge_row(problem), std::invalid_argument);
}

// The last line of defence: NaN compares false with everything, a bound of it with nothing passes.
TEST(Declaration, ABoundThatIsNoNumberDecidesNothing) {
  const auto exact = [](int precision) { return Interval(precision, 1.0); };
  EXPECT_EQ(decide(1.0f, {1.0, 0.0}, NAN, exact).verdict, Verdict::kUndecided);
  EXPECT_EQ(decide(1.0f, {1.0, 0.0}, INFINITY, exact).verdict, Verdict::kUndecided);
  EXPECT_EQ(decide(1.0f, {1.0, 0.0}, 0.5, exact).verdict, Verdict::kInside);
}

} // namespace
} // namespace assay::oracle::test
