// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/session/own_program.h"

#include <filesystem>

#include "properties/cli/session/streams.h"

namespace assay {

std::string own_program() {
  std::error_code ec;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", ec);
  if (ec) throw CliError(kExitHarness, "/proc/self/exe cannot be read");
  return path.string();
}

} // namespace assay
