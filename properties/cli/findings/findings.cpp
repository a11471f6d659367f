// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/findings/findings.h"

#include "properties/cli/findings/big_case.h"
#include "properties/cli/findings/case_file.h"
#include "properties/cli/findings/kept_folder.h"
#include "properties/cli/session/own_program.h"
#include "properties/run/groups.h"
#include "properties/run/requirements.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay {
namespace {

namespace fs = std::filesystem;

struct Folder {
  std::string path;
  bool shapes = false;
};

/// The named folder, or that of this program; may be "".
std::string ours(const FindingFolders &folders) {
  if (!folders.kept.empty()) return folders.kept;
  return kept_folder(fs::path(own_program()).parent_path(), fs::current_path());
}

/// `kept`, the shapes beside those of this program, and where `check` writes.
std::vector<Folder> folders_of(const FindingFolders &folders, const std::string &kept) {
  std::vector<Folder> out, wanted = {{kept}};
  if (folders.kept.empty() && !kept.empty())
    wanted.push_back({(fs::path(kept).parent_path() / "shapes").string(), true});
  wanted.push_back({folders.out.empty() ? kFindingsFolder : folders.out});
  for (const Folder &folder : wanted) {
    std::error_code ec;
    bool known = std::any_of(out.begin(), out.end(), [&](const Folder &other) {
      return fs::equivalent(other.path, folder.path, ec);
    });
    if (!known && fs::is_directory(folder.path, ec)) out.push_back(folder);
  }
  return out;
}

std::vector<std::string> cases_in(const std::string &folder) {
  std::vector<std::string> out;
  std::error_code ec;
  for (const auto &entry : fs::directory_iterator(folder, ec))
    if (entry.path().extension() == ".case") out.push_back(entry.path().string());
  if (ec) throw CliError(kExitUsage, fmt::format("{}: cannot read", folder));
  std::sort(out.begin(), out.end());
  return out;
}

/// A failure of a fixed case as what a run finds. A shape was never made smaller.
std::shared_ptr<const PropertyRun> found_by(const KeptFile &file, const Case &c,
                                            const assay_kernel &kernel, const Property &property,
                                            const CheckResult &r) {
  if (!r.failed() || file.verdict.status != CaseStatus::kFixed) return nullptr;
  auto run = std::make_shared<PropertyRun>();
  run->property = &property;
  run->kernel = &kernel;
  Finding f;
  f.drawn = f.shrunk = c.problem;
  f.before = c.before;
  f.after_others = !c.before.empty();
  f.result = r;
  f.stats.exhausted = file.shape;
  run->first.push_back(std::move(f));
  return run;
}

/// As replay_file() below, of one kernel.
void replay_on(const Session &session, const KeptFile &file, const Case &c,
               const assay_kernel &kernel, const std::vector<const Property *> &properties,
               std::vector<KeptResult> &out) {
  // What is held back may be a crash.
  const bool held = file.verdict.status == CaseStatus::kQuarantined;
  auto sut = session.sut(kernel, WorkerUse::kRun, held);
  for (const Property *property : properties) {
    if (!c.property.empty() && c.property != property->name) continue;
    if (!applies(*property, kernel)) continue;
    bool threw = false;
    CheckResult r = checked_case(*property, c, *sut, &threw);
    if (threw && !held) throw CliError(kExitHarness, file.path + ": " + r.message);
    auto found = found_by(file, c, kernel, *property, r);
    out.push_back({file.path, kernel.name, property->name, file.verdict.status, std::move(r), "",
                   std::move(found)});
  }
}

/// Returns whether the case concerns any selected pair.
bool replay_file(const Session &session, const std::string &path, bool shape,
                 const std::vector<const assay_kernel *> &kernels,
                 const std::vector<const Property *> &properties, KeptFindings &kept) {
  const Case c = load_case(path);
  const std::string now = today();
  KeptFile file{path, c.entry, judge_kept(c.entry, {}, now), shape};
  const size_t before = kept.results.size();
  for (const assay_kernel *kernel : kernels) {
    if (static_cast<Family>(kernel->family) != c.problem.family) continue;
    if (!c.kernel.empty() && c.kernel != kernel->name) continue;
    replay_on(session, file, c, *kernel, properties, kept.results);
  }
  std::vector<CheckResult::Kind> kinds;
  for (size_t i = before; i < kept.results.size(); ++i)
    kinds.push_back(kept.results[i].result.kind);
  if (kinds.empty()) return false;
  file.verdict = judge_kept(c.entry, kinds, now);
  kept.files.push_back(std::move(file));
  return true;
}

} // namespace

