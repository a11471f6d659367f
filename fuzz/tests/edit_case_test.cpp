// SPDX-License-Identifier: Apache-2.0
// Cases that mutators make: sensible, small, the same for the same seed, and of every choice.
#include "fuzz/cases/edit_case.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "fuzz/cases/case_judge.h"
#include "fuzz/problem_checks.h"
#include "properties/case/case_text.h"
#include "properties/case/problem_gen.h"

namespace assay::fuzz {
namespace {

constexpr size_t kLongest = 300; // what ci/fuzz.sh lets an input be

std::set<std::string> lines_of(const Problem &p) {
  std::istringstream in(format_problem(p));
  std::set<std::string> lines;
  for (std::string line; std::getline(in, line);)
    lines.insert(line);
  return lines;
}

/// Names of the fields that differ.
std::set<std::string> changes(const Problem &a, const Problem &b) {
  const auto before = lines_of(a), after = lines_of(b);
  std::set<std::string> names;
  for (const auto &[one, other] : {std::pair(&before, &after), std::pair(&after, &before)})
    for (const std::string &line : *one)
      if (!other->contains(line)) names.insert(line.substr(0, line.find(' ')));
  return names;
}

class EditCase : public testing::TestWithParam<const CaseFormat *> {
protected:
  const CaseFormat &format() const { return *GetParam(); }
  Problem draw(uint64_t seed) const {
    const Family family = format().family.value_or(static_cast<Family>(seed % 4));
    return draw_problem(format().limits, family, seed);
  }
};

TEST_P(EditCase, a_mutated_case_is_sensible_and_read_as_it_was_meant) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Problem p = draw(seed);
    for (uint64_t step = 0; step < 6; ++step) {
      p = mutated(p, format().limits, seed * 100 + step);
      ASSERT_EQ(problem_error(p, format().limits), "") << format_problem(p);
      const Bytes bytes = write_case(format(), {7, p});
      ASSERT_LE(bytes.size(), kLongest);
      const PickedCase read = read_case(format(), bytes);
      ASSERT_EQ(read.problem, p) << format_problem(p) << "\n" << format_problem(read.problem);
      ASSERT_EQ(read.pick, 7);
    }
  }
}

TEST_P(EditCase, little_changes_at_once_and_in_time_everything) {
  std::set<std::string> ever;
  int same = 0, few = 0;
  constexpr int kCount = 3000;
  for (int seed = 0; seed < kCount; ++seed) {
    const Problem p = draw(static_cast<uint64_t>(seed));
    const auto names = changes(p, mutated(p, format().limits, static_cast<uint64_t>(seed)));
    same += names.empty() ? 1 : 0;
    few += names.size() <= 5 ? 1 : 0;
    ever.insert(names.begin(), names.end());
  }
  EXPECT_LT(same, kCount / 8);
  EXPECT_GT(few, kCount * 2 / 3);
  for (const std::string &line : lines_of(draw(1))) {
    const std::string name = line.substr(0, line.find(' '));
    if (name != "family" && name != "head_dim") EXPECT_TRUE(ever.contains(name)) << name;
  }
}

TEST_P(EditCase, the_same_seed_makes_the_same_case) {
  const Problem a = draw(11), b = draw(15);
  const Bytes input = write_case(format(), {1, a}), other = write_case(format(), {2, b});
  std::set<Bytes> mutants, crosses;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const Bytes mutant = mutated_input(format(), input, seed);
    const Bytes cross = crossed_input(format(), input, other, seed);
    EXPECT_EQ(mutant, mutated_input(format(), input, seed));
    EXPECT_EQ(cross, crossed_input(format(), input, other, seed));
    mutants.insert(mutant);
    crosses.insert(cross);
  }
  EXPECT_GT(mutants.size(), 40u);
  EXPECT_GT(crosses.size(), 20u);
}

TEST_P(EditCase, a_crossed_case_takes_from_both) {
  int from_a = 0, from_b = 0, of_neither = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Problem a = draw(4 * seed), b = draw(4 * seed + 4);
    ASSERT_EQ(crossed(a, a, format().limits, seed), a);
    const Problem c = crossed(a, b, format().limits, seed);
    ASSERT_EQ(problem_error(c, format().limits), "") << format_problem(c);
    ASSERT_EQ(read_case(format(), write_case(format(), {0, c})).problem, c);
    const auto of_a = lines_of(a), of_b = lines_of(b);
    for (const std::string &line : lines_of(c))
      if (of_a.contains(line) != of_b.contains(line))
        ++(of_a.contains(line) ? from_a : from_b);
      else if (!of_a.contains(line))
        ++of_neither; // lists, and numbers cut to ranges that others decide
  }
  EXPECT_GT(from_a, 300);
  EXPECT_GT(from_b, 300);
  EXPECT_LT(of_neither, (from_a + from_b) / 3);
}

TEST_P(EditCase, whatever_the_bytes_the_mutators_write_within_their_room) {
  std::vector<uint8_t> data(kLongest);
  for (uint32_t seed = 0; seed < 300; ++seed) {
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<uint8_t>((i * seed) ^ (i >> 3));
    const size_t size = seed % data.size(), room = 1 + seed * 7 % data.size();
    const std::vector<uint8_t> second(data.begin() + 1, data.end());
    EXPECT_LE(cross_into(format(), {data.data(), size}, second, data.data(), room, seed), room);
    EXPECT_LE(mutate_in_place(format(), data.data(), std::min(size, room), room, seed), room);
  }
}

std::string name_of_format(const testing::TestParamInfo<const CaseFormat *> &tested) {
  const CaseFormat &format = *tested.param;
  return format.family ? std::string(name_of(*format.family)) : "problem";
}

INSTANTIATE_TEST_SUITE_P(Of, EditCase,
                         testing::Values(&problem_format(), &paged_format(), &cascade_format()),
                         name_of_format);

} // namespace
} // namespace assay::fuzz
