// SPDX-License-Identifier: Apache-2.0
// What is wrong with a command line, in words about the command that was meant.
#pragma once

#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace assay {

/// One line, without "assay: ".
std::string words_of(const CLI::ParseError &error, const CLI::App &app);

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
