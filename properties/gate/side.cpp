// SPDX-License-Identifier: Apache-2.0
#include "properties/gate/side.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "properties/gate/error.h"
#include "properties/gate/process.h"

namespace assay::gate {
namespace {

namespace fs = std::filesystem;

constexpr int kReplays = 3;

std::vector<std::string> source_of(const Side &side) {
  std::vector<std::string> out;
  if (!side.plugin.empty()) out = {"--plugin", side.plugin};
  return out;
}

/// Options that check and replay share.
std::vector<std::string> selection_of(const Side &side) {
  std::vector<std::string> out = source_of(side);
  out.insert(out.end(), {"--target", side.target});
  if (!side.declaration.empty()) out.insert(out.end(), {"--declaration", side.declaration});
  return out;
}

void append(std::vector<std::string> &to, const std::vector<std::string> &more) {
  to.insert(to.end(), more.begin(), more.end());
}

Ended start(const Side &side, const std::vector<std::string> &words, const Talk &talk,
            double seconds = 0) {
  // In its own folder: `check` replays and writes ./findings.
  return run({.words = words,
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

int code_of(const Ended &ended) {
  return ended.code == kUsage || ended.code == kUnsupported ? ended.code : kHarness;
}

[[noreturn]] void fail(const Side &side, const char *what, const Ended &ended) {
  const std::string said = last_line(ended.err.empty() ? ended.out : ended.err);
  throw GateError(code_of(ended), fmt::format("{}: assay {} ended with {}: {}", side.name, what,
                                              ended.code, said.empty() ? "no word" : said));
}

} // namespace

json list_kernels(const Side &side, const Talk &talk) {
  const std::string file = side.folder + "/list.json";
  std::vector<std::string> words = {side.program, "list", "kernels", "--json", file};
  append(words, source_of(side));
  const Ended ended = start(side, words, talk);
  json out = read(file);
  if (!ended.ok() || out.is_discarded()) fail(side, "list", ended);
  return out;
}

json check(const Side &side, const CheckOrder &order, const Talk &talk) {
  const std::string stem = fmt::format("{}/{}{}", side.folder, order.round,
                                       order.kernel.empty() ? "" : "-" + order.kernel);
  std::vector<std::string> words = {side.program, "check",
                                    "--json",     stem + ".json",
                                    "--quiet",    "--isolate",
                                    "--cases",    std::to_string(order.cases),
                                    "--seed",     std::to_string(order.seed),
                                    "--out",      stem + "-findings"};
  append(words, selection_of(side));
  if (!order.kernel.empty()) append(words, {"--kernel", order.kernel});
  if (!side.findings.empty() && fs::is_directory(side.findings))
    append(words, {"--findings", side.findings});
  const Ended ended = start(side, words, talk, order.seconds);
  json out = read(stem + ".json");
  if (out.is_discarded() || !out.value("complete", false)) fail(side, "check", ended);
  return out;
}

Replays replay(const Side &side, const std::string &file, const std::string &fingerprint,
               const Talk &talk) {
  Replays out;
  const std::string report = side.folder + "/replay.json";
  for (; out.runs < kReplays; ++out.runs) {
    std::error_code ignored;
    fs::remove(report, ignored);
    std::vector<std::string> words = {side.program, "replay", file, "--json", report, "--quiet"};
    append(words, selection_of(side));
    const Ended ended = start(side, words, talk);
    const json document = read(report);
    if (document.is_discarded()) {
      // Our own kernels run in the program: one that takes it along has failed.
      if (ended.code < 128 || !side.plugin.empty()) break;
      ++out.fails, ++out.alike;
      out.message = last_line(ended.err);
      continue;
    }
    for (const json &result : document.at("results")) {
      if (!result.contains("fingerprint") && result.at("verdict") != "FAIL") continue;
      ++out.fails;
      out.alike += fingerprint.empty() || result.value("fingerprint", fingerprint) == fingerprint;
      out.message = result.at("message");
      break;
    }
  }
  return out;
}

std::string replay_line(const Side &side, const std::string &file) {
  std::string out =
      (side.program_shown.empty() ? side.program : side.program_shown) + " replay " + file;
  if (!side.plugin.empty())
    out += " --plugin " + (side.plugin_shown.empty() ? side.plugin : side.plugin_shown);
  if (side.target != "simt") out += " --target " + side.target;
  if (!side.declaration.empty()) out += " --declaration " + side.declaration;
  return out;
}

} // namespace assay::gate
