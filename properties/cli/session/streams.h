// SPDX-License-Identifier: Apache-2.0
// Where a command writes, and how it ends.
#pragma once

#include <iosfwd>
#include <stdexcept>
#include <string>

namespace assay {

/// Exit codes of the program; stable.
enum ExitCode {
  kExitPass = 0,
  kExitFinding = 1,
  kExitUsage = 2,       ///< command line or .case file
  kExitUnsupported = 3, ///< nothing here can run it
  kExitHarness = 4      ///< the harness itself failed, could not decide, or proved nothing
};

/// Ends a command with one line and an exit code.
struct CliError : std::runtime_error {
  CliError(ExitCode code, const std::string &line) : std::runtime_error(line), code(code) {}
  ExitCode code;
};

struct CliStreams {
  std::ostream &out;
  std::ostream &err;
  bool terminal;             ///< of `out`: progress and colours
  bool err_terminal = false; ///< of `err`, which takes the text when --json - takes `out`
};

} // namespace assay
