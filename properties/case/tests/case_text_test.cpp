// SPDX-License-Identifier: Apache-2.0
#include "properties/case/case_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "properties/case/device_limits.h"
#include "properties/case/query_rows.h"
#include "properties/tests/case_gen.h"

namespace assay {
namespace {

Case parsed(const std::string &text) {
  auto result = parse_case(text + "end\n");
  if (auto *error = std::get_if<CaseError>(&result)) {
    ADD_FAILURE() << "line " << error->line << ": " << error->message;
    return {};
  }
  return std::get<Case>(result);
}

CaseError rejected(const std::string &text) {
  auto result = parse_case(text + "end\n");
  if (auto *error = std::get_if<CaseError>(&result)) return *error;
  ADD_FAILURE() << "accepted: " << text;
  return {};
}

RC_GTEST_PROP(CaseText, ParseInvertsFormat, ()) {
  Case c;
  c.kernel = "paged_attention_v2";
  c.property = "within_budget";
  c.note = "first line\nsecond # line";
  c.problem = decode(*gen_case_bytes(), check_limits());
  auto result = parse_case(format_case(c));
  RC_ASSERT(std::holds_alternative<Case>(result));
  RC_ASSERT(std::get<Case>(result) == c);
  RC_ASSERT(format_case(std::get<Case>(result)) == format_case(c));
}

RC_GTEST_PROP(CaseText, MutilatedTextNeverCrashes, ()) {
  Case c;
  c.problem = decode(*gen_case_bytes(), check_limits());
  std::string text = format_case(c);
  int edits = *rc::gen::inRange(1, 8);
  for (int i = 0; i < edits && !text.empty(); ++i) {
    size_t at = *rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<uint32_t>()) % text.size();
    switch (*rc::gen::inRange(0, 4)) {
    case 0:
      text.erase(at, 7);
      break;
    case 1:
      text[at] = *rc::gen::arbitrary<char>();
      break;
    case 2:
      text.resize(at);
      break;
    case 3:
      text.insert(at, "-99999999999, \n = ,,");
      break;
    }
  }
  auto result = parse_case(text);
  if (auto *good = std::get_if<Case>(&result))
    RC_ASSERT(problem_error(good->problem, device_limits(good->problem.family)) == "");
  else
    RC_ASSERT(std::get<CaseError>(result).message.find('\n') == std::string::npos);
}

// Absent fields have values: only the last line tells a cut case from another one.
RC_GTEST_PROP(CaseText, CutTextIsRefused, ()) {
  Case c;
  c.problem = decode(*gen_case_bytes(), check_limits());
  const std::string text = format_case(c);
  const size_t left = *rc::gen::inRange(size_t{0}, text.size() - 1); // more than the last newline
  auto result = parse_case(std::string_view(text).substr(0, left));
  RC_ASSERT(std::holds_alternative<CaseError>(result));
}

// A file written before the field existed runs as it did: q.seed 0 had the hint, 7 had not.
TEST(CaseText, AnAbsentHintIsTheOneThatFollowedFromTheSeeds) {
  EXPECT_TRUE(parsed("assay-case 1\nfamily = paged\n").problem.even_lengths);
  EXPECT_FALSE(parsed("assay-case 1\nfamily = paged\nq.seed = 7\n").problem.even_lengths);
  EXPECT_FALSE(parsed("assay-case 1\nfamily = paged\neven_lengths = no\n").problem.even_lengths);
  EXPECT_TRUE(parsed("assay-case 1\nfamily = paged\nq.seed = 7\neven_lengths = yes\n")
                  .problem.even_lengths);
  EXPECT_FALSE(parsed("assay-case 1\nfamily = paged\n").problem.enable_pdl);
  EXPECT_TRUE(parsed("assay-case 1\nfamily = paged\nenable_pdl = yes\n").problem.enable_pdl);
}

TEST(CaseText, NothingFollowsTheEnd) {
  EXPECT_EQ(rejected("assay-case 1\nend\nbatch = 2\n").message, "text behind 'end': 'batch = 2'");
  const auto commented =
      parse_case("assay-case 1\nfamily = paged\nend # of the case\n\n# a remark");
  EXPECT_TRUE(std::holds_alternative<Case>(commented));
}

TEST(CaseText, AbsentFieldsAreSimplest) {
  EXPECT_EQ(parsed("assay-case 1\nfamily = paged\neven_lengths = no\n").problem,
            decode({}, full_limits()));
  EXPECT_EQ(
      parsed(
          "# comment\n\nassay-case 1 # version\nfamily = paged\nbatch = 2 # two\nseq_lens = 3, 4\n")
          .problem.seq_lens,
      (std::vector<int>{3, 4}));
}

TEST(CaseText, QueryTokensAreOneANumberForEachRequest) {
  const Problem p =
      parsed("assay-case 1\nfamily = paged\nbatch = 3\nseq_lens = 9, 8, 7\nq_len = 4\n"
             "query_tokens = 4, 0, 2\n")
          .problem;
  EXPECT_EQ(query_rows(p), 6);
  EXPECT_EQ(row_of(p, {2, 1}), 5);
  EXPECT_EQ(query_row(p, 4).request, 2); // request 1 has none
  EXPECT_EQ(query_row(p, 4).token, 0);
  EXPECT_EQ(visible_range(p, 4).end, 6);
  Case c;
  c.problem = p;
  EXPECT_EQ(std::get<Case>(parse_case(format_case(c))).problem, p);
  Problem longer = p;
  longer.query_tokens[1] = 5;
  EXPECT_EQ(problem_error(longer, full_limits()), "query_tokens: 5 is outside 0 .. 4");
  erase_requests(longer, 1, 2);
  EXPECT_EQ(problem_error(longer, full_limits()), "");
}

// Rank 1 of 3 in runs of 2 holds tokens 2, 3, 8, 9, 14.
TEST(CaseText, AShardIsHowManyTokensOfOthersStandBehindItsOwn) {
  const std::string text = "assay-case 1\nfamily = paged\nbatch = 3\nseq_lens = 4, 4, 0\n"
                           "q_len = 2\nwindow_left = 5\nfree\ndcp_world_size = 3\ndcp_rank = 1\n"
                           "dcp_interleave = 2\n";
  const auto with = [&](const std::string &foreign) {
    return std::string(text).replace(text.find("free"), 4, "foreign_tokens = " + foreign);
  };
  const Problem p = parsed(with("0, 9, 2")).problem;
  EXPECT_EQ(global_tokens(p, 0), 10);
  EXPECT_EQ(global_tokens(p, 1), 14); // token 14 is its own
  EXPECT_EQ(global_tokens(p, 2), 2);
  EXPECT_EQ(keys_before(p, 9), 3);
  // Positions 8 and 9 see 3 .. 8 and 4 .. 9.
  EXPECT_EQ(visible_range(p, 0).begin, 1);
  EXPECT_EQ(visible_range(p, 0).end, 3);
  EXPECT_EQ(visible_range(p, 1).begin, 2);
  EXPECT_EQ(key_distance(p, 1, 2), -1);
  EXPECT_EQ(visible_range(p, 5).size(), 0);
  Case c;
  c.problem = p;
  EXPECT_EQ(std::get<Case>(parse_case(format_case(c))).problem, p);
  Problem one = p;
  erase_requests(one, 0, 2);
  EXPECT_EQ(problem_error(one, full_limits()), "");
  EXPECT_EQ(without_features(p).dcp_world_size, 0);
  EXPECT_TRUE(
      std::holds_alternative<CaseError>(parse_case(std::string(text).erase(text.find("free"), 5))));
}

TEST(CaseText, FeaturesAreFieldsOfPagedCases) {
  Problem p = parsed("assay-case 1\nfamily = paged\nseq_lens = 40\nkv_dtype = e4m3\nk_scale = "
                     "head\nq_len = 3\n"
                     "window_left = 15\nlogits_soft_cap = 30\nalibi = standard\nsinks = normal\n")
                  .problem;
  EXPECT_EQ(kv_dtype(p), Dtype::kE4m3);
  EXPECT_EQ(p.k_scale, ScaleLayout::kHead);
  EXPECT_EQ(visible_range(p, 1).begin, 23);
  EXPECT_EQ(visible_range(p, 1).end, 39);
  EXPECT_EQ(softcap(p), 30.0f);
  EXPECT_TRUE(has_features(p));
  // Plain cases read and write as before there were any.
  Case plain;
  plain.problem = decode({}, full_limits());
  EXPECT_EQ(format_case(plain).find("window"), std::string::npos);
  EXPECT_EQ(rejected("assay-case 1\nq_len = 9\n").message, "q_len: 9 is outside 1 .. 8");
  EXPECT_EQ(rejected("assay-case 1\nk_scale = head\n").message,
            "'k_scale' is no field of a paged case");
  EXPECT_EQ(rejected("assay-case 1\nfamily = cascade\nq_len = 2\n").message,
            "'q_len' is no field of a cascade case");
}

TEST(CaseText, ErrorsNameLineFieldAndLimit) {
  CaseError e = rejected("assay-case 1\nfamily = paged\nseq_lens = -4\n");
  EXPECT_EQ(e.line, 3);
  EXPECT_EQ(e.message, "seq_lens: -4 is outside 0 .. 1048576");
  e = rejected("assay-case 1\nhead_dim = 96\n");
  EXPECT_EQ(e.message, "head_dim: '96' is not one of 64, 128, 256");
  e = rejected(
      "assay-case 1\npage_size = 4\nseq_lens = 8\nplacement = explicit\npage_ids = 0, 9\n");
  EXPECT_EQ(e.line, 5);
  EXPECT_EQ(e.message, "page_ids: page 9 is outside the pool of 2 pages");
  e = rejected("assay-case 1\nbatch = 3\nseq_lens = 1, 2\n");
  EXPECT_EQ(e.message, "seq_lens: 2 values, needs 3");
  e = rejected("assay-case 1\ncolour = red\n");
  EXPECT_EQ(e.message, "'colour' is no field of a paged case");
  e = rejected("assay-case 1\nbatch = 1\nbatch = 1\n");
  EXPECT_EQ(e.message, "'batch' is given twice, first on line 2");
  EXPECT_EQ(std::get<CaseError>(parse_case("")).line, 0);
  EXPECT_EQ(rejected("assay-case 1\n").message, "family is missing: which kernels is it for");
  EXPECT_EQ(rejected("assay-case 2\n").line, 1);
  EXPECT_EQ(rejected("assay-case 1\nseq_lens = 1,\n").message,
            "seq_lens: '' is not an integer of 32 bits");
  EXPECT_EQ(rejected(std::string(kMaxCaseBytes + 1, '#')).line, 0);
}

TEST(CaseText, HugeSizesAreRefusedNotAllocated) {
  rejected("assay-case 1\nbatch = 2000000000\n");
  rejected("assay-case 1\nbatch = 256\nnum_kv_heads = 64\nseq_lens = 65536\n");
  CaseError e = rejected("assay-case 1\nseq_lens = 65536\nnum_kv_heads = 64\n");
  EXPECT_EQ(e.message, "seq_lens: the pages hold more than 8192 slots, the limit for these heads");
}

} // namespace
} // namespace assay
