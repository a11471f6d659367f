// SPDX-License-Identifier: Apache-2.0
#include "properties/gate/side.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/gate/error.h"
#include "properties/process/process.h"

namespace assay::gate {
namespace {

namespace fs = std::filesystem;

constexpr int kReplays = 3, kLate = 124;
/// A call in a process of its own may take 60 s before it counts as one that hangs.
constexpr double kReplaySeconds = 180, kSlowReplay = 30;

std::vector<std::string> source_of(const Side &side) {
  std::vector<std::string> out;
  if (!side.plugin.empty()) out = {"--plugin", side.plugin};
  if (!side.worker.empty()) out = {"--worker", side.worker};
  return out;
}

/// Options that check and replay share.
std::vector<std::string> selection_of(const Side &side) {
  std::vector<std::string> out = source_of(side);
  out.insert(out.end(), {"--target", side.target});
  if (!side.declaration.empty()) out.insert(out.end(), {"--declared-by", side.declaration});
  return out;
}

void append(std::vector<std::string> &to, const std::vector<std::string> &more) {
  to.insert(to.end(), more.begin(), more.end());
}

process::Ended start(const Side &side, const std::vector<std::string> &words, const Talk &talk,
                     double seconds = 0) {
  if (side.build) side.build();
  // In its own folder: `check` replays and writes ./findings.
  return process::run({.words = words,
                       .folder = side.folder,
                       .environment = {},
                       .log = side.folder + "/log",
                       .seconds = seconds,
                       .waiting = talk.waiting});
}

json read(const std::string &path) {
  std::ifstream file(path);
  return json::parse(file, nullptr, false);
}

bool is_whole(const json &report) { return report.is_object() && report.value("complete", false); }

/// The report as an earlier gate kept it; discarded where there is none.
json kept_report(const Side &side, const std::string &name) {
  return side.kept_reports.empty() ? json(json::value_t::discarded)
                                   : read(side.kept_reports + "/" + name);
}

/// Whole or not at all: a gate may be interrupted.
void keep_report(const Side &side, const std::string &name, const json &report) {
  if (side.kept_reports.empty()) return;
  std::error_code ignored;
  fs::create_directories(side.kept_reports, ignored);
  const std::string path = side.kept_reports + "/" + name;
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

[[noreturn]] void fail(const Side &side, const char *what, const process::Ended &ended) {
  const std::string said = process::last_line(ended.err.empty() ? ended.out : ended.err);
  throw GateError(code_of(ended), fmt::format("{}: assay {} ended with {}: {}", side.name, what,
                                              ended.code, said.empty() ? "no word" : said));
}

} // namespace

std::string shell_quoted(const std::string &text) {
  std::string out = "'";
  for (const char c : text)
    out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

json list_kernels(const Side &side, const Talk &talk) {
  if (json kept = kept_report(side, "list.json"); kept.is_object()) return kept;
  const std::string file = side.folder + "/list.json";
  std::vector<std::string> words = {side.program, "list", "kernels", "--json", file};
  append(words, source_of(side));
  const process::Ended ended = start(side, words, talk);
  json out = read(file);
  if (!ended.ok() || out.is_discarded()) fail(side, "list", ended);
  keep_report(side, "list.json", out);
  return out;
}

json check(const Side &side, const CheckOrder &order, const Talk &talk) {
  const std::string name = fmt::format("{}-{}-{}.json", order.kernel, order.cases, order.seed);
  if (json kept = kept_report(side, name); is_whole(kept)) return kept;
  const std::string stem = fmt::format("{}/{}-{}", side.folder, order.round, order.kernel);
  std::vector<std::string> words = {side.program, "check",
                                    "--json",     stem + ".json",
                                    "--quiet",    "--isolate",
                                    "--cases",    std::to_string(order.cases),
                                    "--seed",     std::to_string(order.seed),
                                    "--kernel",   order.kernel,
                                    "--out",      stem + "-findings"};
  append(words, selection_of(side));
  if (!side.findings.empty() && fs::is_directory(side.findings))
    append(words, {"--findings", side.findings});
  const process::Ended ended = start(side, words, talk, order.seconds);
  json out = read(stem + ".json");
  if (!is_whole(out)) fail(side, "check", ended);
  if (out.value("exit", kHarness) == kPass) keep_report(side, name, out);
  return out;
}

Replays replay(const Side &side, const std::string &file, const std::string &fingerprint,
               const Talk &talk) {
  Replays out;
  const std::string report = side.folder + "/replay.json";
  const auto start_of_all = std::chrono::steady_clock::now();
  while (out.runs < kReplays) {
    std::error_code ignored;
    fs::remove(report, ignored);
    std::vector<std::string> words = {side.program, "replay", file, "--json", report, "--quiet"};
    append(words, selection_of(side));
    const process::Ended ended = start(side, words, talk, kReplaySeconds);
    const json document = read(report);
    const bool died = ended.code >= 128 || ended.code == kLate;
    // Our own kernels run in the program: one that takes it along, or never ends, has failed.
    if (document.is_discarded() && !(died && side.has_own_kernels())) break;
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

std::string replay_line(const Side &side, const std::string &file) {
  std::string out =
      (side.program_shown.empty() ? side.program : side.program_shown) + " replay " + file;
  if (!side.plugin.empty())
    out += " --plugin " + (side.plugin_shown.empty() ? side.plugin : side.plugin_shown);
  if (!side.worker.empty()) out += " --worker " + shell_quoted(side.worker_shown);
  if (side.target != "simt") out += " --target " + side.target;
  if (!side.declaration.empty()) out += " --declared-by " + side.declaration;
  return out;
}

} // namespace assay::gate
