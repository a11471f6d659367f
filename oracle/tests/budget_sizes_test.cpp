// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/budget_sizes.h"

#include <gtest/gtest.h>

namespace assay::oracle {
namespace {

BudgetSizes of(int outputs, double budget) {
  BudgetSizes sizes;
  for (int i = 0; i < outputs; ++i)
    sizes.add(budget, 1.0);
  return sizes;
}

TEST(BudgetSizes, MedianIsOfOutputsThatAreNotZero) {
  BudgetSizes sizes = of(3, 0x1p-8);
  sizes.merge(of(2, 8.0));
  sizes.add(1.0, 0.0);
  EXPECT_NEAR(sizes.median(), 0x1p-8, 0x1p-9);
  EXPECT_EQ(BudgetSizes().median(), 0.0);
}

// One call of many outputs about which little can be said does not outweigh the others.
TEST(BudgetSizes, TypicalOnesCountEachCallOnce) {
  BudgetSizes calls, outputs;
  for (const BudgetSizes &call : {of(10, 0x1p-8), of(10'000, 8.0), of(10, 0x1p-8), BudgetSizes()}) {
    outputs.merge(call);
    calls.merge(call.typical());
  }
  EXPECT_NEAR(outputs.median(), 8.0, 2.0);
  EXPECT_NEAR(calls.median(), 0x1p-8, 0x1p-9);
  EXPECT_EQ(BudgetSizes().typical().median(), 0.0);
}

} // namespace
} // namespace assay::oracle
