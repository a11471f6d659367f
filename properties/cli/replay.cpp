// SPDX-License-Identifier: Apache-2.0
// replay, shrink and explain: the commands that take a case from a file.
#include <ostream>

#include <fmt/format.h>

#include "properties/cli/session.h"
#include "properties/gen/classify.h"
#include "properties/invariants/explain.h"

namespace assay {
namespace {

/// A case with everything that the command line and the file leave open decided.
struct Loaded {
  std::string path;
  Case c;
  std::vector<const assay_kernel *> kernels;
  std::vector<const Property *> properties;
};

Loaded load(const Session &session, const std::string &path) {
  Loaded out{path, load_case(path), {}, {}};
  const CliOptions &o = session.options;
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
  return out;
}

struct Replayed {
  const assay_kernel *kernel;
  const Property *property;
  CheckResult result;
};

std::vector<Replayed> replay(const Session &session, const Loaded &loaded) {
  std::vector<Replayed> out;
  for (const assay_kernel *kernel : loaded.kernels)
    for (const Property *property : loaded.properties) {
      if (!applies(*property, *kernel)) continue;
      auto sut = session.sut(*kernel);
      bool threw = false;
      out.push_back({kernel, property, checked(*property, loaded.c.problem, *sut, &threw)});
      if (threw) throw CliError(kExitHarness, loaded.path + ": " + out.back().result.message);
    }
  if (out.empty())
    throw CliError(kExitUsage, fmt::format("{}: property {} says nothing about this kernel",
                                           loaded.path, loaded.properties[0]->name));
  return out;
}

int exit_of(const std::vector<Replayed> &results) {
  bool decided = false, undecided = false;
  for (const Replayed &r : results) {
    if (r.result.failed()) return kExitFinding;
    decided |= r.result.passed();
    undecided |= r.result.kind == CheckResult::Kind::kUndecided;
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

void print(const Session &session, const Loaded &loaded, const Replayed &r) {
  bool good = r.result.passed();
  if (session.options.quiet && good) return;
  std::string verdict = verdict_word(r.result.kind);
  verdict.resize(9, ' ');
  session.streams.out << fmt::format("{} {:<24} {:<26} {}{}\n",
                                     good ? session.green(verdict) : session.red(verdict),
                                     r.kernel->name, r.property->name, loaded.path,
                                     r.result.message.empty() ? "" : ": " + r.result.message);
}

/// The first failing pair of a case.
const Replayed *first_failure(const std::vector<Replayed> &results) {
  for (const Replayed &r : results)
    if (r.result.failed()) return &r;
  return nullptr;
}

} // namespace

int command_replay(Session &session) {
  int exit = kExitPass;
  nlohmann::json document = {{"results", nlohmann::json::array()}};
  for (const std::string &path : session.options.files) {
    Loaded loaded = load(session, path);
    auto results = replay(session, loaded);
    exit = worse(exit, exit_of(results));
    for (const Replayed &r : results) {
      print(session, loaded, r);
      document["results"].push_back({{"file", path},
                                     {"kernel", r.kernel->name},
                                     {"property", r.property->name},
                                     {"verdict", verdict_word(r.result.kind)},
                                     {"message", r.result.message}});
    }
  }
  document["exit"] = exit;
  session.write_json(document);
  return exit;
}

int command_shrink(Session &session) {
  Loaded loaded = load(session, session.options.files[0]);
  auto results = replay(session, loaded);
  const Replayed *failure = first_failure(results);
  if (failure == nullptr) {
    session.streams.out << fmt::format("{}: does not fail, nothing to shrink\n", loaded.path);
    return exit_of(results);
  }
  auto sut = session.sut(*failure->kernel);
  ShrinkStats stats;
  Case small = loaded.c;
  small.kernel = failure->kernel->name;
  small.property = failure->property->name;
  small.target = target_name(failure->kernel->target);
  auto fails = [&](const Problem &p) {
    return checked(*failure->property, p, *sut, nullptr).failed();
  };
  small.problem = shrink(loaded.c.problem, fails, {.checks = 5000, .seconds = 60}, &stats);
  CheckResult result = checked(*failure->property, small.problem, *sut, nullptr);
  small.note = result.message;
  std::string path = session.options.out.empty() ? loaded.path + ".min" : session.options.out;
  write_case(path, small);
  if (!session.options.quiet)
    session.streams.out << fmt::format("{} {}: {}\n", small.kernel, small.property, result.message);
  session.streams.out << fmt::format("{}: {} steps, {} tried{}\n", path, stats.accepted,
                                     stats.checks, stats.exhausted ? ", budget spent" : "");
  return kExitFinding;
}

int command_explain(Session &session) {
  Loaded loaded = load(session, session.options.files[0]);
  auto results = replay(session, loaded);
  std::ostream &out = session.streams.out;
  out << format_problem(loaded.c.problem) << "\n";
  out << fmt::format("classes: {}\n\n", fmt::join(classify(loaded.c.problem), ", "));
  for (const Replayed &r : results)
    print(session, loaded, r);
  const Replayed *failure = first_failure(results);
  const assay_kernel &kernel = failure ? *failure->kernel : *results[0].kernel;
  if (failure != nullptr && !failure->result.detail.empty()) out << failure->result.detail;
  auto sut = session.sut(kernel);
  Outcome run = run_problem(loaded.c.problem, *sut);
  out << fmt::format("\n{} as the case stands:\n", kernel.name);
  if (!run.ok())
    out << run.check.message << "\n";
  else
    out << explain_run(run, *sut);
  return exit_of(results);
}

} // namespace assay
