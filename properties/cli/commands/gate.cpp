// SPDX-License-Identifier: Apache-2.0
// gate: whether a change of kernels may go in.
#include "properties/tools/gate/gate.h"

#include <chrono>
#include <filesystem>
#include <ostream>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/cli/commands/commands.h"
#include "properties/cli/session/own_program.h"
#include "properties/tools/gate/error.h"
#include "properties/tools/gate/reports.h"
#include "properties/tools/process/process.h"

namespace assay {
namespace {

/// Two libraries, or a repository.
void check_sources(const GateOptions &o) {
  const bool libraries = !o.base_plugin.empty() || !o.head_plugin.empty();
  if (libraries && (o.base_plugin.empty() || o.head_plugin.empty()))
    throw CliError(kExitUsage, "gate: --base-plugin and --head-plugin go together");
  if (libraries == !o.base.empty())
    throw CliError(kExitUsage, "gate: give --base REF, or --base-plugin and --head-plugin");
  if (libraries && !o.head.empty())
    throw CliError(kExitUsage, "gate: --head names a commit; two libraries have none");
  for (const std::string &id : o.accept)
    if (const std::string why = gate::why_not_accepted(id); !why.empty())
      throw CliError(kExitUsage, fmt::format("gate: --accept {}: {}", id, why));
  if (o.target != "cuda" && !o.target.empty() && o.target != "simt")
    throw CliError(kExitUsage, fmt::format("unknown target {}; simt or cuda", o.target));
  if (o.target != "cuda") return;
  if (const std::string reason = target_unavailable(ASSAY_TARGET_CUDA); !reason.empty())
    throw CliError(kExitUnsupported, fmt::format("target cuda: {}", reason));
}

gate::Options options_of(const GateOptions &o, uint64_t seed, std::vector<std::string> assumed) {
  gate::Options out;
  out.program = o.judge.empty() ? own_program() : std::filesystem::absolute(o.judge).string();
  out.version = ASSAY_VERSION;
  out.base_plugin = o.base_plugin;
  out.head_plugin = o.head_plugin;
  out.base = o.base;
  out.head = o.head;
  if (!o.target.empty()) out.target = o.target;
  out.assumed = std::move(assumed);
  if (!o.out.empty()) out.out = o.out;
  out.seed = seed;
  out.budget = o.budget;
  out.duration = parse_duration;
  out.cases = o.cases;
  out.all = o.all;
  out.accept = o.accept;
  return out;
}

/// Each step with the seconds since the start, so that a log says where the time goes.
gate::Progress progress_of(const Session &session) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const bool quiet = session.options.quiet, live = session.streams.terminal && !quiet;
  std::ostream &out = session.streams.out;
  const auto step = [&out, quiet, live, start](const std::string &line) {
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (!quiet)
      out << fmt::format("{}{:>5.0f} s  {}\n", live ? "\r\033[K" : "", seconds, line) << std::flush;
  };
  const auto waiting = [&out, live](double seconds) {
    if (live) out << fmt::format("\r\033[K{:>5.0f} s of this", seconds) << std::flush;
  };
  return {.step = step, .waiting = waiting};
}

} // namespace

int command_gate(Session &session, const GateOptions &options) {
  check_sources(options);
  const ReportFiles reports(session, options.reports,
                            {gate::junit, gate::sarif, gate::markdown, gate::html});
  session.begin({{"complete", false}, {"seed", session.options.seed}, {"exit", kExitHarness}});
  nlohmann::json document;
  try {
    document =
        gate::run_gate(options_of(options, session.options.seed, words_of(session.options.assumed)),
                       progress_of(session));
  } catch (const gate::GateError &e) {
    throw CliError(static_cast<ExitCode>(e.code), e.what());
  } catch (const process::ProcessError &e) {
    throw CliError(kExitHarness, e.what());
  }
  int exit = document.at("exit").get<int>();
  const std::string word = gate::verdict_word(document);
  if (session.streams.terminal && !session.options.quiet) session.streams.out << "\r\033[K";
  session.streams.out << fmt::format("{}: {}\n",
                                     exit == kExitPass ? session.green(word) : session.red(word),
                                     gate::summary_line(document));
  if (!session.options.quiet || exit != kExitPass) session.streams.out << gate::screen(document);
  document["exit"] = exit = reports.write(document, exit);
  return session.finish(document, exit);
}

} // namespace assay
