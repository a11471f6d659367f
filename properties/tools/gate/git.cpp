// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/gate/git.h"

#include <filesystem>

#include <fmt/format.h>

#include "properties/tools/gate/error.h"
#include "properties/tools/process/process.h"

namespace assay::gate {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> split(const std::string &text, char by) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(by, at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r'))
    text.pop_back();
  return text;
}

process::Ended ask(std::vector<std::string> arguments, const std::string &folder,
                   std::map<std::string, std::string> environment = {}) {
  arguments.insert(arguments.begin(), "git");
  return process::run({.words = std::move(arguments),
                       .folder = folder,
                       .environment = std::move(environment),
                       .log = "",
                       .waiting = nullptr});
}

} // namespace

Repository::Repository(const std::string &folder) {
  const process::Ended top = ask({"rev-parse", "--show-toplevel"}, folder);
  if (!top.ok())
    throw GateError(kUsage, "gate --base: not in a git repository: " + process::last_line(top.err));
  root_ = trimmed(top.out);
}

std::string Repository::git(std::vector<std::string> arguments, const std::string &folder) const {
  const std::string what = arguments[0];
  const process::Ended done = ask(std::move(arguments), folder.empty() ? root_ : folder);
  if (!done.ok())
    throw GateError(kHarness, fmt::format("git {}: {}", what, process::last_line(done.err)));
  return done.out;
}

std::string Repository::commit(const std::string &option, const std::string &name) const {
  const process::Ended found =
      ask({"rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}"}, root_);
  if (!found.ok()) throw GateError(kUsage, fmt::format("{} {}: names no commit", option, name));
  return trimmed(found.out);
}

std::string Repository::commit_of_working_tree() const {
  const fs::path own = trimmed(git({"rev-parse", "--absolute-git-dir"}));
  const fs::path index = own / "assay-gate-index";
  std::error_code ignored;
  fs::copy_file(own / "index", index, fs::copy_options::overwrite_existing, ignored);
  // Git compares the text of files that changed no earlier than the index. A copy is as old as what
  // it copies, or an edit of equal length in the second of the last commit would not be seen.
  const auto age = fs::last_write_time(own / "index", ignored);
  if (!ignored) fs::last_write_time(index, age, ignored);
  const std::map<std::string, std::string> environment = {{"GIT_INDEX_FILE", index.string()},
                                                          {"GIT_AUTHOR_NAME", "assay"},
                                                          {"GIT_AUTHOR_EMAIL", "assay"},
                                                          {"GIT_COMMITTER_NAME", "assay"},
                                                          {"GIT_COMMITTER_EMAIL", "assay"}};
  const auto step = [&](std::vector<std::string> words) {
    const process::Ended done = ask(std::move(words), root_, environment);
    if (!done.ok())
      throw GateError(kHarness,
                      "git: the working tree cannot be read: " + process::last_line(done.err));
    return trimmed(done.out);
  };
  step({"add", "--all"});
  // Trees that an interrupted gate left behind.
  step({"rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "build/gate"});
  const std::string tree = step({"write-tree"});
  const std::string out = step({"commit-tree", tree, "-p", "HEAD", "-m", "working tree"});
  fs::remove(index, ignored);
  return out;
}

std::string Repository::merge_base(const std::string &base, const std::string &head) const {
  const process::Ended found = ask({"merge-base", base, head}, root_);
  return found.ok() ? trimmed(found.out) : base;
}

std::vector<Change> Repository::changes(const std::string &base, const std::string &head) const {
  const auto fields = split(git({"diff", "--name-status", "--no-renames", "-z", base, head}), '\0');
  std::vector<Change> out;
  for (size_t i = 0; i + 1 < fields.size(); i += 2)
    out.push_back({fields[i] == "A"   ? How::kAdded
                   : fields[i] == "D" ? How::kDeleted
                                      : How::kChanged,
                   fields[i + 1]});
  return out;
}

std::vector<std::string> Repository::added_lines(const std::string &base, const std::string &head,
                                                 const std::string &path) const {
  std::vector<std::string> out;
  bool body = false; // behind the header, in which lines begin with +++
  for (const std::string &line :
       split(git({"diff", "--no-renames", "--no-ext-diff", "-U0", base, head, "--", path}), '\n')) {
    body = body || line.starts_with("@@");
    if (body && line.starts_with("+")) out.push_back(line.substr(1));
  }
  return out;
}

bool Repository::has(const std::string &commit, const std::string &path) const {
  return ask({"cat-file", "-e", commit + ":" + path}, root_).ok();
}

std::string Repository::file(const std::string &commit, const std::string &path) const {
  const process::Ended found = ask({"show", commit + ":" + path}, root_);
  return found.ok() ? found.out : "";
}

std::vector<std::string> Repository::files(const std::string &commit) const {
  return split(git({"ls-tree", "-r", "--name-only", "-z", commit}), '\0');
}

Worktree::Worktree(const Repository &repository, std::string folder, const std::string &commit)
    : repository_(repository), folder_(std::move(folder)) {
  remove();
  fs::create_directories(fs::path(folder_).parent_path());
  repository_.git({"worktree", "add", "--quiet", "--force", "--detach", folder_, commit});
}

Worktree::~Worktree() { remove(); }

void Worktree::remove() const {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  try {
    repository_.git({"worktree", "prune"});
  } catch (const GateError &) { // the next run prunes what is left
  }
}

void Worktree::take(const std::string &commit, const Change &change) const {
  if (change.how == How::kDeleted)
    fs::remove(fs::path(folder_) / change.path);
  else
    repository_.git({"checkout", "--quiet", commit, "--", change.path}, folder_);
}

} // namespace assay::gate
