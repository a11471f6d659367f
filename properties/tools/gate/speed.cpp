// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/gate/speed.h"

#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/tools/gate/error.h"
#include "properties/tools/gate/gate.h"
#include "properties/tools/process/process.h"

namespace assay::gate {
namespace {

/// Nothing but the run itself tells how long it takes: many cells, and a kernel may hang.
constexpr double kPatience = 900;

json run_bench(const RevisionPair &revisions, const Revision &head,
               const std::vector<std::string> &kernels, const Progress &progress,
               process::Ended &ended) {
  const std::string file = revisions.base.folder + "/speed.json";
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  std::vector<std::string> words = {revisions.base.program,
                                    "bench",
                                    "--against",
                                    revisions.base.library(),
                                    "--plugin",
                                    head.library(),
                                    "--json",
                                    file,
                                    "--kernel"};
  words.insert(words.end(), kernels.begin(), kernels.end());
  ended = process::run({.words = words,
                        .folder = revisions.base.folder,
                        .log = revisions.base.folder + "/log",
                        .seconds = kPatience,
                        .waiting = progress.waiting});
  std::ifstream in(file);
  return json::parse(in, nullptr, false);
}

/// What was measured of one kernel, over its cells.
struct Tally {
  int timed = 0, slower = 0, faster = 0, inconclusive = 0, wrong = 0;
  double most = 1;               ///< the largest ratio of a slower cell
  std::string worst, wrong_cell; ///< that cell; the first with wrong outputs
  std::string refused;           ///< first cell that head refuses, and why
};

void add(Tally &tally, const json &duel) {
  const std::string cell = duel.at("cell");
  if (duel.contains("skipped")) {
    if (duel.value("head_refuses", false) && tally.refused.empty())
      tally.refused = fmt::format("{}: {}", cell, duel.at("skipped").get<std::string>());
    return;
  }
  ++tally.timed;
  const json findings = duel.value("findings", json::array());
  if (duel.at("wrong") > 0 || !findings.empty())
    if (tally.wrong++ == 0)
      tally.wrong_cell =
          findings.empty() ? cell : fmt::format("{}: {}", cell, findings[0].get<std::string>());
  const std::string speed = duel.at("speed");
  tally.faster += speed == "faster";
  tally.inconclusive += speed == "inconclusive";
  if (speed != "slower") return;
  ++tally.slower;
  const double ratio = duel.at("ratio");
  if (ratio < tally.most) return;
  tally.most = ratio;
  tally.worst =
      fmt::format("{} {:.2f} -> {:.2f} us ({:+.1f} %)", cell, duel.at("base_us").get<double>(),
                  duel.at("head_us").get<double>(), 100 * (ratio - 1));
}

} // namespace

json measure_speed(const RevisionPair &revisions, const std::vector<std::string> &kernels,
                   const Progress &progress) {
  progress.step("speed of base and head, in turns");
  process::Ended ended, of_base;
  json out = run_bench(revisions, revisions.head, kernels, progress, ended);
  if (!out.is_discarded() && (ended.code == kPass || ended.code == kFinding)) return out;
  const std::string said = process::last_line(ended.err.empty() ? ended.out : ended.err);
  const std::string why =
      fmt::format("assay bench ended with {}: {}", ended.code, said.empty() ? "no word" : said);
  if (run_bench(revisions, revisions.base, kernels, progress, of_base).is_discarded() ||
      !of_base.ok())
    throw GateError(kHarness, why + "; so it does of base alone");
  throw GateError(kFinding, why + "; of base alone it does not");
}

Figures judge_speed(const json &document) {
  std::map<std::string, Tally> kernels;
  for (const json &duel : document.at("duels"))
    add(kernels[duel.at("kernel")], duel);
  Figures out;
  for (const auto &[kernel, s] : kernels) {
    if (s.wrong > 0)
      out.red.push_back(
          red_line("timed-outputs", kernel,
                   fmt::format("wrong, or not the same while it is timed, in {} of {} "
                               "cells, first {}",
                               s.wrong, s.timed, s.wrong_cell)));
    if (!s.refused.empty())
      out.red.push_back(
          red_line("envelope-narrower", kernel, "refuses a cell that base takes: " + s.refused));
    if (s.slower > 0)
      out.red.push_back(
          red_line("slower", kernel,
                   fmt::format("in {} of {} cells, most in {}", s.slower, s.timed, s.worst)));
    if (s.timed > 0)
      out.notes.push_back(
          fmt::format("{} on the device: {} of {} cells slower, {} faster, {} inconclusive", kernel,
                      s.slower, s.timed, s.faster, s.inconclusive));
  }
  return out;
}

void Gate::race(const JudgedChange &judged) {
  if (!judged.revisions.base.worker.empty()) return; // bench times libraries
  std::vector<std::string> both;
  for (const std::string &kernel : kernels_of(judged, true))
    if (of_base_.count(kernel) > 0) both.push_back(kernel);
  if (both.empty()) return;
  try {
    const json measured = measure_speed(judged.revisions, both, progress_);
    add_figures(judge_speed(measured));
    document_["speed"] = measured;
  } catch (const GateError &e) {
    if (e.code != kFinding) return harness_failed(e.what());
    add({red_line("no-report", "", e.what())});
  }
}

} // namespace assay::gate