/// The sum of what `of` says of each file or result.
template <class List, class Of>
static int sum(const List &list, Of of) {
  int n = 0;
  for (const auto &entry : list)
    n += of(entry);
  return n;
}

int KeptFindings::failed() const {
  return sum(files, [](const KeptFile &file) { return file.verdict.findings; });
}

int KeptFindings::findings() const {
  return failed() - sum(results, [](const KeptResult &r) { return !r.same_as.empty(); });
}

int KeptFindings::shapes() const {
  return sum(files, [](const KeptFile &file) { return file.shape; });
}

int KeptFindings::failed_shapes() const {
  return sum(files, [](const KeptFile &file) { return file.shape ? file.verdict.findings : 0; });
}

int KeptFindings::refused_shapes() const {
  return sum(files, [this](const KeptFile &file) {
    return file.shape && std::none_of(results.begin(), results.end(), [&](const KeptResult &r) {
             return r.path == file.path && r.result.kind != CheckResult::Kind::kDiscard;
           });
  });
}

int KeptFindings::undecided() const {
  return sum(files, [](const KeptFile &file) { return file.verdict.undecided; });
}

int KeptFindings::count(CaseStatus status) const {
  return sum(files, [&](const KeptFile &file) { return file.verdict.status == status; });
}

KeptFindings replay_kept(const Session &session, const FindingFolders &folders,
                         const std::vector<const assay_kernel *> &kernels,
                         const std::vector<const Property *> &properties) {
  KeptFindings kept;
  const std::string standard = ours(folders);
  kept.none_with_program = standard.empty();
  if (!folders.kept.empty() && !fs::is_directory(folders.kept))
    throw CliError(kExitUsage, fmt::format("{}: is not a directory", folders.kept));
  for (const Folder &folder : folders_of(folders, standard)) {
    kept.folders.push_back(folder.path);
    for (const std::string &path : cases_in(folder.path)) {
      const bool concerns = replay_file(session, path, folder.shapes, kernels, properties, kept);
      (folder.shapes ? kept.other_shapes : kept.others) += !concerns;
    }
  }
  return kept;
}

void group_kept(const Session &session, KeptFindings &kept, const std::atomic<bool> &stop) {
  std::vector<const PropertyRun *> found;
  std::map<const PropertyRun *, KeptResult *> of;
  for (KeptResult &r : kept.results)
    if (r.found) {
      found.push_back(r.found.get());
      of[r.found.get()] = &r;
    }
  GroupOptions options;
  options.sut = [&](const assay_kernel &kernel) { return session.sut(kernel); };
  options.stop = &stop;
  for (const FindingGroup &group : group_findings(found, options))
    for (size_t i = 1; i < group.members.size(); ++i)
      of[group.members[i].run]->same_as = of[group.members[0].run]->path;
}

