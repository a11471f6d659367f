// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/gate/revision.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/tools/gate/error.h"
#include "properties/tools/process/process.h"

namespace assay::gate {
namespace {

namespace fs = std::filesystem;

constexpr int kReplays = 3, kLate = 124;
/// A call in a process of its own may take 60 s before it counts as one that hangs.
constexpr double kReplaySeconds = 180, kSlowReplay = 30;

std::vector<std::string> source_of(const Revision &revision) {
  std::vector<std::string> out;
  if (!revision.plugin.empty()) out = {"--plugin", revision.plugin};
  if (!revision.worker.empty()) out = {"--worker", revision.worker};
  return out;
}

/// Options that check and replay share.
std::vector<std::string> selection_of(const Revision &revision) {
  std::vector<std::string> out = source_of(revision);
  out.insert(out.end(), {"--target", revision.target});
  if (!revision.declaration.empty()) out.insert(out.end(), {"--declared-by", revision.declaration});
  if (!revision.assumed.empty()) out.insert(out.end(), {"--assume", revision.assumed});
  return out;
}

void append(std::vector<std::string> &to, const std::vector<std::string> &more) {
  to.insert(to.end(), more.begin(), more.end());
}

process::Ended start(const Revision &revision, const std::vector<std::string> &words,
                     const Progress &progress, double seconds = 0) {
  if (revision.build) revision.build();
  // In its own folder: `check` replays and writes ./findings.
  return process::run({.words = words,
                       .folder = revision.folder,
                       .log = revision.folder + "/log",
                       .seconds = seconds,
                       .waiting = progress.waiting});
}

json read(const std::string &path) {
  std::ifstream file(path);
  return json::parse(file, nullptr, false);
}

bool is_whole(const json &report) { return report.is_object() && report.value("complete", false); }

/// The report as an earlier gate kept it; discarded where there is none.
json kept_report(const Revision &revision, const std::string &name) {
  return revision.kept_reports.empty() ? json(json::value_t::discarded)
                                       : read(revision.kept_reports + "/" + name);
}

/// Whole or not at all: a gate may be interrupted.
void keep_report(const Revision &revision, const std::string &name, const json &report) {
  if (revision.kept_reports.empty()) return;
  std::error_code ignored;
  fs::create_directories(revision.kept_reports, ignored);
  const std::string path = revision.kept_reports + "/" + name;
  std::ofstream(path + ".part") << report.dump();
  fs::rename(path + ".part", path, ignored);
}

int code_of(const process::Ended &ended) {
  return ended.code == kUsage || ended.code == kUnsupported ? ended.code : kHarness;
}

/// The first result that failed.
void count_failure(const json &document, const std::string &fingerprint, Replays &out) {
  for (const json &result : document.at("results")) {
    if (!result.contains("fingerprint") && result.at("verdict") != "FAIL") continue;
    ++out.fails;
    out.alike += fingerprint.empty() || result.value("fingerprint", fingerprint) == fingerprint;
    out.message = result.at("message");
    return;
  }
}

[[noreturn]] void fail(const Revision &revision, const char *what, const process::Ended &ended) {
  const std::string said = process::last_line(ended.err.empty() ? ended.out : ended.err);
  throw GateError(code_of(ended), fmt::format("{}: assay {} ended with {}: {}", revision.name, what,
                                              ended.code, said.empty() ? "no word" : said));
}

} // namespace

std::string shell_quoted(const std::string &text) {
  std::string out = "'";
  for (const char c : text)
    out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

json list_kernels(const Revision &revision, const Progress &progress) {
  if (json kept = kept_report(revision, "list.json"); kept.is_object()) return kept;
  const std::string file = revision.folder + "/list.json";
  std::vector<std::string> words = {revision.program, "list", "kernels", "--json", file};
  append(words, source_of(revision));
  const process::Ended ended = start(revision, words, progress);
  json out = read(file);
  if (!ended.ok() || out.is_discarded()) fail(revision, "list", ended);
  keep_report(revision, "list.json", out);
  return out;
}

json check(const Revision &revision, const CheckOrder &order, const Progress &progress) {
  const std::string name = fmt::format("{}-{}-{}{}.json", order.kernel, order.cases, order.seed,
                                       revision.assumed.empty() ? "" : "-" + revision.assumed);
  if (json kept = kept_report(revision, name); is_whole(kept)) return kept;
  const std::string stem = fmt::format("{}/{}-{}", revision.folder, order.round, order.kernel);
  std::vector<std::string> words = {revision.program, "check",
                                    "--json",         stem + ".json",
                                    "--quiet",        "--isolate",
                                    "--cases",        std::to_string(order.cases),
                                    "--seed",         std::to_string(order.seed),
                                    "--kernel",       order.kernel,
                                    "--out",          stem + "-findings"};
  append(words, selection_of(revision));
  if (!revision.findings.empty() && fs::is_directory(revision.findings))
    append(words, {"--findings", revision.findings});
  const process::Ended ended = start(revision, words, progress, order.seconds);
  json out = read(stem + ".json");
  if (!is_whole(out)) fail(revision, "check", ended);
  if (out.value("exit", kHarness) == kPass) keep_report(revision, name, out);
  return out;
}

Replays replay(const Revision &revision, const std::string &file, const std::string &fingerprint,
               const Progress &progress) {
  Replays out;
  const std::string report = revision.folder + "/replay.json";
  const auto start_of_all = std::chrono::steady_clock::now();
  while (out.runs < kReplays) {
    std::error_code ignored;
    fs::remove(report, ignored);
    std::vector<std::string> words = {revision.program, "replay", file,
                                      "--json",         report,   "--quiet"};
    append(words, selection_of(revision));
    const process::Ended ended = start(revision, words, progress, kReplaySeconds);
    const json document = read(report);
    const bool died = ended.code >= 128 || ended.code == kLate;
    // Our own kernels run in the program: one that takes it along, or never ends, has failed.
    if (document.is_discarded() && !(died && revision.has_own_kernels())) break;
    ++out.runs;
    if (document.is_discarded()) {
      ++out.fails, ++out.alike;
      out.message = "takes its process along, or does not end";
    } else {
      count_failure(document, fingerprint, out);
    }
    // One that hangs does so again.
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_of_all;
    if (spent.count() > kSlowReplay) break;
  }
  return out;
}

std::string replay_line(const Revision &revision, const std::string &file) {
  std::string out = (revision.program_shown.empty() ? revision.program : revision.program_shown) +
                    " replay " + file;
  if (!revision.plugin.empty())
    out += " --plugin " + (revision.plugin_shown.empty() ? revision.plugin : revision.plugin_shown);
  if (!revision.worker.empty()) out += " --worker " + shell_quoted(revision.worker_shown);
  if (revision.target != "simt") out += " --target " + revision.target;
  if (!revision.declaration.empty()) out += " --declared-by " + revision.declaration;
  if (!revision.assumed.empty()) out += " --assume " + revision.assumed;
  return out;
}

} // namespace assay::gate
