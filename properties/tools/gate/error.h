// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace assay::gate {

/// One line for a terminal: keys of files and words of compilers may hold anything.
inline std::string printable(std::string line) {
  for (char &c : line)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  return line;
}

/// Ends a gate without a verdict, with one line and an exit code of the program.
struct GateError : std::runtime_error {
  GateError(int code, const std::string &line) : std::runtime_error(printable(line)), code(code) {}
  int code;
};

/// As in properties/cli/session/streams.h.
inline constexpr int kPass = 0, kFinding = 1, kUsage = 2, kUnsupported = 3, kHarness = 4;

} // namespace assay::gate
