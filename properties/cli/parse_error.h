// SPDX-License-Identifier: Apache-2.0
// What is wrong with a command line, in words about the command that was meant.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace assay {

/// One line, without "assay: ".
std::string words_of(const CLI::ParseError &error, const CLI::App &app);

} // namespace assay
