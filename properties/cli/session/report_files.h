// SPDX-License-Identifier: Apache-2.0
// The files of --junit, --sarif, --markdown and --html.
#pragma once

#include "properties/cli/session/session.h"

namespace assay {

/// Those that were asked for.
struct ReportPaths {
  std::string junit, sarif, markdown, html;
};

class ReportFiles {
public:
  using Render = std::string (*)(const nlohmann::json &document);
  struct Renders {
    Render junit, sarif, markdown, html;
  };

  /// Throws CliError for a file that cannot be written or is given twice: before the work. Reports
  /// of an earlier run are removed, so that none is taken for one of this.
  ReportFiles(const Session &session, const ReportPaths &paths, const Renders &renders);

  /// Writes each from the document of --json. Returns `exit`; kExitHarness for a pass that could
  /// not be written down.
  int write(const nlohmann::json &document, int exit) const;

private:
  struct File {
    const char *option;
    std::string path;
    Render render;
  };
  const Session &session_;
  std::vector<File> files_;
};

} // namespace assay
