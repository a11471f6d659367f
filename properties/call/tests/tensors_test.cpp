// SPDX-License-Identifier: Apache-2.0
#include "properties/call/tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "properties/call/element.h"
#include "properties/call/materialise.h"
#include "properties/call/page_lists.h"
#include "properties/call/params.h"
#include "properties/case/hash.h"
#include "properties/case/problem_gen.h"
#include "properties/tests/families.h"

namespace assay {
namespace {

TEST(Values, EveryBitPatternSurvivesTheRoundTrip) {
  for (Dtype dtype : {Dtype::kBf16, Dtype::kFp16, Dtype::kE4m3, Dtype::kE5m2})
    for (uint32_t bits = 0; bits < 1u << 8 * element_size(dtype); ++bits) {
      float x = from_bits(dtype, bits);
      if (std::isnan(x) || std::isinf(x)) continue;
      ASSERT_EQ(to_bits(dtype, x), bits) << name_of(dtype);
    }
}

TEST(Values, RoundsToNearestEvenAndSaturates) {
  EXPECT_EQ(from_bits(Dtype::kBf16, to_bits(Dtype::kBf16, 1.00390625f)), 1.0f);      // tie to even
  EXPECT_EQ(from_bits(Dtype::kBf16, to_bits(Dtype::kBf16, 1.01171875f)), 1.015625f); // tie to even
  EXPECT_EQ(from_bits(Dtype::kFp16, to_bits(Dtype::kFp16, 1e6f)), 65504.0f);
  EXPECT_EQ(from_bits(Dtype::kFp16, to_bits(Dtype::kFp16, -INFINITY)), -65504.0f);
  EXPECT_EQ(from_bits(Dtype::kBf16, to_bits(Dtype::kBf16, INFINITY)), largest_finite(Dtype::kBf16));
  EXPECT_EQ(from_bits(Dtype::kBf16, to_bits(Dtype::kBf16, -3.4e38f)),
            -largest_finite(Dtype::kBf16));
  EXPECT_EQ(from_bits(Dtype::kFp16, to_bits(Dtype::kFp16, 0x1p-24f)), 0x1p-24f);
  EXPECT_EQ(to_bits(Dtype::kFp16, 0x1p-25f), 0u); // tie to even
  EXPECT_EQ(std::signbit(from_bits(Dtype::kFp16, to_bits(Dtype::kFp16, -0.0f))), true);
}

TEST(Values, Fp8EndsWhereTheFormatsDo) {
  auto e4m3 = [](uint32_t bits) { return from_bits(Dtype::kE4m3, bits); };
  auto e5m2 = [](uint32_t bits) { return from_bits(Dtype::kE5m2, bits); };
  EXPECT_EQ(e4m3(0x7e), 448.0f);
  EXPECT_TRUE(std::isnan(e4m3(0x7f)) && std::isnan(e4m3(0xff)));
  EXPECT_EQ(e4m3(0x01), 0x1p-9f);
  EXPECT_EQ(e4m3(0x38), 1.0f);
  EXPECT_EQ(e5m2(0x7b), 57344.0f);
  EXPECT_TRUE(std::isinf(e5m2(0x7c)) && std::isnan(e5m2(0x7d)));
  EXPECT_EQ(e5m2(0x01), 0x1p-16f);
  EXPECT_EQ(to_bits(Dtype::kE4m3, 1e6f), 0x7eu);                         // saturates
  EXPECT_EQ(to_bits(Dtype::kE4m3, 17.0f), to_bits(Dtype::kE4m3, 16.0f)); // tie to even
  EXPECT_EQ(to_bits(Dtype::kE4m3, 19.0f), to_bits(Dtype::kE4m3, 20.0f));
  EXPECT_EQ(to_bits(Dtype::kE4m3, 0x1p-10f), 0u); // tie to even
}

TEST(Values, PoisonIsWhatItsNameSays) {
  for (Dtype dtype : {Dtype::kBf16, Dtype::kFp16, Dtype::kFp32}) {
    EXPECT_TRUE(std::isnan(from_bits(dtype, poison_bits(Poison::kNan, dtype, 1))));
    EXPECT_TRUE(std::isinf(from_bits(dtype, poison_bits(Poison::kInf, dtype, 1))));
    EXPECT_EQ(from_bits(dtype, poison_bits(Poison::kHugeFinite, dtype, 1)), largest_finite(dtype));
  }
}

TEST(Values, RegimesReachTheirExtremes) {
  Problem p;
  p.head_dim = 64;
  p.scale = ScaleKind::kInvSqrt;
  p.k.regime = Regime::kHuge;
  double largest = 0;
  for (int token = 0; token < 64; ++token) {
    double dot = 0;
    for (int i = 0; i < 64; ++i)
      dot += double(from_bits(p.dtype, query_bits(p, {0, 0, 0, i}))) *
             from_bits(p.dtype, key_bits(p, {0, 0, token, i}));
    largest = std::max(largest, std::fabs(dot * sm_scale(p)));
  }
  EXPECT_GT(largest, 5e4);
  EXPECT_LT(largest, 2e5);
  p.v.regime = Regime::kSubnormal;
  float x = std::fabs(from_bits(p.dtype, value_bits(p, {0, 0, 3, 5})));
  EXPECT_GT(x, 0.0f);
  EXPECT_LT(x, std::numeric_limits<float>::min());
  p.v.regime = Regime::kOneHot;
  EXPECT_EQ(from_bits(p.dtype, value_bits(p, {0, 0, 67, 3})), 1.0f);
  EXPECT_EQ(from_bits(p.dtype, value_bits(p, {0, 0, 67, 4})), 0.0f);
}

TEST(Tensors, LogicalValuesIgnorePlacementLayoutAndPadding) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Problem p = draw_problem(fuzz_limits(), Family::kPaged, seed);
    Tensors a = materialise(p);
    Problem moved = p;
    moved.placement = Placement::kReversed;
    moved.page_ids.clear();
    moved.spare_pages += 2;
    moved.k_layout = p.k_layout == Layout::kNhd ? Layout::kHnd : Layout::kNhd;
    moved.v_pad += 1;
    Tensors b = materialise(moved);
    Tensors c = materialise(p, {.unshare = true});
    for (int r = 0; r < p.batch; ++r)
      for (int k = 0; k < p.seq_lens[r]; ++k)
        for (int h = 0; h < p.num_kv_heads; ++h) {
          ASSERT_EQ(a.key(0, r, k, h, 7), b.key(0, r, k, h, 7));
          ASSERT_EQ(a.val(0, r, k, h, 9), b.val(0, r, k, h, 9));
          ASSERT_EQ(a.key(0, r, k, h, 7), c.key(0, r, k, h, 7));
        }
  }
}

