// SPDX-License-Identifier: Apache-2.0
// The algebra of AttentionState, on the kernels' own source instantiated with 100-digit numbers:
// partitioning, order, tree shape and paging are exact, so any tolerance above rounding would hide
// a mistake. Bound 1e-80. The names follow the flash-decoding and paged-attention teaching labs.
#include "kernels/common/attention_state.cuh"

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

using Digits100 = boost::multiprecision::cpp_bin_float_100;

namespace assay::n_simt {
template <>
struct Scalar<Digits100> {
  using R = Digits100;
  static R zero() { return 0; }
  static R one() { return 1; }
  static R neg_infinity() { return -std::numeric_limits<R>::infinity(); }
  static bool is_neg_infinity(const R &x) { return isinf(x) && x < 0; }
  static R exp2(const R &x) {
    return isinf(x) ? R(0) : R(boost::multiprecision::exp(x * log(R(2))));
  }
  static R log2(const R &x) { return log(x) / log(R(2)); }
  static R reciprocal(const R &x) { return 1 / x; }
  static R max(const R &a, const R &b) { return a > b ? a : b; }
  static R fma(const R &a, const R &b, const R &c) { return a * b + c; }
};
} // namespace assay::n_simt

namespace assay::n_simt {
namespace {

constexpr int kDim = 4;
using State = AttentionState<Digits100, kDim>;

struct Keys {
  std::vector<Digits100> score;
  std::vector<std::array<Digits100, kDim>> value;
  int size() const { return static_cast<int>(score.size()); }
};

Keys random_keys(int n, uint64_t seed, double score_scale = 3.0) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<double> normal;
  Keys keys;
  for (int i = 0; i < n; ++i) {
    keys.score.push_back(score_scale * normal(rng));
    keys.value.emplace_back();
    for (auto &v : keys.value.back())
      v = normal(rng);
  }
  return keys;
}

const Digits100 &scale() {
  static const Digits100 kLog2E = 1 / log(Digits100(2));
  return kLog2E;
}

State attend(const Keys &keys, int begin, int end) {
  State s = State::identity();
  for (int i = begin; i < end; ++i) {
    Digits100 v[kDim];
    std::copy(keys.value[i].begin(), keys.value[i].end(), v);
    s.absorb(keys.score[i], v, scale());
  }
  return s;
}

/// Two passes, no running anything: an independent truth.
std::vector<Digits100> dense(const Keys &keys, Digits100 *lse = nullptr) {
  Digits100 sum = 0;
  std::vector<Digits100> o(kDim, 0);
  const Digits100 top = *std::max_element(keys.score.begin(), keys.score.end());
  for (int i = 0; i < keys.size(); ++i) {
    const Digits100 w = exp(keys.score[i] - top);
    sum += w;
    for (int c = 0; c < kDim; ++c)
      o[c] += w * keys.value[i][c];
  }
  for (auto &x : o)
    x /= sum;
  if (lse != nullptr) *lse = (top + log(sum)) / log(Digits100(2));
  return o;
}

void expect_equal(State s, const Keys &keys) {
  Digits100 lse;
  const std::vector<Digits100> o = dense(keys, &lse);
  EXPECT_LT(abs(s.lse2(scale()) - lse), Digits100("1e-80"));
  s.normalize();
  for (int c = 0; c < kDim; ++c)
    EXPECT_LT(abs(s.o[c] - o[c]), Digits100("1e-80")) << "component " << c;
}

std::vector<State> partitions(const Keys &keys, int count) {
  std::vector<State> parts;
  for (int p = 0; p < count; ++p)
    parts.push_back(attend(keys, keys.size() * p / count, keys.size() * (p + 1) / count));
  return parts;
}

State fold(const std::vector<State> &parts) {
  State s = State::identity();
  for (const State &p : parts)
    s.merge(p, scale());
  return s;
}

TEST(AttentionState, matches_dense_block_aligned) {
  expect_equal(attend(random_keys(16, 1), 0, 16), random_keys(16, 1));
}

TEST(AttentionState, matches_dense_partial_last_block) {
  const Keys keys = random_keys(13, 2);
  State s = State::identity();
  for (int start = 0; start < 13; start += 4)
    s.merge(attend(keys, start, std::min(start + 4, 13)), scale());
  expect_equal(s, keys);
}

TEST(AttentionState, one_partition_is_just_attention) {
  const Keys keys = random_keys(50, 3);
  expect_equal(fold(partitions(keys, 1)), keys);
}

TEST(AttentionState, any_partition_count_matches_dense) {
  const Keys keys = random_keys(123, 4);
  for (int count : {2, 3, 7, 32, 100})
    expect_equal(fold(partitions(keys, count)), keys);
}

TEST(AttentionState, more_partitions_than_keys) {
  const Keys keys = random_keys(5, 5);
  expect_equal(fold(partitions(keys, 64)), keys);
}

TEST(AttentionState, merge_is_order_invariant) {
  const Keys keys = random_keys(64, 6);
  std::vector<State> parts = partitions(keys, 9);
  std::reverse(parts.begin(), parts.end());
  expect_equal(fold(parts), keys);
  std::shuffle(parts.begin(), parts.end(), std::mt19937(7));
  expect_equal(fold(parts), keys);
}

TEST(AttentionState, merge_is_hierarchical) {
  const Keys keys = random_keys(96, 8);
  std::vector<State> level = partitions(keys, 11);
  while (level.size() > 1) { // a balanced tree
    std::vector<State> next;
    for (size_t i = 0; i < level.size(); i += 2) {
      next.push_back(level[i]);
      if (i + 1 < level.size()) next.back().merge(level[i + 1], scale());
    }
    level = std::move(next);
  }
  expect_equal(level.front(), keys);
  // Merging merges is attending over the union.
  State left = fold({attend(keys, 0, 10), attend(keys, 10, 40)});
  left.merge(fold({attend(keys, 40, 41), attend(keys, 41, 96)}), scale());
  expect_equal(left, keys);
}

TEST(AttentionState, extreme_scores_do_not_overflow) {
  Keys keys = random_keys(40, 9);
  keys.score[17] = 200;
  keys.score[30] = -1e5;
  expect_equal(fold(partitions(keys, 4)), keys);
}

TEST(AttentionState, identity_is_neutral_on_both_sides) {
  const Keys keys = random_keys(20, 10);
  State left = State::identity();
  left.merge(attend(keys, 0, 20), scale());
  expect_equal(left, keys);
  State right = attend(keys, 0, 20);
  right.merge(State::identity(), scale());
  expect_equal(right, keys);
  State both = State::identity();
  both.merge(State::identity(), scale());
  EXPECT_TRUE(both.is_empty());
  both.normalize();
  for (const auto &x : both.o)
    EXPECT_EQ(x, 0);
}

TEST(AttentionState, cascade_prefix_once_plus_suffixes_is_flat_attention) {
  const Keys prefix = random_keys(512, 11);
  const State shared = attend(prefix, 0, 512);
  for (int request = 0; request < 8; ++request) {
    const Keys suffix = random_keys(64, 100 + request);
    Keys all = prefix;
    all.score.insert(all.score.end(), suffix.score.begin(), suffix.score.end());
    all.value.insert(all.value.end(), suffix.value.begin(), suffix.value.end());
    State s = shared;
    s.merge(attend(suffix, 0, 64), scale());
    expect_equal(s, all);
  }
}

// fp32, as the kernels use it: the promises that are bitwise.
using FloatState = AttentionState<float, 2>;

TEST(AttentionState, float_merge_with_identity_is_bitwise_even_when_it_carries_nan) {
  FloatState s = FloatState::from_normalized(1.5f, {0.25f, -0.0f});
  FloatState empty = FloatState::identity();
  empty.o[0] = std::nanf("");
  FloatState left = empty, right = s;
  left.merge(s, 1.0f);
  right.merge(empty, 1.0f);
  for (const FloatState &r : {left, right}) {
    EXPECT_EQ(r.m, s.m);
    EXPECT_EQ(r.o[0], 0.25f);
    EXPECT_TRUE(std::signbit(r.o[1]));
  }
}

TEST(AttentionState, float_state_of_nothing_but_nan_is_not_empty) {
  FloatState s = FloatState::identity();
  s.absorb(std::nanf(""), {1.0f, 2.0f}, 1.0f);
  EXPECT_FALSE(s.is_empty());
  FloatState empty = FloatState::identity(), number = FloatState::from_normalized(1.5f, {0, 1});
  empty.merge(s, 1.0f);
  number.merge(s, 1.0f);
  for (FloatState r : {s, empty, number}) {
    EXPECT_TRUE(std::isnan(r.lse2(1.0f)));
    r.normalize();
    EXPECT_TRUE(std::isnan(r.o[0]) && std::isnan(r.o[1]));
  }
}

TEST(AttentionState, float_merge_is_bitwise_commutative) {
  std::mt19937 rng(3);
  std::uniform_real_distribution<float> u(-40.0f, 40.0f);
  for (int i = 0; i < 10000; ++i) {
    FloatState a = FloatState::from_normalized(u(rng), {u(rng), u(rng)}), b = a;
    const FloatState c = FloatState::from_normalized(u(rng), {u(rng), u(rng)});
    a.merge(c, 1.0f);
    FloatState d = c;
    d.merge(b, 1.0f);
    ASSERT_EQ(a.m, d.m);
    ASSERT_EQ(a.d, d.d);
    ASSERT_EQ(a.o[0], d.o[0]);
    ASSERT_EQ(a.o[1], d.o[1]);
  }
}

} // namespace
} // namespace assay::n_simt
