// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/gate/repository_gate.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/tools/gate/error.h"
#include "properties/tools/process/process.h"

namespace assay::gate {
namespace {

namespace fs = std::filesystem;

/// Its trees stand in one place, so that a compiler cache finds them again: one gate at a time.
class Lock {
public:
  explicit Lock(const std::string &path)
      : fd_(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    if (fd_ < 0) throw GateError(kHarness, path + ": cannot write");
    if (flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
    close(fd_);
    throw GateError(kHarness, "another gate runs in this repository");
  }
  Lock(const Lock &) = delete;
  ~Lock() { close(fd_); }

private:
  int fd_;
};

json revision_json(const std::string &name, const std::string &commit) {
  return {{"name", name}, {"commit", commit}};
}

void gate_libraries(const Options &options, Gate &gate) {
  std::string work = (fs::temp_directory_path() / "assay-gate-XXXXXX").string();
  if (mkdtemp(work.data()) == nullptr) throw GateError(kHarness, work + ": cannot write");
  gate.set_out("findings");
  JudgedChange judged;
  judged.revisions.base = {.name = "base",
                           .program = options.program,
                           .plugin = fs::absolute(options.base_plugin).string(),
                           .target = options.target,
                           .program_shown = "assay"};
  judged.revisions.head = judged.revisions.base;
  judged.revisions.head.name = "head";
  judged.revisions.head.plugin = fs::absolute(options.head_plugin).string();
  make_folders(work, judged);
  gate.describe("base", {{"name", options.base_plugin}});
  gate.describe("head", {{"name", options.head_plugin}});
  gate.describe("mode", "libraries");
  gate.judge(judged);
  fs::remove_all(work);
}

void gate_repository(const Options &options, Gate &gate) {
  const Repository repository(options.folder.empty() ? "." : options.folder);
  const std::string named_base = repository.commit("--base", options.base);
  const std::string head = options.head.empty() ? repository.commit_of_working_tree()
                                                : repository.commit("--head", options.head);
  const std::string base = repository.merge_base(named_base, head);
  const std::string work = repository.root() + "/build/gate";
  fs::create_directories(work);
  const Lock lock(work + "/lock");
  gate.set_out(work + "/findings");
  gate.describe("base", revision_json(options.base, base));
  gate.describe("head", revision_json(options.head.empty() ? "working tree" : options.head, head));
  Proposal proposal{repository, base, head, repository.changes(base, head), work};
  json files = json::array();
  for (const Change &change : proposal.changes)
    files.push_back(change.path);
  gate.describe("changed", files);
  if (is_own(repository, base)) {
    gate.describe("mode", "own");
    gate_own(proposal, gate);
  } else {
    gate.describe("mode", "plugin");
    gate_plugin(proposal, gate);
  }
}

} // namespace

ChangeText Proposal::text(std::function<Room(const std::string &path)> room) const {
  const Repository &r = repository;
  const std::string b = base, h = head;
  return {.changes = changes,
          .room = std::move(room),
          .base = [&r, b](const std::string &path) { return r.file(b, path); },
          .head = [&r, h](const std::string &path) { return r.file(h, path); },
          .added = [&r, b, h](const std::string &path) { return r.added_lines(b, h, path); }};
}

void make_folders(const std::string &work, JudgedChange &judged) {
  for (Revision *revision : {&judged.revisions.base, &judged.revisions.head}) {
    revision->folder = work + "/" + revision->name + "-run";
    fs::remove_all(revision->folder);
    fs::create_directories(revision->folder);
  }
}

std::string reports_of_base(const Proposal &proposal, const std::string &judge) {
  const fs::path all = proposal.work + "/reports", own = all / (proposal.base + "-" + judge);
  std::error_code ignored;
  fs::create_directories(own, ignored);
  for (const fs::directory_entry &other : fs::directory_iterator(all, ignored))
    if (other.path() != own) fs::remove_all(other.path(), ignored);
  return own.string();
}

std::vector<AddedCase> added_cases(const ChangeText &text) {
  std::vector<AddedCase> out;
  for (const Change &change : text.changes)
    if (change.how == How::kAdded && text.room(change.path) == Room::kKept)
      out.push_back({change.path, text.head(change.path)});
  return out;
}

void build(const Gate &gate, const std::string &what, const std::vector<std::string> &words,
           const std::string &folder, const std::string &log) {
  gate.progress().step(what);
  const process::Ended ended = process::run(
      {.words = words, .folder = folder, .log = log, .waiting = gate.progress().waiting});
  if (ended.ok()) return;
  std::string why = process::last_line(ended.err);
  for (const std::string *text : {&ended.out, &ended.err})
    if (const size_t at = text->find("error"); at != std::string::npos) {
      const size_t begin = text->rfind('\n', at), from = begin == std::string::npos ? 0 : begin + 1;
      why = text->substr(from, std::min<size_t>(text->find('\n', at) - from, 300));
      break;
    }
  throw GateError(kFinding,
                  fmt::format("{} ended with {}: {} (whole log: {})", what, ended.code, why, log));
}

std::set<std::string> touched_kernels(const std::map<std::string, std::set<std::string>> &files,
                                      const std::vector<Change> &changes) {
  std::set<std::string> out;
  for (const auto &[kernel, paths] : files)
    for (const Change &change : changes)
      if (paths.count(change.path) > 0) out.insert(kernel);
  return out;
}

json run_gate(const Options &options, const Progress &progress) {
  Gate gate(options, progress);
  if (!options.base_plugin.empty())
    gate_libraries(options, gate);
  else
    gate_repository(options, gate);
  return gate.document();
}

} // namespace assay::gate
