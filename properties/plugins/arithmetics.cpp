// SPDX-License-Identifier: Apache-2.0
#include "properties/plugins/arithmetics.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/plugins/embedded.h"

namespace assay::plugins {
namespace {

// Fields stand in the files as in the struct, and initialisers have to.
using Json = nlohmann::ordered_json;

constexpr std::string_view kFolder = "arithmetics/", kEnd = ".json";

std::string name_of(const EmbeddedFile &file) {
  if (file.path.substr(0, kFolder.size()) != kFolder) return "";
  return std::string(
      file.path.substr(kFolder.size(), file.path.size() - kFolder.size() - kEnd.size()));
}

Json arithmetic(const std::string &name) {
  for (size_t i = 0; i < kEmbeddedCount; ++i)
    if (!name.empty() && name_of(kEmbedded[i]) == name) return Json::parse(kEmbedded[i].text);
  throw std::invalid_argument(
      fmt::format("'{}' is none of {}", name, fmt::join(arithmetic_names(), ", ")));
}

/// "base2" of exponential as the header has it: ASSAY_EXP_BASE2.
std::string constant(const std::string &field, const std::string &word) {
  std::string out = field == "exponential"   ? "ASSAY_EXP_"
                    : field == "accumulator" ? "ASSAY_ACCUMULATOR_"
                                             : "ASSAY_FORMAT_";
  for (const char c : word)
    out += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

/// "0x1p-22" of a power of two, else as many digits as tell it from others.
std::string number(double value) {
  int exponent = 0;
  if (std::frexp(value, &exponent) == 0.5) return fmt::format("0x1p{}", exponent - 1);
  return fmt::format("{}", value);
}

std::string value_of(const std::string &field, const Json &value) {
  if (value.is_string()) return constant(field, value.get<std::string>());
  return value.is_number_float() ? number(value.get<double>()) : value.dump();
}

/// Lines of a comment, 100 columns wide at most.
std::string comment(const std::string &indent, const std::string &text) {
  std::string out, line;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && indent.size() + 4 + line.size() + word.size() > 100) {
      out += indent + "// " + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return out + indent + "// " + line + "\n";
}

std::string in_cpp(const std::string &name) {
  const Json from = arithmetic(name);
  std::string out = "constexpr assay_arithmetic kArithmetic = {\n";
  out += comment("    ", fmt::format("As {} ({} {}) has it: a start. What usually differs is "
                                     "tile_tokens, sum_depth and max_splits.",
                                     name, from["kernel"].get<std::string>(),
                                     from["version"].get<std::string>()));
  for (const auto &[field, entry] : from["fields"].items())
    out += comment("    ", entry["source"].get<std::string>()) +
           fmt::format("    .{} = {},\n", field, value_of(field, entry["value"]));
  return out + "};\n";
}

std::string in_python(const std::string &name) {
  arithmetic(name);
  return "# A start; dataclasses.replace(DECLARATION, tile_tokens=64) changes a field. What "
         "usually differs is\n"
         "# tile_tokens, sum_depth and max_splits.\n"
         "DECLARATION = assay.Declaration.like(\"" +
         name + "\")\n";
}

} // namespace

std::vector<std::string> arithmetic_names() {
  std::vector<std::string> out;
  for (size_t i = 0; i < kEmbeddedCount; ++i)
    if (std::string name = name_of(kEmbedded[i]); !name.empty()) out.push_back(std::move(name));
  std::sort(out.begin(), out.end());
  return out;
}

std::string with_arithmetic(const std::string &text, Language language, const std::string &name) {
  const bool python = language == Language::kPython;
  const std::string_view first = python ? "DECLARATION = assay.Declaration(\n"
                                        : "constexpr assay_arithmetic kArithmetic = {\n";
  const std::string_view last = python ? "\n)\n" : "\n};\n";
  const size_t begin = text.find(first);
  if (begin == std::string::npos) return text; // a file without a declaration
  const size_t end = text.find(last, begin) + last.size();
  return text.substr(0, begin) + (python ? in_python(name) : in_cpp(name)) + text.substr(end);
}

} // namespace assay::plugins
