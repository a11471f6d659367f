// SPDX-License-Identifier: Apache-2.0
// A change in a git repository: both revisions built, guards read, touched kernels named.
#pragma once

#include <map>

#include "properties/tools/gate/gate.h"
#include "properties/tools/gate/guards.h"

namespace assay::gate {

/// The change under judgement.
struct Proposal {
  const Repository &repository;
  std::string base, head; ///< commits
  std::vector<Change> changes;
  std::string work; ///< folder for trees, builds and what they write

  ChangeText text(std::function<Room(const std::string &path)> room) const;
};

/// The gate of a repository with an assay.toml: both revisions are judged by the running assay.
void gate_plugin(const Proposal &proposal, Gate &gate);

/// The gate of this repository: head's kernels in base's tree, judged by the assay built from it;
/// or, where only tests and generators change, head's mutants.
void gate_own(const Proposal &proposal, Gate &gate);

/// Whether the commit is of this repository.
bool is_own(const Repository &repository, const std::string &commit);

/// Runs a step of a build, told as `what`; its first error in a GateError (finding) where it fails.
void build(const Gate &gate, const std::string &what, const std::vector<std::string> &words,
           const std::string &folder, const std::string &log);

/// Folders in `work` for what the revisions write, new in every run.
void make_folders(const std::string &work, JudgedChange &judged);

/// Folder in which reports of base are kept, for gates of the same base by the same `judge`; those
/// of others are removed.
std::string reports_of_base(const Proposal &proposal, const std::string &judge);

/// The kept findings that it adds.
std::vector<AddedCase> added_cases(const ChangeText &text);

/// Kernels whose files are among the changes.
std::set<std::string> touched_kernels(const std::map<std::string, std::set<std::string>> &files,
                                      const std::vector<Change> &changes);

} // namespace assay::gate
