// SPDX-License-Identifier: Apache-2.0
// Tensors of others are read by the Python package, which knows .npz and what engines write;
// `assay` as that package installs it has the command.

#include "properties/cli/commands/commands.h"
namespace assay {

int command_judge(Session &, const JudgeOptions &) {
  throw CliError(kExitUsage, "judge is a command of the Python package: python3 -m assay judge "
                             "FILE... (pip install . at the root of assay's tree)");
}

} // namespace assay
