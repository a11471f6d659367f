// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <fmt/format.h>

#include "properties/tools/gate/error.h"
#include "properties/tools/gate/include_graph.h"
#include "properties/tools/gate/project.h"
#include "properties/tools/gate/repository_gate.h"

namespace assay::gate {
namespace {

namespace fs = std::filesystem;

/// `kept`: base's findings, for both revisions: head must not lose one.
Revision revision_of(const Gate &gate, const std::string &name, const Project &project,
                     const std::string &tree, const std::string &kept) {
  const std::string worker =
      "sh -c " + shell_quoted("cd " + shell_quoted(tree) + " && exec " + project.worker);
  const bool library = project.worker.empty();
  return {.name = name,
          .program = gate.options().program,
          .plugin = library ? tree + "/" + project.library : "",
          .worker = library ? "" : worker,
          .target = gate.options().target,
          .findings = kept,
          .program_shown = "assay",
          .plugin_shown = project.library,
          .worker_shown = project.worker};
}

/// Another assay may judge otherwise: its file's size and time.
std::string stamp_of(const std::string &program) {
  std::error_code ignored;
  const auto time = fs::last_write_time(program, ignored).time_since_epoch().count();
  return fmt::format("{}-{}", fs::file_size(program, ignored), time);
}

void build_plugin(const Gate &gate, const Project &project, const Worktree &tree,
                  const Revision &revision) {
  if (project.command.empty()) return;
  build(gate, "build " + revision.name, {"sh", "-c", project.command}, tree.folder(),
        tree.folder() + ".log");
  if (project.worker.empty() && !fs::exists(revision.plugin))
    throw GateError(kFinding, fmt::format("build {}: made no {}", revision.name, project.library));
}

/// By the sources that assay.toml names; everything where it names none.
void find_touched(const Proposal &proposal, const Project &project, const ChangeText &text,
                  bool all, JudgedChange &judged) {
  judged.kernels = project.kernels;
  judged.all_touched = all || project.sources.empty();
  if (judged.all_touched) return;
  const IncludeGraph graph(proposal.repository.files(proposal.head), text.head);
  std::map<std::string, std::set<std::string>> files;
  for (const auto &[kernel, sources] : project.sources)
    files[kernel] = graph.reach(sources);
  judged.touched = touched_kernels(files, proposal.changes);
  // A change of code that is none of theirs may be one of the build.
  std::set<std::string> known;
  for (const auto &[kernel, paths] : files)
    known.insert(paths.begin(), paths.end());
  for (const Change &change : proposal.changes)
    if (text.room(change.path) == Room::kKernel && known.count(change.path) == 0)
      judged.all_touched = true;
}

} // namespace

void gate_plugin(const Proposal &proposal, Gate &gate) {
  const auto project_at = [&](const std::string &commit, const char *revision) {
    const std::string text = proposal.repository.file(commit, "assay.toml");
    if (text.empty())
      throw GateError(kUsage, fmt::format("assay.toml: not there in {} ({})", revision, commit));
    return parse_project(text, fmt::format("assay.toml of {}", revision));
  };
  const Project of_base = project_at(proposal.base, "base");
  if (!(gate.options().budget > 0) && !of_base.budget.empty())
    gate.set_budget(gate.options().duration(of_base.budget));
  const ChangeText text =
      proposal.text([&](const std::string &path) { return plugin_room(path, of_base.findings); });
  JudgedChange judged;
  judged.red = guarded(text);
  judged.added = added_cases(text);
  if (!gate.options().all && !touches(text, Room::kKernel) && !touches(text, Room::kJudge) &&
      !touches(text, Room::kGenerator)) {
    gate.add(std::move(judged.red));
    return gate.describe("plan", {{"kind", "nothing"}});
  }
  find_touched(proposal, of_base, text, gate.options().all, judged);
  const Worktree base(proposal.repository, proposal.work + "/base", proposal.base);
  const Worktree head(proposal.repository, proposal.work + "/head", proposal.head);
  const Project of_head = project_at(proposal.head, "head");
  const std::string kept = base.folder() + "/" + of_base.findings;
  judged.revisions = {revision_of(gate, "base", of_base, base.folder(), kept),
                      revision_of(gate, "head", of_head, head.folder(), kept)};
  make_folders(proposal.work, judged);
  judged.revisions.base.kept_reports =
      reports_of_base(proposal, gate.options().target + "-" + stamp_of(gate.options().program));
  try {
    build_plugin(gate, of_base, base, judged.revisions.base);
  } catch (const GateError &e) {
    throw GateError(kHarness, e.what());
  }
  try {
    build_plugin(gate, of_head, head, judged.revisions.head);
  } catch (const GateError &e) {
    gate.add(std::move(judged.red));
    return gate.add({red_line("does-not-build", "", e.what())});
  }
  gate.judge(judged);
}

} // namespace assay::gate
