// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/findings/finding_log.h"

#include <cmath>
#include <filesystem>
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/case/classify.h"
#include "properties/case/simplest.h"
#include "properties/cli/findings/case_file.h"
#include "properties/run/how_far.h"

namespace assay {
namespace {

Case case_of(const PropertyRun &run, const Problem &p, const CheckResult &result) {
  Case c;
  c.kernel = run.kernel->name;
  c.property = run.property->name;
  c.target = target_name(run.kernel->target);
  c.note = result.message;
  c.problem = p;
  return c;
}
Case case_of(const PropertyRun &run) {
  Case c = case_of(run, run.first[0].shrunk, run.first[0].result);
  c.before = run.first[0].before;
  return c;
}

/// JSON has no NaN and no infinity: null, and the largest double.
nlohmann::json number(double x) {
  if (std::isnan(x)) return nullptr;
  const double most = std::numeric_limits<double>::max();
  return std::isinf(x) ? std::copysign(most, x) : x;
}

nlohmann::json to_json(const Cause &cause) {
  const Symptom &s = cause.symptom;
  nlohmann::json out = {{"error", name_of(s.kind)},
                        {"text", describe(cause)},
                        {"wrong_o", cause.wrong_o},
                        {"wrong_lse", cause.wrong_lse},
                        {"features", cause.features},
                        {"shape", cause.shape},
                        {"untried", cause.untried},
                        {"position", cause.position},
                        {"got", number(s.got)},
                        {"expected", number(s.expected)},
                        {"allowed", number(s.allowed)},
                        {"excess", number(s.excess())},
                        {"where", s.where}};
  if (s.of_element()) out["element"] = {{"row", s.row}, {"head", s.head}, {"dim", s.dim}};
  if (s.line > 0) out["source"] = {{"file", s.file}, {"line", s.line}};
  return out;
}

} // namespace

FindingLog::FindingLog(const Session &session, const FindingFolders &folders, std::string only)
    : session_(session), folder_(folders.out.empty() ? kFindingsFolder : folders.out),
      only_(std::move(only)) {}

FindingLog::Written FindingLog::write(const Case &c) const {
  Written w;
  w.path = (std::filesystem::path(folder_) / finding_name(c)).string();
  try {
    write_case(w.path, c);
  } catch (const std::exception &e) {
    w.error = e.what();
  }
  return w;
}

void FindingLog::say(const std::string &line) const {
  // The line of progress, if any, makes room.
  const bool live = session_.streams.terminal && !session_.options.quiet;
  session_.streams.out << fmt::format("{}{}\n", live ? "\r\033[K" : "", line) << std::flush;
}

void FindingLog::hung(const PropertyRun &run, const Problem &p, const CheckResult &result) {
  const Case c = case_of(run, p, result);
  const Written w = write(c);
  if (w.error.empty()) drawn_[&run] = w.path;
  say(fmt::format("hangs {} {}: {}; a smaller case is looked for; so far: {}", c.kernel, c.property,
                  result.message, w.error.empty() ? w.path : w.error));
}

std::string FindingLog::found(const PropertyRun &run) {
  const Case c = case_of(run);
  const Written &w = written_[&run] = write(c);
  if (const auto drawn = drawn_.find(&run); drawn != drawn_.end() && drawn->second != w.path) {
    std::error_code ignored;
    if (w.error.empty()) std::filesystem::remove(drawn->second, ignored);
  }
  say(fmt::format("found {} {}: {}", c.kernel, c.property, run.first[0].result.message));
  return w.path;
}

void FindingLog::group(const RunSummary &summary, KeptFindings &kept,
                       const std::atomic<bool> &stop) {
  GroupOptions options;
  options.sut = [this](const assay_kernel &kernel) { return session_.sut(kernel); };
  options.stop = &stop;
  groups_ = group_findings(summary, options);
  // Then each kept mistake with all of those: it may be one of them.
  for (KeptResult &r : kept.results) {
    if (!r.found || !r.same_as.empty()) continue;
    for (const FindingGroup &group : groups_)
      if (r.same_as.empty() && group.members[0].run->kernel == r.found->kernel &&
          group_findings({group.members[0].run, r.found.get()}, options).size() == 1)
        r.same_as = written_[group.members[0].run].path;
  }
}

std::string FindingLog::command_that_draws(const PropertyRun &run, uint64_t seed) const {
  if (!run.first[0].shape.empty())
    return fmt::format("assay replay {}{}", shell_quoted(run.first[0].shape),
                       session_.kernel_options());
  return fmt::format("assay check --kernel {} --property {} --target {} --seed {} --cases {}{}{}",
                     run.kernel->name, run.property->name, target_name(run.kernel->target), seed,
                     run.first[0].cases, session_.kernel_options(),
                     only_.empty() ? "" : " --only " + shell_quoted(only_));
}

nlohmann::json FindingLog::found_json(const NamedFinding &found, uint64_t seed, size_t group) {
  const PropertyRun &run = *found.run;
  const Finding &f = found.finding();
  const Written &w = written_[&run];
  const bool alone = !f.after_others || !f.before.empty();
  nlohmann::json entry = {
      {"kernel", run.kernel->name},
      {"property", run.property->name},
      {"message", f.result.message},
      {"detail", f.result.detail},
      {"how_far", how_far(f.shrunk, found.cause.symptom)},
      {"cause", to_json(found.cause)},
      {"fingerprint", found.fingerprint},
      {"group", group},
      {"failing_cases", run.findings},
      {"cases", run.cases},
      {"shrunk",
       {{"steps", f.stats.accepted}, {"tried", f.stats.checks}, {"exhausted", f.stats.exhausted}}},
      {"seed", seed},
      {"draw", f.index},
      {"drawn_by", command_that_draws(run, seed)},
      {"after_others", f.after_others},
      {"differs", alone ? differences(f.shrunk) : std::vector<std::string>{}},
      {"classes", classify(f.shrunk)},
      {"case", format_case(case_of(run))}};
  if (w.error.empty()) {
    entry["file"] = w.path;
    // A case that needs others before it, and does not have them, passes when it is replayed.
    entry["reproduce"] =
        alone ? fmt::format("assay replay {}{}", shell_quoted(w.path), session_.kernel_options())
              : command_that_draws(run, seed);
  } else {
    entry["unwritten"] = w.error;
  }
  return entry;
}

nlohmann::json FindingLog::group_json(const FindingGroup &group, size_t first) {
  nlohmann::json seen = nlohmann::json::array();
  for (const NamedFinding &member : group.members)
    seen.push_back(member.run->property->name);
  return {{"kernel", group.members[0].run->kernel->name},
          {"properties", seen},
          {"found", first},
          {"fingerprint", group.members[0].fingerprint}};
}

void FindingLog::write_json(nlohmann::json &document, uint64_t seed) {
  nlohmann::json &found = document["found"] = nlohmann::json::array();
  nlohmann::json &groups = document["groups"] = nlohmann::json::array();
  for (size_t i = 0; i < groups_.size(); ++i) {
    groups.push_back(group_json(groups_[i], found.size()));
    for (const NamedFinding &member : groups_[i].members)
      found.push_back(found_json(member, seed, i));
  }
}

} // namespace assay
