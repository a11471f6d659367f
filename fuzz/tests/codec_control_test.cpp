// SPDX-License-Identifier: Apache-2.0
// Positive controls of fuzz_codec: each broken function must be caught by the seed corpus.
#include "fuzz/codec_checks.h"

#include <gtest/gtest.h>

#include "fuzz/tests/seeds.h"

namespace assay::fuzz {
namespace {

std::string run(const CodecUnderTest &codec) {
  return first_violation("fuzz_codec", [&](Input input) { return check_codec_with(codec, input); });
}

TEST(CodecControl, the_codec_passes) { EXPECT_EQ(run({}), ""); }

TEST(CodecControl, decode_out_of_limits) {
  CodecUnderTest codec;
  codec.decode = [](std::span<const uint8_t> bytes, const Limits &limits) {
    Problem p = decode(bytes, limits);
    p.group_size += 1000;
    return p;
  };
  EXPECT_NE(run(codec), "");
}

TEST(CodecControl, encode_loses_a_byte) {
  CodecUnderTest codec;
  codec.encode = [](const Problem &p, const Limits &limits) {
    Bytes bytes = encode(p, limits);
    bytes.resize(bytes.size() / 2);
    return bytes;
  };
  EXPECT_NE(run(codec), "");
}

TEST(CodecControl, text_loses_a_field) {
  CodecUnderTest codec;
  codec.format = [](const Case &c) {
    Case copy = c;
    copy.problem.q.seed = 0;
    copy.problem.schedule.seed = 0;
    copy.problem.poison = Poison::kNan;
    return format_case(copy);
  };
  EXPECT_NE(run(codec), "");
}

TEST(CodecControl, parser_accepts_anything_after_the_header) {
  CodecUnderTest codec;
  codec.parse = [](std::string_view text) {
    auto parsed = parse_case(text);
    if (std::holds_alternative<CaseError>(parsed)) parsed = Case{};
    std::get<Case>(parsed).problem.seq_lens = {-1};
    return parsed;
  };
  EXPECT_NE(run(codec), "");
}

TEST(CodecControl, error_repeats_raw_bytes) {
  CodecUnderTest codec;
  codec.parse = [](std::string_view text) {
    auto parsed = parse_case(text);
    if (auto *error = std::get_if<CaseError>(&parsed)) error->message += text;
    return parsed;
  };
  EXPECT_NE(run(codec), "");
}

TEST(CodecControl, error_line_counts_from_the_end) {
  CodecUnderTest codec;
  codec.parse = [](std::string_view text) {
    auto parsed = parse_case(text);
    if (auto *error = std::get_if<CaseError>(&parsed)) error->line = -error->line - 1;
    return parsed;
  };
  EXPECT_NE(run(codec), "");
}

} // namespace
} // namespace assay::fuzz
