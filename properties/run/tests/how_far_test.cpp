// SPDX-License-Identifier: Apache-2.0
// An error in words: by how much, and the mistakes whose factor has a name.
#include "properties/run/how_far.h"

#include <cmath>

#include <gtest/gtest.h>

#include "properties/tests/reference_kernels.h"

namespace assay {
namespace {

std::string of_o(const Problem &p, double got, double expected, double allowed) {
  return how_far(p, wrong_value(0, 0, 3, got, expected, allowed));
}
std::string of_lse(const Problem &p, double got, double expected) {
  return how_far(p, wrong_value(0, 0, -1, got, expected, 1e-6));
}

/// A right kernel, but for the first element of O.
template <class Change>
Origin origin_with(Change change) {
  static Change corrupt = change;
  assay_kernel kernel = reference::kernel("reference_v1");
  kernel.run = [](const void *params) -> assay_status {
    const auto &p = *static_cast<const assay_paged_params *>(params);
    auto *o = static_cast<uint16_t *>(p.out);
    const uint16_t before = *o;
    const assay_status status = reference::kernel("reference_v1").run(params);
    *o = corrupt(p, before, *o);
    return status;
  };
  Problem p;
  p.seq_lens = {3};
  p.page_size = 4;
  return origin_of(p, 0, 0, 0, *make_simt_sut(kernel));
}

TEST(Origin, IsFoundOutByRunningTheCaseAgain) {
  using P = assay_paged_params;
  EXPECT_EQ(origin_with([](const P &, uint16_t, uint16_t right) { return right; }),
            Origin::kComputed);
  EXPECT_EQ(origin_with([](const P &, uint16_t, uint16_t) { return uint16_t{0x3f80}; }),
            Origin::kComputed);
  EXPECT_EQ(origin_with([](const P &, uint16_t before, uint16_t) { return before; }),
            Origin::kUnwritten);
  EXPECT_EQ(origin_with([](const P &p, uint16_t, uint16_t) {
              return static_cast<const uint16_t *>(p.kv.v)[3 * p.kv.v_stride_token];
            }),
            Origin::kDeadMemory);
}

TEST(Origin, IsSaidInPlaceOfTheDistance) {
  Symptom s = wrong_value(0, 0, 3, NAN, 1.0, 0.01);
  s.origin = Origin::kUnwritten;
  EXPECT_EQ(how_far({}, s), "never written: it still holds what was there before the call");
}

TEST(HowFar, SaysHowMuch) {
  EXPECT_EQ(of_o({}, 1.13, 1.0, 0.01), "off by 0.13, 13 times what is allowed");
  EXPECT_EQ(how_far({}, wrong_value(0, 0, 0, NAN, 1, 0.01)), "");
  EXPECT_EQ(how_far({}, plain_symptom(Symptom::Kind::kMemory, "o: 3 bytes")), "");
}

TEST(HowFar, NamesFactors) {
  Problem p;
  p.group_size = 5;
  p.page_size = 16;
  p.num_splits = 3;
  const auto named = [&](double factor, const char *name) {
    return of_o(p, factor * 0.7, 0.7, 1e-4).find(name) != std::string::npos;
  };
  EXPECT_TRUE(named(1.4426950408889634, "log2 e"));
  EXPECT_TRUE(named(0.6931471805599453, "ln 2"));
  EXPECT_TRUE(named(5, "the group size"));
  EXPECT_TRUE(named(1.0 / 16, "the page size"));
  EXPECT_TRUE(named(3, "the number of splits"));
  EXPECT_TRUE(named(8, "2^3"));
  EXPECT_TRUE(named(0.25, "2^-2"));
  EXPECT_TRUE(named(-1, "the sign"));
  EXPECT_EQ(of_o(p, 1.3 * 0.7, 0.7, 1e-4).find("factor"), std::string::npos);
  // What is allowed blurs the factor: too wide, and nothing is named.
  EXPECT_EQ(of_o(p, 5 * 0.7, 0.7, 0.1).find("factor"), std::string::npos);
  EXPECT_EQ(of_o(p, 3, 0, 1e-4).find("factor"), std::string::npos);
}

TEST(HowFar, NamesShiftsOfTheLse) {
  Problem p;
  p.num_splits = 3;
  EXPECT_NE(of_lse(p, 5.1 + std::log(3), 5.1).find("log of the number of splits"),
            std::string::npos);
  EXPECT_NE(of_lse(p, 5.1 + std::log(2), 5.1).find("count twice"), std::string::npos);
  p.lse_base = LseBase::kBase2;
  EXPECT_NE(of_lse(p, 5.1 - 1, 5.1).find("half as large"), std::string::npos);
}

} // namespace
} // namespace assay