namespace {

/// A serving shape is large: its finding comes with a smaller case and its cause.
void report_shape(const Session &session, const KeptResult &r) {
  session.streams.out << fmt::format("fails {} {}: {}; a smaller case is looked for\n", r.kernel,
                                     r.property, r.path);
}

void report_result(const Session &session, const KeptResult &r, bool shape) {
  if (!r.same_as.empty()) return; // named with the other
  if (shape && r.result.failed() && r.status == CaseStatus::kFixed) return report_shape(session, r);
  const bool failed = r.result.failed();
  if (r.status != CaseStatus::kFixed && session.options.quiet) return;
  if (!failed && r.result.kind != CheckResult::Kind::kUndecided &&
      r.status != CaseStatus::kQuarantined)
    return;
  const std::string word = r.status == CaseStatus::kQuarantined      ? "QUARANTINED"
                           : r.status == CaseStatus::kOpen && failed ? "OPEN"
                           : failed                                  ? "FINDING"
                                                                     : "UNDECIDED";
  session.streams.out << fmt::format("{} {} {}: {}\n  kept case: assay replay {}{}\n",
                                     r.status == CaseStatus::kFixed ? session.red(word) : word,
                                     r.kernel, r.property,
                                     r.result.passed() ? "passes" : r.result.message,
                                     shell_quoted(r.path), session.kernel_options());
}

/// Cases that show the same mistake.
void report_others(const Session &session, const KeptFindings &kept, const KeptResult &first) {
  const auto others =
      std::count_if(kept.results.begin(), kept.results.end(), [&](const KeptResult &r) {
        return r.same_as == first.path && r.kernel == first.kernel;
      });
  if (others > 0)
    session.streams.out << fmt::format("  and {} more kept case{} and propert{} that show it\n",
                                       others, others == 1 ? "" : "s", others == 1 ? "y" : "ies");
}

std::string count_text(int count, const char *word) {
  return count > 0 ? fmt::format(", {} {}", count, word) : "";
}

} // namespace

void report_kept(const Session &session, const KeptFindings &kept) {
  std::ostream &out = session.streams.out;
  for (const KeptResult &r : kept.results) {
    const bool shape = std::any_of(kept.files.begin(), kept.files.end(), [&](const KeptFile &file) {
      return file.shape && file.path == r.path;
    });
    report_result(session, r, shape);
    if (!shape && r.found && r.same_as.empty()) report_others(session, kept, r);
  }
  for (const KeptFile &file : kept.files)
    if (file.verdict.unexpected_pass)
      out << fmt::format("{} {}\n", session.red("UNEXPECTED PASS"),
                         unexpected_pass_text(file.path, file.entry));
  if (session.options.quiet) return;
  if (kept.none_with_program)
    out << "no kept findings lie beside this program, or in a tree around it or this folder "
           "(--findings DIR)\n";
  const int shapes = kept.shapes(), findings = static_cast<int>(kept.files.size()) - shapes;
  out << fmt::format(
      "replayed {} findings, {} fail{}{}{}\n", findings, kept.failed() - kept.failed_shapes(),
      count_text(kept.count(CaseStatus::kOpen), "open"),
      count_text(kept.count(CaseStatus::kQuarantined), "quarantined"),
      kept.others > 0 ? fmt::format(" ({} about other kernels or properties skipped)", kept.others)
                      : "");
  const int refused = kept.refused_shapes(), run = shapes - refused;
  if (shapes + kept.other_shapes > 0)
    out << fmt::format("replayed {} serving shapes, {} fail{}{}\n", run, kept.failed_shapes(),
                       count_text(refused, "more that no kernel here takes"),
                       count_text(kept.other_shapes, "about other kernels or properties"));
}

nlohmann::json to_json(const KeptFindings &kept) {
  nlohmann::json results = nlohmann::json::array(), ledger = nlohmann::json::array();
  for (const KeptResult &r : kept.results)
    results.push_back({{"file", r.path},
                       {"kernel", r.kernel},
                       {"property", r.property},
                       {"verdict", kept_word(r.status, r.result.kind)},
                       {"message", r.result.message},
                       {"same_as", r.same_as}});
  for (const KeptFile &file : kept.files)
    ledger.push_back({{"file", file.path},
                      {"status", format_status(file.entry)},
                      {"issue", file.entry.issue},
                      {"findings", file.verdict.findings},
                      {"unexpected_pass", file.verdict.unexpected_pass}});
  return {{"folders", kept.folders},
          {"files", kept.files.size()},
          {"shapes", kept.shapes()},
          {"shapes_refused", kept.refused_shapes()},
          {"shapes_of_others", kept.other_shapes},
          {"skipped", kept.others},
          {"fail", kept.failed()},
          {"open", kept.count(CaseStatus::kOpen)},
          {"quarantined", kept.count(CaseStatus::kQuarantined)},
          {"undecided", kept.undecided()},
          {"ledger", ledger},
          {"results", results}};
}

} // namespace assay
