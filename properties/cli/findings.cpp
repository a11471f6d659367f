// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/findings.h"
#include "properties/run/requirements.h"

#include <algorithm>
#include <filesystem>
#include <ostream>

#include <fmt/format.h>

namespace assay {
namespace {

namespace fs = std::filesystem;

/// corpus/findings of the tree this was built from (or --findings), and where `check` writes.
std::vector<std::string> folders_of(const CliOptions &options) {
  std::vector<std::string> out;
  std::vector<std::string> wanted = {
      options.findings.empty() ? ASSAY_FINDINGS : options.findings,
      options.out.empty() ? kFindingsFolder : options.out,
  };
  for (const std::string &folder : wanted) {
    std::error_code ec;
    bool known = std::any_of(out.begin(), out.end(), [&](const std::string &other) {
      return fs::equivalent(other, folder, ec);
    });
    if (!known && fs::is_directory(folder, ec)) out.push_back(folder);
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

/// Returns whether the case concerns any selected pair.
bool replay_file(const Session &session, const std::string &path,
                 const std::vector<const assay_kernel *> &kernels,
                 const std::vector<const Property *> &properties, std::vector<KeptResult> &out) {
  Case c = load_case(path);
  bool concerned = false;
  for (const assay_kernel *kernel : kernels) {
    if (static_cast<Family>(kernel->family) != c.problem.family) continue;
    if (!c.kernel.empty() && c.kernel != kernel->name) continue;
    auto sut = session.sut(*kernel);
    for (const Property *property : properties) {
      if (!c.property.empty() && c.property != property->name) continue;
      if (!applies(*property, *kernel)) continue;
      concerned = true;
      bool threw = false;
      CheckResult r = checked(*property, c.problem, *sut, &threw);
      if (threw) throw CliError(kExitHarness, path + ": " + r.message);
      out.push_back({path, kernel->name, property->name, std::move(r)});
    }
  }
  return concerned;
}

int count(const KeptFindings &kept, CheckResult::Kind kind) {
  return static_cast<int>(std::count_if(kept.results.begin(), kept.results.end(),
                                        [&](const auto &r) { return r.result.kind == kind; }));
}

} // namespace

int KeptFindings::failed() const { return count(*this, CheckResult::Kind::kFail); }
int KeptFindings::undecided() const { return count(*this, CheckResult::Kind::kUndecided); }

KeptFindings replay_kept(const Session &session, const std::vector<const assay_kernel *> &kernels,
                         const std::vector<const Property *> &properties) {
  KeptFindings kept;
  kept.folders = folders_of(session.options);
  if (!session.options.findings.empty() && !fs::is_directory(session.options.findings))
    throw CliError(kExitUsage, fmt::format("{}: is not a directory", session.options.findings));
  for (const std::string &folder : kept.folders)
    for (const std::string &path : cases_in(folder)) {
      bool concerned = replay_file(session, path, kernels, properties, kept.results);
      ++(concerned ? kept.files : kept.others);
    }
  return kept;
}

void report_kept(const Session &session, const KeptFindings &kept) {
  std::ostream &out = session.streams.out;
  for (const KeptResult &r : kept.results) {
    bool failed = r.result.failed();
    if (!failed && r.result.kind != CheckResult::Kind::kUndecided) continue;
    out << fmt::format("{} {} {}: {}\n  kept case: assay replay {}{}\n",
                       session.red(failed ? "FINDING" : "UNDECIDED"), r.kernel, r.property,
                       r.result.message, shell_quoted(r.path), session.kernel_options());
  }
  if (session.options.quiet) return;
  out << fmt::format("replayed {} findings, {} fail{}\n", kept.files, kept.failed(),
                     kept.others > 0 ? fmt::format(" ({} of others skipped)", kept.others) : "");
}

nlohmann::json to_json(const KeptFindings &kept) {
  nlohmann::json results = nlohmann::json::array();
  for (const KeptResult &r : kept.results)
    results.push_back({{"file", r.path},
                       {"kernel", r.kernel},
                       {"property", r.property},
                       {"verdict", verdict_word(r.result.kind)},
                       {"message", r.result.message}});
  return {{"folders", kept.folders}, {"files", kept.files},           {"skipped", kept.others},
          {"fail", kept.failed()},   {"undecided", kept.undecided()}, {"results", results}};
}

} // namespace assay
