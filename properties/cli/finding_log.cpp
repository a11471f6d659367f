// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/finding_log.h"

#include <cmath>
#include <filesystem>
#include <ostream>

#include <fmt/format.h>

#include "properties/case/classify.h"
#include "properties/run/how_far.h"

namespace assay {
namespace {

Case case_of(const PropertyRun &run) {
  Case c;
  c.kernel = run.kernel->name;
  c.property = run.property->name;
  c.target = target_name(run.kernel->target);
  c.note = run.first[0].result.message;
  c.problem = run.first[0].shrunk;
  return c;
}

Cause cause_of(const PropertyRun &run) {
  return cause_of(run.first[0].shrunk, run.first[0].result, *run.kernel, *run.property);
}

/// JSON has no NaN and no infinity: null, and the largest double.
nlohmann::json number(double x) {
  if (std::isnan(x)) return nullptr;
  const double most = std::numeric_limits<double>::max();
  return std::isinf(x) ? std::copysign(most, x) : x;
}

nlohmann::json to_json(const Cause &cause) {
  const Symptom &s = cause.symptom;
  nlohmann::json out = {{"error", name_of(s.kind)},       {"text", describe(cause)},
                        {"wrong_o", cause.wrong_o},       {"wrong_lse", cause.wrong_lse},
                        {"features", cause.features},     {"shape", cause.shape},
                        {"position", cause.position},     {"got", number(s.got)},
                        {"expected", number(s.expected)}, {"allowed", number(s.allowed)},
                        {"excess", number(s.excess())},   {"where", s.where}};
  if (s.of_element()) out["element"] = {{"row", s.row}, {"head", s.head}, {"dim", s.dim}};
  if (s.line > 0) out["source"] = {{"file", s.file}, {"line", s.line}};
  return out;
}

} // namespace

FindingLog::FindingLog(const Session &session)
    : session_(session),
      folder_(session.options.out.empty() ? kFindingsFolder : session.options.out) {}

void FindingLog::found(const PropertyRun &run) {
  const Case c = case_of(run);
  Written &w = written_[&run];
  w.path = (std::filesystem::path(folder_) / finding_name(c)).string();
  try {
    write_case(w.path, c);
  } catch (const std::exception &e) {
    w.error = e.what();
  }
  // The line of progress, if any, makes room.
  const bool live = session_.streams.terminal && !session_.options.quiet;
  session_.streams.out << fmt::format("{}found {} {}: {}\n", live ? "\r\033[K" : "", c.kernel,
                                      c.property, run.first[0].result.message)
                       << std::flush;
}

void FindingLog::group(const RunSummary &summary, const std::atomic<bool> &stop) {
  GroupOptions options;
  options.sut = [this](const assay_kernel &kernel) { return session_.sut(kernel); };
  options.stop = &stop;
  groups_ = group_findings(summary, options);
}

void FindingLog::report(uint64_t seed) {
  for (const FindingGroup &group : groups_)
    report_group(group, seed);
}

std::string FindingLog::reproduce_line(const PropertyRun &run) {
  const Written &w = written_[&run];
  if (!w.error.empty()) return "";
  return fmt::format("assay replay {}{}", shell_quoted(w.path), session_.kernel_options());
}

void FindingLog::report_group(const FindingGroup &group, uint64_t seed) {
  const PropertyRun &run = *group.members[0];
  const Finding &f = run.first[0];
  const Cause cause = cause_of(run);
  std::ostream &out = session_.streams.out;
  out << fmt::format("\n{} {} {}: {}\n", session_.red("FINDING"), run.kernel->name,
                     run.property->name, f.result.message);
  if (const std::string far = how_far(f.shrunk, cause.symptom); !far.empty())
    out << fmt::format("  {}\n", far);
  out << f.result.detail;
  out << fmt::format("  cause: {} [{}]\n", describe(cause),
                     fingerprint(*run.kernel, *run.property, cause));
  std::string others;
  for (size_t i = 1; i < group.members.size(); ++i)
    others += (others.empty() ? "" : ", ") + std::string(group.members[i]->property->name);
  if (!others.empty()) out << fmt::format("  also seen by: {}\n", others);
  out << fmt::format("  {} of {} cases fail; shrunk in {} steps ({} tried{})\n", run.findings,
                     run.cases, f.stats.accepted, f.stats.checks,
                     f.stats.exhausted ? ", budget spent" : "");
  if (const std::string line = reproduce_line(run); !line.empty())
    out << fmt::format("  reproduce: {}\n", line);
  out << fmt::format("  drawn by:  assay check --kernel {} --property {} --target {} --seed {} "
                     "--cases {}{}\n",
                     run.kernel->name, run.property->name, target_name(run.kernel->target), seed,
                     f.cases, session_.draw_options());
  for (const PropertyRun *member : group.members)
    if (const std::string &error = written_[member].error; !error.empty())
      out << fmt::format("  {}; the case:\n{}", error, format_case(case_of(*member)));
}

nlohmann::json FindingLog::found_json(const PropertyRun &run, uint64_t seed, size_t group) {
  const Finding &f = run.first[0];
  const Cause cause = cause_of(run);
  nlohmann::json entry = {{"kernel", run.kernel->name},
                          {"property", run.property->name},
                          {"message", f.result.message},
                          {"detail", f.result.detail},
                          {"how_far", how_far(f.shrunk, cause.symptom)},
                          {"cause", to_json(cause)},
                          {"fingerprint", fingerprint(*run.kernel, *run.property, cause)},
                          {"group", group},
                          {"failing_cases", run.findings},
                          {"cases", run.cases},
                          {"seed", seed},
                          {"draw", f.index},
                          {"classes", classify(f.shrunk)},
                          {"case", format_case(case_of(run))}};
  if (const std::string line = reproduce_line(run); !line.empty()) {
    entry["file"] = written_[&run].path;
    entry["reproduce"] = line;
  }
  return entry;
}

nlohmann::json FindingLog::group_json(const FindingGroup &group, size_t first) {
  const PropertyRun &run = *group.members[0];
  nlohmann::json seen = nlohmann::json::array();
  for (const PropertyRun *member : group.members)
    seen.push_back(member->property->name);
  return {{"kernel", run.kernel->name},
          {"properties", seen},
          {"found", first},
          {"fingerprint", fingerprint(*run.kernel, *run.property, cause_of(run))}};
}

void FindingLog::write_json(nlohmann::json &document, uint64_t seed) {
  nlohmann::json &found = document["found"] = nlohmann::json::array();
  nlohmann::json &groups = document["groups"] = nlohmann::json::array();
  for (size_t i = 0; i < groups_.size(); ++i) {
    groups.push_back(group_json(groups_[i], found.size()));
    for (const PropertyRun *member : groups_[i].members)
      found.push_back(found_json(*member, seed, i));
  }
}

} // namespace assay
