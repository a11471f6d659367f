// SPDX-License-Identifier: Apache-2.0
// What the words of a command line may be.
#pragma once

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay {

/// A seed as it is written, not as it wraps around.
struct SeedText : CLI::Validator {
  SeedText() : CLI::Validator("") {
    func_ = [](std::string &text) -> std::string {
      uint64_t value = 0;
      auto [at, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (ec == std::errc() && at == text.data() + text.size()) return "";
      return "'" + text + "' is not an integer in 0 .. 18446744073709551615";
    };
  }
};

/// An unset shell variable must not mean "everything" or "nowhere".
struct NotEmpty : CLI::Validator {
  NotEmpty() : CLI::Validator("") {
    func_ = [](std::string &text) -> std::string { return text.empty() ? "is empty" : ""; };
  }
};

struct OneOf : CLI::Validator {
  explicit OneOf(std::vector<std::string> words) : CLI::Validator("") {
    func_ = [words](std::string &text) -> std::string {
      if (std::find(words.begin(), words.end(), text) != words.end()) return "";
      return fmt::format("'{}' is none of {}", text, fmt::join(words, ", "));
    };
  }
};

/// A number as it is written, and inside.
template <class T>
CLI::Validator in_range(T low, T high) {
  return CLI::Validator(
      [low, high](std::string &text) -> std::string {
        T value{};
        if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high) return "";
        return fmt::format("'{}' is not a {} in {} .. {}", text,
                           std::is_integral_v<T> ? "whole number" : "number", low, high);
      },
      "");
}

} // namespace assay
