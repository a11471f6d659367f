// SPDX-License-Identifier: Apache-2.0
#include "fuzz/codec_checks.h"

#include <algorithm>

#include "fuzz/byte_reader.h"
#include "properties/case/device_limits.h"

namespace assay::fuzz {
namespace {

Limits limits_of(uint8_t tag) {
  switch (tag / 2 % 4) {
  case 0:
    return fuzz_limits();
  case 1:
    return check_limits();
  case 2:
    return large_limits();
  default:
    return wide_limits();
  }
}

std::string check_text(const CodecUnderTest &codec, const Case &c, const char *what) {
  const std::string text = codec.format(c);
  const auto again = codec.parse(text);
  if (const auto *error = std::get_if<CaseError>(&again))
    return std::string(what) + " is refused as text: " + error->message + "\n" + text;
  if (!(std::get<Case>(again) == c)) return std::string(what) + " changes as text\n" + text;
  if (codec.format(std::get<Case>(again)) != text)
    return std::string(what) + ": text is not a fixed point\n" + text;
  return "";
}

std::string check_bytes(const CodecUnderTest &codec, Input bytes, const Limits &limits) {
  const Problem p = codec.decode(bytes, limits);
  if (std::string e = problem_error(p, limits); !e.empty()) return "decoded case: " + e;
  if (std::string e = problem_error(p, full_limits()); !e.empty())
    return "decoded case beyond the full limits: " + e;
  const Bytes encoded = codec.encode(p, limits);
  const Problem again = codec.decode(encoded, limits);
  if (!(again == p)) return "decode(encode(p)) is not p";
  if (codec.encode(again, limits) != encoded) return "encode is not a function of the case";
  Bytes longer = encoded; // trailing bytes mean nothing
  longer.push_back(0xff);
  if (!(codec.decode(longer, limits) == p)) return "a trailing byte changes the case";
  Case c;
  c.problem = p;
  return check_text(codec, c, "a decoded case");
}

std::string check_error(const CaseError &error, std::string_view text) {
  const auto lines = 1 + std::count(text.begin(), text.end(), '\n');
  if (error.message.empty()) return "an error without a message";
  if (error.line < 0 || error.line > lines) return "an error on a line that does not exist";
  for (char c : error.message)
    if (c < ' ' || c > '~') return "control characters in the message of an error";
  return "";
}

std::string check_raw_text(const CodecUnderTest &codec, std::string_view text) {
  const auto parsed = codec.parse(text);
  if (const auto *error = std::get_if<CaseError>(&parsed)) return check_error(*error, text);
  const Case &c = std::get<Case>(parsed);
  if (std::string e = problem_error(c.problem, device_limits(c.problem.family)); !e.empty())
    return "the parser let through: " + e;
  return check_text(codec, c, "a parsed case");
}

} // namespace

std::string check_codec_with(const CodecUnderTest &codec, Input input) {
  ByteReader in(input);
  const uint8_t tag = in.byte();
  const Input rest = in.rest();
  if (tag % 2 == 0) return check_bytes(codec, rest, limits_of(tag));
  return check_raw_text(codec, {reinterpret_cast<const char *>(rest.data()), rest.size()});
}

} // namespace assay::fuzz
