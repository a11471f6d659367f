// SPDX-License-Identifier: Apache-2.0
// replay, shrink and explain: the commands that take a case from a file.
#include <algorithm>
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/case/classify.h"
#include "properties/cli/commands/commands.h"
#include "properties/cli/commands/other_schedules.h"
#include "properties/cli/findings/big_case.h"
#include "properties/cli/findings/case_file.h"
#include "properties/cli/findings/kept_verdict.h"
#include "properties/relate/explain.h"
#include "properties/relate/shared_work.h"
#include "properties/run/cause.h"
#include "properties/run/requirements.h"

namespace assay {
namespace {

/// A case with everything that the command line and the file leave open decided.
struct Loaded {
  std::string path;
  Case c;
  std::vector<const assay_kernel *> kernels;
  std::vector<const Property *> properties;
};

Loaded load(const Session &session, const Selection &o, const std::string &path) {
  Loaded out{path, load_case(path), {}, {}};
  std::string target = !o.target.empty() ? o.target : !out.c.target.empty() ? out.c.target : "simt";
  auto in_file = [&](auto select) {
    try {
      return select();
    } catch (const CliError &e) {
      throw CliError(e.code, path + ": " + e.what());
    }
  };
  std::string kernel = o.kernel.empty() ? out.c.kernel : o.kernel;
  std::string property = o.property.empty() ? out.c.property : o.property;
  auto candidates = in_file([&] { return session.select_kernels(kernel, target); });
  for (const assay_kernel *k : candidates)
    if (static_cast<Family>(k->family) == out.c.problem.family) out.kernels.push_back(k);
  if (out.kernels.empty())
    throw CliError(kExitUsage,
                   fmt::format("{}: a {} case does not fit kernel {}", path,
                               name_of(out.c.problem.family), kernel.empty() ? "list" : kernel));
  out.properties = in_file([&] { return session.select_properties(property); });
  const bool any = std::any_of(out.kernels.begin(), out.kernels.end(), [&](const auto *k) {
    return std::any_of(out.properties.begin(), out.properties.end(),
                       [&](const Property *p) { return applies(*p, *k); });
  });
  if (!any)
    throw CliError(kExitUsage, fmt::format("{}: property {} says nothing about this kernel", path,
                                           out.properties[0]->name));
  return out;
}

struct Replayed {
  const assay_kernel *kernel;
  const Property *property;
  CheckResult result;
  bool threw = false; ///< the harness failed: the result says nothing about the kernel
  std::optional<OtherSchedules> others; ///< of --explore; `result` is that of the one that failed
};

void explore(const Loaded &loaded, int most, Sut &sut, Replayed &r) {
  if (most == 0 || r.threw || !r.result.passed()) return;
  r.others = on_other_schedules(*r.property, loaded.c, sut, most);
  if (r.others->failed()) r.result = r.others->failure;
}

/// `most`: other schedules that a passing case is tried on.
std::vector<Replayed> replay(const Session &session, const Loaded &loaded, int most = 0) {
  std::vector<Replayed> out;
  const bool held = loaded.c.entry.on(today()) == CaseStatus::kQuarantined;
  for (const assay_kernel *kernel : loaded.kernels)
    for (const Property *property : loaded.properties) {
      if (!applies(*property, *kernel)) continue;
      auto sut = session.sut(*kernel, WorkerUse::kRun, held); // it may be a crash
      Replayed r{kernel, property, {}, false, {}};
      r.result = checked_case(*property, loaded.c, *sut, &r.threw);
      explore(loaded, most, *sut, r);
      out.push_back(std::move(r));
    }
  return out;
}

int exit_of(const std::vector<Replayed> &results) {
  bool decided = false, undecided = false;
  for (const Replayed &r : results) {
    if (r.result.failed()) return kExitFinding;
    decided |= r.result.passed();
    undecided |= r.threw || r.result.kind == CheckResult::Kind::kUndecided;
  }
  if (undecided) return kExitHarness;
  return decided ? kExitPass : kExitUnsupported;
}

/// The worse of two exit codes: finding, then harness error, then unsupported, then pass.
int worse(int a, int b) {
  for (int code : {int{kExitFinding}, int{kExitHarness}, int{kExitUnsupported}})
    if (a == code || b == code) return code;
  return kExitPass;
}

/// By where the case stands: an open one that fails is as it should be.
int exit_of(const std::vector<Replayed> &results, const KeptVerdict &verdict) {
  if (verdict.status == CaseStatus::kFixed) return exit_of(results);
  if (verdict.findings > 0) return kExitFinding;
  const bool threw =
      std::any_of(results.begin(), results.end(), [](const Replayed &r) { return r.threw; });
  const bool counts = verdict.status == CaseStatus::kOpen;
  return counts && (threw || verdict.undecided > 0) ? kExitHarness : kExitPass;
}

KeptVerdict verdict_of(const Loaded &loaded, const std::vector<Replayed> &results) {
  std::vector<CheckResult::Kind> kinds;
  for (const Replayed &r : results)
    kinds.push_back(r.result.kind);
  return judge_kept(loaded.c.entry, kinds, today());
}

std::string word_of(const Replayed &r, CaseStatus status) {
  return r.threw ? "ERROR" : kept_word(status, r.result.kind);
}

/// The schedules are the same ones in each run, so that the last of fewer is the one that failed.
std::string reproduce(const Session &session, const Loaded &loaded, const Replayed &r) {
  return fmt::format("assay replay {} --kernel {} --property {} --explore {}{}",
                     shell_quoted(loaded.path), r.kernel->name, r.property->name,
                     r.others->failed_number, session.kernel_options());
}

void print(const Session &session, const Loaded &loaded, const Replayed &r,
           CaseStatus status = CaseStatus::kFixed) {
  const bool bad = r.threw || r.result.failed() || r.result.kind == CheckResult::Kind::kUndecided;
  if (session.options.quiet && (!bad || status != CaseStatus::kFixed)) return;
  const bool good = r.result.passed() || (status != CaseStatus::kFixed && !r.threw);
  std::string verdict = fmt::format("{:<9}", word_of(r, status));
  session.streams.out << fmt::format("{} {:<24} {:<26} {}{}\n",
                                     good ? session.green(verdict) : session.red(verdict),
                                     r.kernel->name, r.property->name, loaded.path,
                                     r.result.message.empty() ? "" : ": " + r.result.message);
  if (!r.others) return;
  session.streams.out << fmt::format("{:10}{}\n", "", in_words(*r.others));
  if (r.others->failed())
    session.streams.out << fmt::format("{:10}reproduce: {}\n", "", reproduce(session, loaded, r));
}

nlohmann::json to_json(const Loaded &loaded, const Replayed &r,
                       CaseStatus status = CaseStatus::kFixed) {
  nlohmann::json out = {{"file", loaded.path},
                        {"kernel", r.kernel->name},
                        {"property", r.property->name},
                        {"verdict", word_of(r, status)},
                        {"message", r.result.message}};
  if (r.result.failed() && !r.threw)
    out["fingerprint"] = fingerprint(*r.kernel, *r.property,
                                     cause_of(loaded.c.problem, r.result, *r.kernel, *r.property));
  if (r.others) out["explored"] = to_json(*r.others);
  return out;
}

/// The first failing pair of a case.
const Replayed *first_failure(const std::vector<Replayed> &results) {
  for (const Replayed &r : results)
    if (r.result.failed()) return &r;
  return nullptr;
}

/// The executor alone has schedules.
void require_schedules(const Session &session, const std::vector<Loaded> &files) {
  for (const Loaded &loaded : files)
    for (const assay_kernel *kernel : loaded.kernels)
      if (session.workers || kernel->target == ASSAY_TARGET_CUDA)
        throw CliError(kExitUsage, fmt::format("--explore: {} does not run on the executor, which "
                                               "alone has schedules",
                                               kernel->name));
}

} // namespace

int command_replay(Session &session, const FileOptions &options) {
  // All are read before any is run: a wrong name must not hide the verdict of another file.
  std::vector<Loaded> files;
  for (const std::string &path : options.files)
    files.push_back(load(session, options.selection, path));
  if (options.explore > 0) require_schedules(session, files);
  int exit = kExitPass;
  const auto assumed = words_of(session.options.assumed);
  nlohmann::json document = {{"assumed", assumed}, {"results", nlohmann::json::array()}};
  for (const Loaded &loaded : files) {
    auto results = replay(session, loaded, options.explore);
    const KeptVerdict verdict = verdict_of(loaded, results);
    exit = worse(exit, exit_of(results, verdict));
    for (const Replayed &r : results) {
      print(session, loaded, r, verdict.status);
      document["results"].push_back(to_json(loaded, r, verdict.status));
    }
    if (verdict.unexpected_pass)
      session.streams.out << fmt::format("{} {}\n", session.red("UNEXPECTED PASS"),
                                         unexpected_pass_text(loaded.path, loaded.c.entry));
  }
  if (!assumed.empty() && !session.options.quiet)
    session.streams.out << fmt::format("assumed: {}\n", fmt::join(assumed, ", "));
  document["exit"] = exit;
  return session.finish(document, exit);
}

int command_shrink(Session &session, const FileOptions &options) {
  Loaded loaded = load(session, options.selection, options.files[0]);
  auto results = replay(session, loaded);
  const Replayed *failure = first_failure(results);
  if (failure == nullptr) {
    for (const Replayed &r : results)
      if (r.threw) print(session, loaded, r);
    session.streams.out << fmt::format("{}: does not fail, nothing to shrink\n", loaded.path);
    const int exit = exit_of(results);
    return session.finish({{"file", loaded.path}, {"exit", exit}}, exit);
  }
  auto sut = session.sut(*failure->kernel);
  ShrinkStats stats;
  Case small = loaded.c;
  small.kernel = failure->kernel->name;
  small.property = failure->property->name;
  small.target = target_name(failure->kernel->target);
  const auto check = [&](const Problem &p) {
    if (small.before.empty()) return checked_case(*failure->property, p, *sut, nullptr);
    Case behind_others = small;
    behind_others.problem = p;
    sut->start_anew();
    return checked_case(*failure->property, behind_others, *sut, nullptr);
  };
  auto fails = [&](const Problem &p) { return check(p).failed(); };
  small.problem = shrink(loaded.c.problem, fails, {.checks = 5000, .seconds = 60}, &stats);
  CheckResult result = check(small.problem);
  small.note = result.message;
  std::string path = options.out.empty() ? loaded.path + ".min" : options.out;
  write_case(path, small);
  if (!session.options.quiet)
    session.streams.out << fmt::format("{} {}: {}\n", small.kernel, small.property, result.message);
  session.streams.out << fmt::format("{}: {} steps, {} tried{}\n", path, stats.accepted,
                                     stats.checks, stats.exhausted ? ", budget spent" : "");
  return session.finish({{"file", loaded.path},
                         {"out", path},
                         {"kernel", small.kernel},
                         {"property", small.property},
                         {"message", result.message},
                         {"steps", stats.accepted},
                         {"tried", stats.checks},
                         {"exhausted", stats.exhausted},
                         {"exit", int{kExitFinding}}},
                        kExitFinding);
}

int command_explain(Session &session, const FileOptions &options) {
  if (options.declaration) return explain_declaration(session, options);
  if (options.files.empty())
    throw CliError(kExitUsage, "explain: files is missing: a .case, or --declaration");
  Loaded loaded = load(session, options.selection, options.files[0]);
  auto results = replay(session, loaded);
  const Replayed *failure = first_failure(results);
  const assay_kernel &kernel = failure ? *failure->kernel : *results[0].kernel;
  auto sut = session.sut(kernel);
  Outcome run = run_problem(loaded.c.problem, *sut);
  const std::string why = run.ok() ? explain_run(run, *sut) + explain_shared_work(run.before, *sut)
                                   : run.check.message + "\n";
  const auto classes = classify(loaded.c.problem);
  const int exit = exit_of(results);
  nlohmann::json document = {{"file", loaded.path},   {"case", format_case(loaded.c)},
                             {"classes", classes},    {"results", nlohmann::json::array()},
                             {"kernel", kernel.name}, {"explanation", why},
                             {"exit", exit}};
  std::ostream &out = session.streams.out;
  if (!session.options.quiet)
    out << fmt::format("{}\nclasses: {}\n\n", format_problem(loaded.c.problem),
                       fmt::join(classes, ", "));
  for (const Replayed &r : results) {
    print(session, loaded, r);
    document["results"].push_back(to_json(loaded, r));
  }
  if (!session.options.quiet) {
    // The explanation of within_budget below begins with the same lines.
    if (failure != nullptr && why.rfind(failure->result.detail, 0) != 0)
      out << failure->result.detail;
    out << fmt::format("\n{} as the case stands:\n{}", kernel.name, why);
  }
  return session.finish(document, exit);
}

} // namespace assay
