// SPDX-License-Identifier: Apache-2.0
// What our kernels declare follows the device; here its compute capability is a number.
#include "kernels/api/own_kernels.h"
#include "oracle/bounds/arithmetic_fields.h"
#include "oracle/bounds/attention_row.h"
#include "oracle/bounds/block_fma.h"
#include "oracle/bounds/error_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace assay {
namespace {

using Kernels = std::array<assay_kernel, kOwnKernels>;

Kernels kernels_on(int capability) {
  return own_kernels(ASSAY_TARGET_CUDA, tensor_core(capability));
}

/// The names of fields that differ.
std::vector<std::string> differences(const assay_arithmetic &a, const assay_arithmetic &b) {
  std::vector<std::string> out;
  for (const oracle::ArithmeticField &f : oracle::arithmetic_fields())
    if (f.count != nullptr ? a.*f.count != b.*f.count : a.*f.error != b.*f.error)
      out.emplace_back(f.name);
  return out;
}

/// A row's bounds of O and of the LSE: first without an order of keys, then with one.
std::vector<double> bounds(const assay_arithmetic &arithmetic, int keys, int head_dim) {
  std::mt19937 random(7);
  const auto draw = [&] { return static_cast<float>(static_cast<int>(random() % 65) - 32) / 32; };
  oracle::KeySet set;
  set.head_dim = head_dim;
  std::vector<float> q;
  for (int i = 0; i < head_dim; ++i)
    q.push_back(draw());
  for (int i = 0; i < keys * head_dim; ++i) {
    set.k.push_back(draw());
    set.v.push_back(draw());
  }
  set.finish(ASSAY_BF16);
  oracle::TileOrder order;
  for (int begin = 0; begin < keys; begin += 16)
    order.push_back({.begin = begin, .end = std::min(begin + 16, keys)});
  std::vector<double> out;
  for (const oracle::TileOrder *known :
       {static_cast<const oracle::TileOrder *>(nullptr), &std::as_const(order)}) {
    oracle::RowProblem problem;
    problem.q = q;
    problem.keys = &set;
    problem.sm_scale = 0.125f;
    problem.arithmetic = arithmetic;
    problem.order = known;
    const oracle::RowReference row = oracle::attention_row(problem);
    EXPECT_TRUE(row.claim) << row.no_claim_reason;
    for (const oracle::BudgetTerms &terms : row.t0)
      out.push_back(terms.total);
    for (const oracle::BudgetTerms &terms : row.t1.budget)
      out.push_back(terms.total);
    out.push_back(row.lse_budget);
  }
  return out;
}

void expect_wider(const std::vector<double> &narrow, const std::vector<double> &wide) {
  ASSERT_EQ(narrow.size(), wide.size());
  for (size_t i = 0; i < narrow.size(); ++i)
    EXPECT_LT(narrow[i], wide[i]) << "bound " << i;
}

/// Every bound of every kernel with blocks is wider on `wide` than on `narrow`.
void expect_wider(const Kernels &narrow, const Kernels &wide) {
  for (int i = 0; i < kOwnKernels; ++i) {
    const assay_arithmetic &a = narrow[i].arithmetic, &b = wide[i].arithmetic;
    SCOPED_TRACE(narrow[i].name);
    if (a.mma_block == 0) {
      EXPECT_TRUE(differences(a, b).empty());
      continue;
    }
    EXPECT_EQ(differences(a, b), (std::vector<std::string>{"mma_block", "mma_fraction_bits"}));
    for (const int head_dim : {64, 128, 256}) {
      const auto before = oracle::make_error_model(a, ASSAY_BF16, head_dim);
      const auto after = oracle::make_error_model(b, ASSAY_BF16, head_dim);
      EXPECT_LT(before.alignment, after.alignment);
      EXPECT_LT(before.kappa, after.kappa);
      EXPECT_LT(before.dot, after.dot);
      EXPECT_LT(before.dot_floor, after.dot_floor);
    }
    for (const int keys : {1, 5, 16, 100})
      expect_wider(bounds(a, keys, 64), bounds(b, keys, 64));
  }
}

TEST(DeviceArithmetic, HopperAndTheExecutorDeclareWhatWasMeasured) {
  const Kernels simt = own_kernels(ASSAY_TARGET_SIMT), hopper = kernels_on(90);
  for (int i = 0; i < kOwnKernels; ++i) {
    SCOPED_TRACE(hopper[i].name);
    const assay_arithmetic &a = hopper[i].arithmetic;
    EXPECT_TRUE(differences(simt[i].arithmetic, a).empty());
    EXPECT_TRUE(oracle::has_measured_blocks(a));
    const bool attention =
        hopper[i].family == ASSAY_FAMILY_PAGED || hopper[i].family == ASSAY_FAMILY_CASCADE;
    EXPECT_EQ(a.mma_block, attention ? 16 : 0);
    EXPECT_EQ(a.mma_fraction_bits, attention ? 25 : 0);
  }
}

TEST(DeviceArithmetic, AnUnknownDeviceHasTheWidestBounds) {
  const Kernels hopper = kernels_on(90), ampere = kernels_on(80);
  for (const int capability : {0, 70, 75, 86, 87, 100, 103, 120, 999}) {
    SCOPED_TRACE(capability);
    const Kernels unknown = kernels_on(capability);
    expect_wider(hopper, unknown);
    expect_wider(ampere, unknown);
  }
  expect_wider(hopper, ampere);
  for (int i = 0; i < kOwnKernels; ++i)
    EXPECT_TRUE(differences(ampere[i].arithmetic, kernels_on(89)[i].arithmetic).empty());
}

TEST(DeviceArithmetic, ScoresAreReplayedOnHopperAlone) {
  for (const int capability : {0, 80, 86, 89, 100, 120})
    for (const assay_kernel &kernel : kernels_on(capability))
      EXPECT_EQ(oracle::has_measured_blocks(kernel.arithmetic), kernel.arithmetic.mma_block == 0)
          << capability << " " << kernel.name;
}

} // namespace
} // namespace assay
