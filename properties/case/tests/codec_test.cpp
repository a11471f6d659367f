// SPDX-License-Identifier: Apache-2.0
#include "properties/case/codec.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "properties/case/fields.h"
#include "properties/case/hash.h"
#include "properties/tests/case_gen.h"
#include "properties/tests/families.h"

namespace assay {
namespace {

Limits any_limits(int index) {
  Limits all[] = {fuzz_limits(), check_limits(), large_limits(), wide_limits()};
  return all[index % 4];
}

TEST(Codec, ADrawIsThatOfRapidCheck) {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{20261120}, ~uint64_t{0}})
    for (uint64_t i = 0; i < 40; ++i)
      ASSERT_EQ(draw_case_bytes(seed + i),
                gen_case_bytes()(rc::Random(seed + i), rc::kNominalSize).value());
}

RC_GTEST_PROP(Codec, EveryByteStringIsAWellFormedCase, ()) {
  Bytes bytes = *gen_case_bytes();
  Limits limits = any_limits(*rc::gen::inRange(0, 4));
  Problem p = decode(bytes, limits);
  RC_ASSERT(problem_error(p, limits) == "");
  RC_ASSERT(problem_error(p, full_limits()) == "");
}

RC_GTEST_PROP(Codec, DecodeInvertsEncode, ()) {
  Bytes bytes = *gen_case_bytes();
  Limits limits = any_limits(*rc::gen::inRange(0, 4));
  Problem p = decode(bytes, limits);
  RC_ASSERT(decode(encode(p, limits), limits) == p);
}

TEST(Codec, NoBytesAreTheSimplestCase) {
  Problem p = decode({}, check_limits());
  EXPECT_EQ(p.family, Family::kPaged);
  EXPECT_EQ(p.batch, 1);
  EXPECT_EQ(p.seq_lens, std::vector<int>{1});
  EXPECT_EQ(p.num_qo_heads(), 1);
  EXPECT_EQ(p.k.regime, Regime::kBinary);
  EXPECT_EQ(p, decode(Bytes(500, 0), check_limits()));
}

/// The bytes of `p`, without ragged queries, as codec version 3 wrote them: without the gate to
/// where tensors lie, and of a paged case without the flags of those queries and of shards.
Bytes version_3_bytes(const Problem &p) {
  Bytes bytes = encode(p, check_limits());
  bytes.resize(bytes.size() - (p.family == Family::kPaged ? 3 : 1));
  bytes[0] = 3;
  return bytes;
}

/// As version 2 did: without the two launch fields.
Bytes version_2_bytes(const Problem &p) {
  Bytes bytes = version_3_bytes(p);
  bytes.resize(bytes.size() - 2);
  bytes[0] = 2;
  return bytes;
}

// Until version 3 the hint followed from the seeds: with the other seeds 0, it was on for q.seed 0,
// off for 7.
TEST(Codec, BytesOfVersion2AreTheCaseTheyWere) {
  for (auto [seed, hint] : {std::pair{0u, true}, {7u, false}}) {
    Problem p = decode({}, check_limits());
    p.q.seed = seed;
    p.even_lengths = hint;
    Bytes bytes = version_2_bytes(p);
    EXPECT_EQ(decode(bytes, check_limits()), p);
    // What stood behind a case of version 2 meant nothing.
    bytes.insert(bytes.end(), {1, 1, 1});
    EXPECT_EQ(decode(bytes, check_limits()), p);
    bytes[0] = 4;
    p.even_lengths = p.enable_pdl = true;
    p.query_tokens = {1};
    EXPECT_EQ(decode(bytes, check_limits()), p);
  }
}

TEST(Codec, BytesOfVersion3HaveNoRaggedQueries) {
  Problem p = decode({}, check_limits());
  p.q_len = 3;
  Bytes bytes = version_3_bytes(p);
  bytes.insert(bytes.end(), {1, 1}); // meant nothing
  EXPECT_EQ(decode(bytes, check_limits()), p);
  bytes[0] = kCodecVersion;
  p.query_tokens = {0}; // one behind the simplest, 3
  EXPECT_EQ(decode(bytes, check_limits()), p);
  EXPECT_EQ(decode(encode(p, check_limits()), check_limits()), p);
}

TEST(Codec, BytesOfVersion3AreTheCaseTheyWere) {
  for (Family family : kFamilies) {
    const Bytes plain = {3, static_cast<uint8_t>(family), 0, 0, 1, 9, 9};
    const Problem p = decode(plain, check_limits());
    ASSERT_FALSE(has_placed_tensors(p));
    Bytes bytes = version_3_bytes(p);
    // What stood behind a case of version 3 meant nothing.
    const Bytes behind(20, 8);
    bytes.insert(bytes.end(), behind.begin(), behind.end());
    EXPECT_EQ(decode(bytes, check_limits()), p);
    bytes[0] = kCodecVersion;
    EXPECT_TRUE(has_placed_tensors(decode(bytes, check_limits())));
  }
}

