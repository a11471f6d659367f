// SPDX-License-Identifier: Apache-2.0
// What the commands share: options, kernels, and ways to say what went wrong.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "properties/cli/session/streams.h"
#include "properties/run/runner.h"
#include "properties/sut/worker_sut.h"

namespace assay {

/// What `new plugin` writes.
struct NewPlugin {
  std::string what, folder, name = "my_kernel", like;
  bool paged = false, cascade = false, merge = false, cuda = false, python = false;
};

struct CliOptions {
  // Global.
  std::string json;
  uint64_t seed = 1;
  bool quiet = false;
  // Options of commands.
  std::string kernel, property, target, plugin, worker, out, findings, what, cells, only;
  std::string declared_by;                                 ///< file that kernels are held to
  std::string junit, sarif, markdown, html;                ///< report files of check and gate
  std::string base, head, base_plugin, head_plugin, judge; ///< of gate
  std::string against;                                     ///< of bench
  std::vector<std::string> kernels;                        ///< likewise
  std::vector<std::string> accept;
  std::string dir;                  ///< of campaign and fuzz
  std::vector<std::string> fuzzers; ///< likewise
  double hours = 0, slice = 0;      ///< likewise; slice: seconds
  int cases = 0, threads = 0, runs = 0, keys = 0, splits = 0;
  double budget = 0, patience = 0; ///< seconds
  bool replay_scores = false, verify = false, isolate = false, fail_fast = false;
  bool default_draw = false, usual_rules = false, declaration = false, all = false;
  bool host_only = false; ///< of bench
  std::vector<std::string> files, mutants;
  std::vector<int> tree_splits; ///< of bench
  NewPlugin fresh;

  /// --patience, or what is usual.
  std::chrono::milliseconds patience_or(std::chrono::milliseconds usual) const {
    return patience > 0 ? std::chrono::milliseconds(static_cast<int64_t>(1e3 * patience)) : usual;
  }
  bool json_to_out() const { return json == "-"; }
};

struct Session {
  CliOptions options;
  const assay_plugin *plugin;
  CliStreams streams;                            ///< for people
  std::ostream &json;                            ///< where --json - goes
  std::shared_ptr<WorkerPool> workers = nullptr; ///< with --worker
  std::string commit = "unknown";                ///< that this program was built from

  /// Kernels of the plugin on `target`; CliError when none is there or the target cannot run.
  std::vector<const assay_kernel *> kernels_on(const std::string &target) const;
  std::vector<const assay_kernel *> select_kernels(const std::string &name,
                                                   const std::string &target) const;
  std::vector<const Property *> select_properties(const std::string &name) const;
  /// T2 applies: our own kernels, whose MMA was measured, and those whose author says so.
  bool replays_scores() const { return !third_party() || options.replay_scores; }
  bool third_party() const { return !options.plugin.empty() || !options.worker.empty(); }
  /// Kernels of plugins run in processes of their own, ours with --isolate. Those of a worker run
  /// there.
  bool isolates() const { return options.isolate || !options.plugin.empty(); }
  /// `apart`: in a process of its own on simt, whatever isolates() says.
  std::unique_ptr<Sut> sut(const assay_kernel &kernel, WorkerUse use = WorkerUse::kRun,
                           bool apart = false) const;

  /// Wraps text in an ANSI colour on a terminal.
  std::string colour(const char *code, const std::string &text) const;
  std::string red(const std::string &text) const { return colour("31", text); }
  std::string green(const std::string &text) const { return colour("32", text); }
  /// Throws where finish() could not write: before the work, not after it.
  void check_json() const;
  /// Writes what is known before the work into --json FILE; nothing to standard output.
  void begin(const nlohmann::json &document) const;
  /// Writes --json FILE when given (- is the standard output) and returns `exit`; kExitHarness for
  /// a pass that could not be written down. Bytes that are not UTF-8 become U+FFFD.
  int finish(const nlohmann::json &document, int exit) const;
  /// " --plugin LIB --replay-scores --declared-by FILE", as far as they were given: a printed
  /// command needs them too.
  std::string kernel_options() const;
  /// As above, of a command that draws.
  std::string draw_options() const;
};

const char *target_name(assay_target target);
const char *verdict_word(CheckResult::Kind kind);
/// "60s", "5m" or "1h"; CliError otherwise.
double parse_duration(const std::string &text);
/// Throws CliError, naming the option, where no file can be written.
void require_writable_file(const std::string &option, const std::string &path);
/// As a word for a POSIX shell.
std::string shell_quoted(const std::string &word);

int command_list(Session &session);
int command_check(Session &session);
int command_replay(Session &session);
int command_shrink(Session &session);
int command_explain(Session &session);
/// explain --declaration.
int explain_declaration(Session &session);
int command_bench(Session &session);
int command_mutants(Session &session);
int command_new(Session &session);
int command_judge(Session &session);
int command_gate(Session &session);
int command_merge_reports(Session &session);
int command_campaign(Session &session);
int command_fuzz(Session &session);

} // namespace assay
