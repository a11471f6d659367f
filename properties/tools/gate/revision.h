// SPDX-License-Identifier: Apache-2.0
// One revision of a gate: an assay, the kernels it runs, and its reports on them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace assay::gate {

using nlohmann::json;

/// What the user sees of long work.
struct Progress {
  std::function<void(const std::string &line)> step; ///< a step begins
  std::function<void(double seconds)> waiting;       ///< a few times a second while it takes
};

struct Revision {
  std::string name = {};        ///< "base" or "head"
  std::string program = {};     ///< the assay that judges
  std::string plugin = {};      ///< the library with the kernels; empty: the program's own
  std::string worker = {};      ///< in its place, the command that serves them
  std::string declaration = {}; ///< file that kernels are held to; empty: what they declare
  std::string target = "simt";
  std::string assumed = {};  ///< words of --assume; empty: none
  std::string findings = {}; ///< folder of kept findings; empty: the program's own
  std::string folder = {};   ///< for what is written; there already
  /// As reproduce lines name them, where trees are gone in the end; empty: as they are.
  std::string program_shown = {}, plugin_shown = {}, worker_shown = {};
  /// Where reports of a commit are kept for the next gate, which asks the same of it; empty:
  /// nowhere. Only those without findings are, as cases lie in folders that go.
  std::string kept_reports = {};
  /// The kernels of a revision whose program has them, as a library that is timed beside another's.
  std::string own_library = {};
  /// Makes program and library; called before either is used, again and again. Empty: they are
  /// there.
  std::function<void()> build = nullptr;

  bool has_own_kernels() const { return plugin.empty() && worker.empty(); }
  const std::string &library() const { return plugin.empty() ? own_library : plugin; }
};

/// One run of `check`.
struct CheckOrder {
  std::string kernel;
  int cases = 10;
  uint64_t seed = 1;
  int round = 1;      ///< names its files
  double seconds = 0; ///< after which it is to end with what it has; 0: never
};

/// `assay list kernels` as data. GateError where it fails, with the program's own words.
json list_kernels(const Revision &revision, const Progress &progress);

/// `assay check` as data, complete, of this run or a kept one; GateError where there is no complete
/// report.
json check(const Revision &revision, const CheckOrder &order, const Progress &progress);

/// As one word of a shell.
std::string shell_quoted(const std::string &text);

/// What three replays of one case say; one where it takes long.
struct Replays {
  int runs = 0, fails = 0;
  int alike = 0;       ///< failures with the fingerprint asked for (or without any)
  std::string message; ///< message of the last failure
};

/// Replays the case on the kernel and property that it names, each time in a new process. A kernel
/// that is not there fails nothing.
Replays replay(const Revision &revision, const std::string &file, const std::string &fingerprint,
               const Progress &progress);

/// What to type to see the case fail again; in a tree that is gone by then, once it is built.
std::string replay_line(const Revision &revision, const std::string &file);

} // namespace assay::gate