TEST(Codec, BytesOfVersion5HaveNoShards) {
  const Problem p = decode({}, check_limits());
  Bytes bytes = encode(p, check_limits());
  bytes.back() = 1; // the flag of shards, which version 5 did not have
  bytes.insert(bytes.end(), {4, 1, 1, 1});
  const Problem shard = decode(bytes, check_limits());
  EXPECT_EQ(shard.foreign_tokens.size(), 1u);
  EXPECT_GE(shard.dcp_world_size, 1);
  EXPECT_EQ(decode(encode(shard, check_limits()), check_limits()), shard);
  bytes[0] = 5;
  EXPECT_EQ(decode(bytes, check_limits()), p);
}

TEST(Codec, TensorsAreMovedInManyDraws) {
  constexpr int kDraws = 2000;
  for (Family family : kFamilies) {
    int moved = 0, q = 0, o = 0, lse = 0;
    for (uint64_t seed = 0; seed < kDraws; ++seed) {
      const Problem p = draw_problem(check_limits(), family, seed);
      moved += p.base_seed != 0;
      q += p.q_heads_outermost;
      o += p.out_heads_outermost;
      lse += p.lse_heads_outermost;
    }
    EXPECT_GE(moved, kDraws / 4) << name_of(family);
    for (int heads_outermost : {q, o, lse})
      EXPECT_GE(heads_outermost, kDraws / 20) << name_of(family);
  }
}

TEST(Codec, RareChoicesAreThereAndRare) {
  int rare = 0;
  constexpr int kDraws = 4000;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    const Problem p = draw_problem(check_limits(), Family::kPaged, seed);
    rare += p.q.regime == Regime::kPeaked;
    if (p.q.regime == Regime::kPeaked)
      EXPECT_EQ(decode(encode(p, check_limits()), check_limits()), p);
  }
  EXPECT_GE(rare, 1);
  EXPECT_LE(rare, kDraws / 64);
}

TEST(Codec, LaunchFieldsAreDrawnAsOftenAsTheySay) {
  int even = 0, early = 0;
  constexpr int kDraws = 2000;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    Problem p = draw_problem(check_limits(), Family::kPaged, seed);
    even += p.even_lengths;
    early += p.enable_pdl;
  }
  EXPECT_GE(even, kDraws / 3);
  EXPECT_LE(even, kDraws * 2 / 3);
  EXPECT_GE(early, kDraws / 16);
  EXPECT_LE(early, kDraws / 4);
}

TEST(Codec, LengthsStayInsideThePool) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Problem p = draw_problem(fuzz_limits(), Family::kPaged, seed);
    int slots = 0;
    for (int n : p.seq_lens)
      slots += (n + p.page_size - 1) / p.page_size * p.page_size;
    ASSERT_LE(slots * p.num_kv_heads, fuzz_limits().slots);
  }
}

TEST(Codec, EveryFieldOfEveryFamilyVaries) {
  // A field that no byte reaches is a hole in every search: compare draws with the default case.
  for (Family family : kFamilies) {
    int distinct = 0;
    Problem previous;
    for (uint64_t seed = 0; seed < 200; ++seed) {
      Problem p = draw_problem(check_limits(), family, seed);
      ASSERT_EQ(p.family, family);
      distinct += p != previous;
      previous = p;
    }
    EXPECT_GT(distinct, 150);
  }
}

// Features are many and their combinations more: most draws stay with what every kernel has.
TEST(Codec, MostPagedDrawsArePlain) {
  int plain = 0, fp8 = 0, wide = 0;
  constexpr int kDraws = 2000;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    Problem p = draw_problem(check_limits(), Family::kPaged, seed);
    plain += !has_features(p);
    fp8 += is_fp8(p);
    wide += p.head_dim == 256;
    ASSERT_FALSE(has_features(draw_problem(check_limits(), Family::kCascade, seed)));
  }
  EXPECT_GE(plain, kDraws / 2);
  EXPECT_LE(plain, kDraws * 3 / 4);
  EXPECT_GE(fp8, kDraws / 10);
  EXPECT_GE(wide, kDraws / 20);
  EXPECT_LE(wide, kDraws / 4);
}

TEST(Codec, DrawsAreReproducible) {
  for (Family family : kFamilies)
    EXPECT_EQ(draw_problem(check_limits(), family, 77), draw_problem(check_limits(), family, 77));
}

} // namespace
} // namespace assay
