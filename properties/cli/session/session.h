// SPDX-License-Identifier: Apache-2.0
// What every command has: options, kernels, and ways to say what went wrong.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "properties/cli/session/streams.h"
#include "properties/run/runner.h"
#include "properties/sut/forker.h"
#include "properties/sut/worker_sut.h"

namespace assay {

/// What every command has, and whose kernels it runs. Options of one command are in
/// properties/cli/commands/commands.h.
struct SessionOptions {
  std::string json;
  uint64_t seed = 1;
  bool quiet = false;
  std::string plugin, worker;
  std::string declared_by; ///< file that kernels are held to
  double patience = 0;     ///< seconds
  bool replay_scores = false, isolate = false;
  Assumed assumed; ///< of --assume

  /// --patience, or what is usual.
  std::chrono::milliseconds patience_or(std::chrono::milliseconds usual) const {
    return patience > 0 ? std::chrono::milliseconds(static_cast<int64_t>(1e3 * patience)) : usual;
  }
  bool json_to_out() const { return json == "-"; }
};

struct Session {
  SessionOptions options;
  const assay_plugin *plugin;
  CliStreams streams;                            ///< for people
  std::ostream &json;                            ///< where --json - goes
  std::shared_ptr<WorkerPool> workers = nullptr; ///< with --worker
  std::string commit = "unknown";                ///< that this program was built from
  std::shared_ptr<Forker> forker = nullptr;      ///< of processes for kernels

  /// Kernels of the plugin on `target`; CliError when none is there or the target cannot run.
  std::vector<const assay_kernel *> kernels_on(const std::string &target) const;
  std::vector<const assay_kernel *> select_kernels(const std::string &name,
                                                   const std::string &target) const;
  std::vector<const Property *> select_properties(const std::string &name) const;
  /// T2 applies: our own kernels where their MMA was measured, and those whose author says so.
  bool replays_scores(const assay_kernel &kernel) const;
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
  /// " --plugin LIB --replay-scores --declared-by FILE --assume WORDS", as far as they were given:
  /// a printed command needs them too.
  std::string kernel_options() const;

private:
  std::unique_ptr<Sut> plain_sut(const assay_kernel &kernel, WorkerUse use, bool apart) const;
};

const char *target_name(assay_target target);
const char *verdict_word(CheckResult::Kind kind);
/// "60s", "5m" or "1h"; CliError otherwise.
double parse_duration(const std::string &text);
/// "no_empty_requests,finite_pool" of --assume; CliError for other words.
Assumed parse_assumed(const std::string &text);
/// Throws CliError, naming the option, where no file can be written.
void require_writable_file(const std::string &option, const std::string &path);
/// As a word for a POSIX shell.
std::string shell_quoted(const std::string &word);

} // namespace assay
