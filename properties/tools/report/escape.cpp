// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/report/escape.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace assay::report {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd"; // U+FFFD

/// Bytes from `at` on that are not shown: control characters, U+FFFE and U+FFFF, which XML cannot
/// hold, and the marks that turn the direction of what follows (U+202A to U+202E, U+2066 to
/// U+2069): a reader would see another message.
size_t hidden_at(std::string_view text, size_t at) {
  const auto c = static_cast<unsigned char>(text[at]);
  if (c < 0x20) return c == '\n' || c == '\t' ? 0 : 1;
  if (c == 0x7f) return 1;
  const std::string_view three = text.substr(at, 3);
  const bool turns = (three >= "\xe2\x80\xaa" && three <= "\xe2\x80\xae") ||
                     (three >= "\xe2\x81\xa6" && three <= "\xe2\x81\xa9");
  return turns || three == "\xef\xbf\xbe" || three == "\xef\xbf\xbf" ? 3 : 0;
}

size_t longest_run(std::string_view text, char c) {
  size_t longest = 0, run = 0;
  for (char x : text) {
    run = x == c ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

} // namespace

std::string markup(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (const size_t bytes = hidden_at(text, i); bytes > 0) {
      out += kReplacement;
      i += bytes - 1;
      continue;
    }
    switch (text[i]) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      out += text[i];
    }
  }
  return out;
}

std::string code_span(std::string_view text) {
  std::string out = "`";
  for (char c : text) {
    if (c == '|') out += '\\'; // it ends a cell; GitHub removes the backslash in the span
    out += c == '`' ? '\'' : static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return text.empty() ? "" : out + "`";
}

std::string code_block(std::string_view text) {
  const std::string fence(std::max<size_t>(3, longest_run(text, '`') + 1), '`');
  const std::string end = text.ends_with('\n') ? "" : "\n";
  return fmt::format("{}\n{}{}{}\n", fence, text, end, fence);
}

std::string file_uri(std::string_view path) {
  std::string out = path.starts_with('/') ? "file://" : "";
  for (char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = std::isalnum(byte) != 0 || std::string_view("-._~/").find(c) != path.npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

} // namespace assay::report
