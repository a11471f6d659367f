// SPDX-License-Identifier: Apache-2.0
// Whether a change of kernels may go in: head's kernels judged by base's harness and declaration.
#pragma once

#include <set>

#include <nlohmann/json.hpp>

#include "properties/tools/gate/findings.h"
#include "properties/tools/gate/regressions.h"

namespace assay::gate {

struct Options {
  std::string program; ///< this assay
  std::string version;
  /// Either two libraries or a repository.
  std::string base_plugin, head_plugin;
  std::string base, head; ///< names of commits; head empty: the working tree
  std::string folder;     ///< in the repository; empty: the current one
  std::string target = "simt";
  std::vector<std::string> assumed; ///< words of --assume
  std::string out; ///< where cases go; empty: build/gate/findings, of two libraries findings
  uint64_t seed = 1;
  double budget = 0; ///< seconds of everything; 0: what assay.toml says, or ten minutes
  std::function<double(const std::string &text)> duration; ///< reads "10m"; throws
  int cases = 0;    ///< cases of the long run, per kernel and property; 0: by the budget
  bool all = false; ///< every kernel as if the change touched it
  std::vector<std::string> accept; ///< ids of red lines that a person let pass
};

/// A case that a change adds to the kept findings.
struct AddedCase {
  std::string path, text;
};

/// What is judged, once both revisions are built.
struct JudgedChange {
  RevisionPair revisions;
  std::vector<std::string> kernels; ///< that are judged; empty: all
  std::set<std::string> touched;    ///< kernels of head that the change concerns
  bool all_touched = true;
  std::vector<AddedCase> added;
  RedLines red;
};

/// A gate in progress; what it knows becomes the document of `--json`.
class Gate {
public:
  Gate(const Options &options, const Progress &progress);

  void set_budget(double seconds) { options_.budget = seconds; }
  /// Where none was given.
  void set_out(const std::string &folder) {
    if (options_.out.empty()) options_.out = folder;
  }

  /// Runs both revisions within what is left of the budget and adds what they show. A head that
  /// cannot be asked for its kernels is a red line.
  void judge(JudgedChange &judged);

  void add(RedLines red);
  void add_figures(Figures figures);
  void note(std::string text) { notes_.push_back(std::move(text)); }
  void describe(const char *key, json value) { document_[key] = std::move(value); }
  /// The result of a run that says nothing about kernels: `assay mutants`.
  void harness_failed(const std::string &why);

  /// Verdict and all: "exit" is the code to end with.
  json document() const;
  double seconds() const;
  const Options &options() const { return options_; }
  const Progress &progress() const { return progress_; }

private:
  /// One run of one kernel on both revisions.
  struct Round {
    int number;
    std::string kernel;
    json base, head;
  };
  void hold_declarations(JudgedChange &judged);
  /// The kernels of head that are asked for: those that the change touches, or the others.
  /// GateError for unknown ones.
  std::vector<std::string> kernels_of(const JudgedChange &judged, bool touched) const;
  /// One run of both revisions; false where head gave no report, which is a red line.
  bool run(const JudgedChange &judged, const CheckOrder &order);
  /// Those that the change touches, then the others unless it is blocked; false where head gave no
  /// report.
  bool short_round(const JudgedChange &judged);
  void long_round(const JudgedChange &judged);
  /// A property, for these kernels in what is left of the budget; 0: too little.
  int long_cases(const std::vector<std::string> &kernels) const;
  /// On a GPU: how fast the touched kernels are that both revisions have.
  void race(const JudgedChange &judged);
  void judge_round(const JudgedChange &judged, const Round &round);
  void judge_added(const JudgedChange &judged);
  void summarise(const JudgedChange &judged);
  bool blocked() const; ///< by a finding
  json kernel_row(const JudgedChange &judged, const std::string &name) const;
  bool red() const;

  Options options_;
  Progress progress_;
  double start_;
  json document_ = json::object();
  RedLines red_;
  std::vector<std::string> notes_, failures_;
  std::set<std::string> of_base_, of_head_; ///< names of kernels on the target
  std::vector<Round> rounds_;
  std::vector<Classed> findings_;
  std::vector<ErrorShift> shifts_;
};

/// The whole gate: two libraries, a plugin's repository, or this one.
json run_gate(const Options &options, const Progress &progress);

} // namespace assay::gate