// A kernel may split by the capacity of its table, so lists of the same pages must not have more.
TEST(Tensors, ListsHaveTheCapacityOfTheTable) {
  int longer = 0; // lists with an entry that their row does not need
  for (const Family family : {Family::kPaged, Family::kCascade})
    for (uint64_t seed = 0; seed < 60; ++seed) {
      const Tensors table = materialise(draw_problem(fuzz_limits(), family, seed));
      Tensors lists = table;
      put_pages_into_lists(lists);
      for (size_t i = 0; i < lists.caches.size(); ++i) {
        const CacheView &c = lists.caches[i];
        EXPECT_EQ(c.max_pages, table.caches[i].max_pages);
        for (size_t row = 0; row < static_cast<size_t>(c.rows); ++row) {
          const int entries = c.list_begin[row + 1] - c.list_begin[row];
          EXPECT_LE(entries, c.max_pages);
          longer += entries > static_cast<int>(c.physical[row].size());
        }
      }
    }
  EXPECT_GT(longer, 50);
}

TEST(Tensors, SharingMapsRequestsToOneSlot) {
  Problem p = decode({}, fuzz_limits());
  p.batch = 2;
  p.page_size = 4;
  p.seq_lens = {10, 11};
  p.sharing = Sharing::kPrefix;
  Tensors t = materialise(p);
  EXPECT_EQ(t.caches[0].physical[0][1], t.caches[0].physical[1][1]);
  EXPECT_NE(t.caches[0].physical[0][2], t.caches[0].physical[1][2]);
  EXPECT_EQ(t.caches[0].pool_pages, 4);
  p.sharing = Sharing::kDuplicate;
  t = materialise(p);
  EXPECT_EQ(t.caches[0].physical[0][0], t.caches[0].physical[0][1]);
  EXPECT_EQ(t.key(0, 0, 1, 0, 3), t.key(0, 0, 5, 0, 3));
}

