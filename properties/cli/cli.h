// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include "kernels/abi/plugin.h"

namespace assay {

/// Exit codes of the program; stable.
enum ExitCode {
  kExitPass = 0,
  kExitFinding = 1,
  kExitUsage = 2,       ///< command line or .case file
  kExitUnsupported = 3, ///< nothing here can run it
  kExitHarness = 4      ///< the harness itself failed, could not decide, or proved nothing
};

struct CliStreams {
  std::ostream &out;
  std::ostream &err;
  bool terminal;             ///< of `out`: progress and colours
  bool err_terminal = false; ///< of `err`, which takes the text when --json - takes `out`
};

/// The program `assay` over the kernels of `own`. Never throws. `commit`: what --version names.
int run_cli(int argc, const char *const *argv, const assay_plugin &own, const CliStreams &streams,
            const char *commit = "unknown");

} // namespace assay
