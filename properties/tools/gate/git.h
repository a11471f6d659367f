// SPDX-License-Identifier: Apache-2.0
// What the gate asks of git.
#pragma once

#include <string>
#include <vector>

namespace assay::gate {

enum class How { kAdded, kChanged, kDeleted };

/// One file that differs between base and head.
struct Change {
  How how;
  std::string path; ///< from the root of the repository
};

class Repository {
public:
  /// That `folder` lies in; GateError (usage) where there is none.
  explicit Repository(const std::string &folder);

  const std::string &root() const { return root_; }
  /// The commit a name stands for; GateError (usage) names the option where it stands for none.
  std::string commit(const std::string &option, const std::string &name) const;
  /// A commit of the files as they lie there, new ones included that git does not ignore. Neither
  /// branch nor index changes.
  std::string commit_of_working_tree() const;
  /// Where the two went apart; `base` when they have nothing in common.
  std::string merge_base(const std::string &base, const std::string &head) const;
  /// Renames are a deletion and an addition.
  std::vector<Change> changes(const std::string &base, const std::string &head) const;
  /// Lines that head adds to the file, without the leading plus.
  std::vector<std::string> added_lines(const std::string &base, const std::string &head,
                                       const std::string &path) const;
  /// The file at a commit; empty where it is not there.
  std::string file(const std::string &commit, const std::string &path) const;
  bool has(const std::string &commit, const std::string &path) const;
  std::vector<std::string> files(const std::string &commit) const;

  /// git with these arguments, in the root or in `folder`; GateError where it fails.
  std::string git(std::vector<std::string> arguments, const std::string &folder = "") const;

private:
  std::string root_;
};

/// A checkout of a commit beside the repository's own; removed in the end.
class Worktree {
public:
  /// `folder` is removed first when an earlier run left it.
  Worktree(const Repository &repository, std::string folder, const std::string &commit);
  Worktree(const Worktree &) = delete;
  ~Worktree();

  const std::string &folder() const { return folder_; }
  /// The file as it is in `commit`, or without it where that has none.
  void take(const std::string &commit, const Change &change) const;

private:
  void remove() const;
  const Repository &repository_;
  std::string folder_;
};

} // namespace assay::gate