TEST(Tensors, DeadBytesHoldThePoisonAndLiveOnesDoNotDependOnIt) {
  for (Family family : kFamilies)
    for (uint64_t seed = 0; seed < 40; ++seed) {
      Problem p = draw_problem(fuzz_limits(), family, seed);
      Problem q = p;
      p.poison = Poison::kNan;
      q.poison = Poison::kInf;
      Tensors a = materialise(p), b = materialise(q);
      ASSERT_EQ(a.buffers.size(), b.buffers.size());
      for (size_t i = 0; i < a.buffers.size(); ++i) {
        const Buffer &x = a.buffers[i], &y = b.buffers[i];
        ASSERT_EQ(x.live, y.live);
        if (x.output && family != Family::kMergeState) continue;
        for (size_t j = 0; j < x.bytes.size(); ++j) {
          if (!x.live[j] || x.output) continue;
          ASSERT_EQ(x.bytes[j], y.bytes[j]) << x.name;
        }
      }
    }
}

TEST(Tensors, AHugePoolNeedsOffsetsBeyond32Bits) {
  Problem p = decode({}, fuzz_limits());
  p.huge_pool = true;
  p.page_size = 2;
  p.seq_lens = {5};
  Tensors t = materialise(p);
  AbiParams params = make_params(t, host_addresses(t), ASSAY_TARGET_SIMT, nullptr);
  const assay_paged_kv &kv = params.paged.kv;
  int64_t offset = kv.page_table[2] * kv.k_stride_page;
  EXPECT_GE(offset, int64_t{1} << 32);
  uint16_t first;
  auto address = reinterpret_cast<uintptr_t>(kv.k) + static_cast<uintptr_t>(offset) * 2;
  std::memcpy(&first, reinterpret_cast<const void *>(address), 2);
  EXPECT_EQ(first, t.key(0, 0, 4, 0, 0));
}

TEST(Tensors, QueryTokensHaveAnAxisOfTheirOwn) {
  Problem p = decode({}, fuzz_limits());
  p.batch = 2;
  p.seq_lens = {5, 2};
  p.q_len = 3;
  p.q_pad = p.out_pad = 1;
  p.kv = KvType::kE5m2;
  p.k_pad = 1;
  p.v_scale = ScaleLayout::kTensor;
  p.sinks = Sinks::kNormal;
  ASSERT_EQ(problem_error(p, full_limits()), "");
  Tensors t = materialise(p);
  EXPECT_EQ(t.rows(), 6);
  AbiParams params = make_params(t, host_addresses(t), ASSAY_TARGET_SIMT, nullptr);
  const assay_paged_params &a = params.paged;
  EXPECT_EQ(a.q_len, 3);
  EXPECT_EQ(a.kv_dtype, ASSAY_E5M2);
  EXPECT_EQ(a.kv.k_stride_token % 16, 0);
  EXPECT_EQ(t.o.at(4, 0, 7), a.out_stride_batch + a.out_stride_token + 7);
  EXPECT_EQ(a.k_scale, nullptr);
  EXPECT_EQ(a.v_scale[0], t.value_scale(0));
  EXPECT_EQ(a.sinks[0], t.sink(0));
  // The first token of the second request stands before its first key.
  EXPECT_EQ(visible_range(p, 3).size(), 0);
  EXPECT_EQ(visible_range(p, 5).size(), 2);
}

