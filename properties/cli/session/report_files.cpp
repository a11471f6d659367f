// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/session/report_files.h"

#include <filesystem>
#include <fstream>
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay {

ReportFiles::ReportFiles(const Session &session, const ReportPaths &paths, const Renders &renders)
    : session_(session) {
  for (const File &file : {File{"--junit", paths.junit, renders.junit},
                           {"--sarif", paths.sarif, renders.sarif},
                           {"--markdown", paths.markdown, renders.markdown},
                           {"--html", paths.html, renders.html}}) {
    if (file.path.empty()) continue;
    if (file.path == "-")
      throw CliError(kExitUsage,
                     fmt::format("{} -: takes a file; only --json takes -", file.option));
    const auto twice = [&](const std::string &other) {
      return std::filesystem::path(other).lexically_normal() ==
             std::filesystem::path(file.path).lexically_normal();
    };
    if (twice(session.options.json))
      throw CliError(kExitUsage,
                     fmt::format("{} {}: is the file of --json", file.option, file.path));
    for (const File &other : files_)
      if (twice(other.path))
        throw CliError(kExitUsage, fmt::format("{} {}: is the file of {}", file.option, file.path,
                                               other.option));
    require_writable_file(file.option, file.path);
    files_.push_back(file);
  }
  std::error_code ignored;
  for (const File &file : files_)
    if (std::filesystem::is_regular_file(file.path, ignored))
      std::filesystem::remove(file.path, ignored);
}

int ReportFiles::write(const nlohmann::json &document, int exit) const {
  if (files_.empty()) return exit;
  // Bytes that are not UTF-8 become U+FFFD once, for every format.
  const nlohmann::json clean = nlohmann::json::parse(
      document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  for (const File &file : files_) {
    std::ofstream out(file.path, std::ios::binary);
    out << file.render(clean);
    if (out.flush()) continue;
    session_.streams.err << fmt::format("assay: {} {}: cannot write\n", file.option, file.path);
    if (exit == kExitPass) exit = kExitHarness;
  }
  return exit;
}

} // namespace assay
