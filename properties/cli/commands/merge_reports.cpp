// SPDX-License-Identifier: Apache-2.0
// `assay merge-reports`: the documents of shards as that of one run.
#include <filesystem>
#include <fstream>
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/cli/commands/commands.h"
#include "properties/tools/report/document.h"
#include "properties/tools/report/html.h"
#include "properties/tools/report/junit.h"
#include "properties/tools/report/markdown.h"
#include "properties/tools/report/merge.h"
#include "properties/tools/report/sarif.h"

namespace assay {
namespace {

/// The size of a report; a larger file is none.
constexpr uintmax_t kMaxBytes = uintmax_t{1} << 28;
constexpr int kMaxDepth = 32;

nlohmann::json read(const std::string &path) {
  std::error_code ec;
  if (!std::filesystem::is_regular_file(path, ec))
    throw CliError(kExitUsage, path + ": cannot read");
  if (std::filesystem::file_size(path, ec) > kMaxBytes || ec)
    throw CliError(kExitUsage, path + ": larger than any report");
  bool deep = false;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json &) {
    deep = deep || depth > kMaxDepth;
    return depth <= kMaxDepth;
  };
  std::ifstream file(path, std::ios::binary);
  nlohmann::json document = nlohmann::json::parse(file, watch, false);
  if (document.is_discarded() || deep || !document.is_object())
    throw CliError(kExitUsage, path + ": no document of 'assay check --json'");
  return document;
}

/// A file of the run must not be lost to its own result.
void require_other_files(const std::string &json, const MergeOptions &o) {
  const ReportPaths &r = o.reports;
  for (const std::string &out : {json, r.junit, r.sarif, r.markdown, r.html})
    for (const std::string &in : o.files) {
      std::error_code ec;
      if (!out.empty() && std::filesystem::equivalent(in, out, ec))
        throw CliError(kExitUsage, fmt::format("{}: is read and written", in));
    }
}

void print(const Session &session, const nlohmann::json &document) {
  std::ostream &out = session.streams.out;
  for (const nlohmann::json &group : document.at("groups")) {
    const nlohmann::json &found = report::sharpest(document, group);
    out << fmt::format("{} {} {}: {}\n", session.red("FINDING"), report::text_of(found, "kernel"),
                       report::text_of(found, "property"), report::text_of(found, "message"));
    if (const std::string line = report::text_of(found, "reproduce"); !line.empty())
      out << fmt::format("  reproduce: {}\n", line);
  }
  for (const auto &kept : report::kept_troubles(document))
    out << fmt::format("{} {} {}: {}\n", session.red("FINDING"), kept.file, kept.kernel,
                       kept.message);
  for (const report::Gap &gap : report::gaps(document))
    out << fmt::format("{} {}{}{}: {}\n", session.red("INCOMPLETE"), gap.kernel,
                       gap.property.empty() ? "" : " ", gap.property, gap.text);
  if (session.options.quiet) return;
  const bool pass = document.at("exit") == int{kExitPass};
  const std::string verdict = pass ? session.green("pass") : session.red("FAIL");
  out << fmt::format("{}: {}, {} reports\n", verdict, report::summary_line(document),
                     document.at("merged").size());
}

} // namespace

int command_merge_reports(Session &session, const MergeOptions &o) {
  require_other_files(session.options.json, o);
  std::vector<report::Shard> shards;
  for (const std::string &path : o.files)
    shards.push_back({path, read(path)});
  nlohmann::json document;
  try {
    document = report::merged(shards);
  } catch (const report::BadReport &e) {
    throw CliError(kExitUsage, e.what());
  }
  const ReportFiles reports(session, o.reports,
                            {report::junit, report::sarif, report::markdown, report::html});
  print(session, document);
  document["exit"] = reports.write(document, document.at("exit").get<int>());
  return session.finish(document, document.at("exit").get<int>());
}

} // namespace assay