TEST(Tensors, OutputsOnEntryArePoison) {
  Problem p = decode({}, fuzz_limits());
  Tensors t = materialise(p);
  EXPECT_TRUE(std::isnan(t.out_o(0, 0, 0)));
  EXPECT_TRUE(std::isnan(t.out_lse(0, 0)));
}

TEST(Tensors, MergeInPlaceSharesTheBuffer) {
  Problem p;
  p.family = Family::kMergeState;
  p.in_place = InPlace::kOverB;
  Tensors t = materialise(p);
  EXPECT_EQ(t.o.buffer, t.in_o[1].buffer);
  EXPECT_EQ(t.lse.buffer, t.in_lse[1].buffer);
  AbiParams params = make_params(t, host_addresses(t), ASSAY_TARGET_SIMT, nullptr);
  EXPECT_EQ(params.merge_state.out, params.merge_state.o_b);
  EXPECT_EQ(params.merge_state.lse, params.merge_state.lse_b);
}

TEST(Tensors, EmptyStatesHaveDeadO) {
  Problem p;
  p.family = Family::kMergeStates;
  p.lse_regime = LseRegime::kAllEmpty;
  Tensors t = materialise(p);
  EXPECT_TRUE(std::isnan(t.value(t.in_o[0], 0, 0, 0)));
  EXPECT_TRUE(std::isinf(t.value(t.in_lse[0], 0, 0)));
}

TEST(Hash, TupleOrderMatters) {
  EXPECT_NE(hash_values(1, 2), hash_values(2, 1));
  EXPECT_NE(hash_values(0), hash_values(0, 0));
}

// What an output stride of a single request or head may be, assay.h leaves open.
TEST(Layout, LonePiecesAreOften0Apart) {
  for (const Family family : kFamilies) {
    int lone = 0, apart = 0;
    for (uint64_t seed = 0; seed < 300; ++seed) {
      const Problem p = draw_problem(check_limits(), family, seed);
      if (p.batch != 1 && p.num_qo_heads() != 1) continue;
      const Tensors t = materialise(p);
      ++lone;
      apart += (p.batch == 1 && t.o.row_stride == 0) || (t.heads() == 1 && t.o.head_stride == 0);
      if (p.batch > 1) EXPECT_GE(t.o.row_stride, p.head_dim);
      if (t.heads() > 1) EXPECT_GE(t.o.head_stride, p.head_dim);
      if (p.in_place == InPlace::kOverA) EXPECT_EQ(t.o.row_stride, t.in_o[0].row_stride);
    }
    EXPECT_GE(lone, 40) << name_of(family);
    EXPECT_GE(4 * apart, lone) << name_of(family);
    EXPECT_LE(4 * apart, 3 * lone) << name_of(family);
  }
}

// Scores in which the largest element of a query row, a power of two, takes no part.
TEST(Values, PeaksOfQueriesMeetNoKeys) {
  Problem p;
  p.q.regime = Regime::kPeaked;
  p.k.regime = Regime::kOffPeak;
  for (int head = 0; head < 40; ++head) {
    float largest = 0.0f, meets = 0.0f;
    for (int dim = 0; dim < p.head_dim; ++dim) {
      const float q = std::fabs(from_bits(Dtype::kBf16, query_bits(p, {0, head, 0, dim})));
      const float k = std::fabs(from_bits(Dtype::kBf16, key_bits(p, {0, head, 3, dim})));
      largest = std::max(largest, q);
      if (k != 0.0f) meets = std::max(meets, q);
    }
    int exponent = 0;
    EXPECT_EQ(std::frexp(largest, &exponent), 0.5f);
    EXPECT_GT(meets, 0.0f);
    EXPECT_LE(meets, largest * 0x1p-16f);
  }
}

} // namespace
} // namespace assay
