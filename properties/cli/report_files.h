// SPDX-License-Identifier: Apache-2.0
// The files of --junit, --sarif, --markdown and --html.
#pragma once

#include "properties/cli/session.h"

namespace assay {

class ReportFiles {
public:
  /// Throws CliError for a file that cannot be written or is given twice: before the work. Reports
  /// of an earlier run are removed, so that none is taken for one of this.
  explicit ReportFiles(const Session &session);

  /// Writes each from the document of --json. Returns `exit`; kExitHarness for a pass that could
  /// not be written down.
  int write(const nlohmann::json &document, int exit) const;

private:
  struct File {
    const char *option;
    std::string path;
    std::string (*render)(const nlohmann::json &document);
  };
  const Session &session_;
  std::vector<File> files_;
};

} // namespace assay
