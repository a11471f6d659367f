// SPDX-License-Identifier: Apache-2.0
#include "properties/report/escape.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace assay::report {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd"; // U+FFFD

/// Characters of XML 1.0: no other control characters, no U+FFFE, no U+FFFF.
bool in_xml(std::string_view text, size_t at) {
  const auto c = static_cast<unsigned char>(text[at]);
  if (c < 0x20) return c == '\n' || c == '\t';
  const std::string_view three = text.substr(at, 3);
  return c != 0x7f && three != "\xef\xbf\xbe" && three != "\xef\xbf\xbf";
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
    if (!in_xml(text, i)) {
      out += kReplacement;
      if (static_cast<unsigned char>(text[i]) == 0xef) i += 2;
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
    if (c == '|') out += '\\'; // of a table; GitHub takes it back inside the span
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
