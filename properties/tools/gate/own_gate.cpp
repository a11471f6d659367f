// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "properties/tools/gate/error.h"
#include "properties/tools/gate/harness_gate.h"
#include "properties/tools/gate/include_graph.h"
#include "properties/tools/gate/repository_gate.h"

namespace assay::gate {
namespace {

constexpr const char *kKernelTable = "kernels/api/kernels.def";
constexpr const char *kFigures = "kernels/decode/figures.csv";

/// The preset of a target has its name.
std::string program_of(const std::string &tree, const std::string &target) {
  return tree + "/build/" + target + "/assay";
}

/// What no kernel's files hold but every kernel is made with.
bool of_every_kernel(const std::string &path) {
  return path.starts_with("kernels/api/") || path.ends_with("CMakeLists.txt");
}

void find_touched(const Proposal &proposal, const ChangeText &text, bool all,
                  JudgedChange &judged) {
  const IncludeGraph graph(proposal.repository.files(proposal.head), text.head);
  const auto files = own_kernel_files(graph, text.head);
  judged.touched = touched_kernels(files, proposal.changes);
  judged.all_touched = all;
  for (const Change &change : proposal.changes) {
    if (text.room(change.path) != Room::kKernel) continue;
    // A file that went may have been anyone's.
    if (of_every_kernel(change.path) || change.how == How::kDeleted) judged.all_touched = true;
  }
  judged.all_touched |= judged.touched.size() == files.size();
}

/// Fewer things to build: the program alone. Without precompiled headers, whose bytes follow the
/// path of a tree: so a compiler cache has what both revisions share.
void build_assay(const Gate &gate, const std::string &revision, const Worktree &tree,
                 bool mutants) {
  const std::string log = tree.folder() + ".log";
  const std::string jobs = std::to_string(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  const std::string &target = gate.options().target;
  build(gate, "configure " + revision,
        {"cmake", "--preset", target, "-DASSAY_TESTS=OFF", "-DASSAY_INSTALL=OFF",
         "-DASSAY_PRECOMPILE=OFF", mutants ? "-DASSAY_MUTANTS=ON" : "-DASSAY_MUTANTS=OFF"},
        tree.folder(), log);
  std::vector<std::string> words = {"cmake", "--build", "--preset", target,
                                    "-j",    jobs,      "--target", "assay"};
  if (target == "cuda") words.emplace_back("assay_shared"); // for Gate::race
  build(gate, "build " + revision, words, tree.folder(), log);
}

/// A base that does not build is no fault of the change.
void build_base(const Gate &gate, const Worktree &tree, bool mutants) {
  try {
    build_assay(gate, "base", tree, mutants);
  } catch (const GateError &e) {
    throw GateError(kHarness, e.what());
  }
}

Revision revision_of(const Gate &gate, const std::string &name, const std::string &tree) {
  return {.name = name,
          .program = program_of(tree, gate.options().target),
          .target = gate.options().target,
          .program_shown = program_of(".", gate.options().target).substr(2),
          .own_library = tree + "/build/" + gate.options().target + "/libassay.so"};
}

/// Head's kernels in base's tree.
void overlay(const Proposal &proposal, const Worktree &tree) {
  for (const Change &change : proposal.changes)
    if (overlaid(change.path)) tree.take(proposal.head, change);
}

void judge_kernels(const Proposal &proposal, const ChangeText &text, JudgedChange &judged,
                   Gate &gate) {
  find_touched(proposal, text, gate.options().all, judged);
  const Worktree head(proposal.repository, proposal.work + "/head", proposal.base);
  overlay(proposal, head);
  const std::string base_folder = proposal.work + "/base";
  judged.revisions = {revision_of(gate, "base", base_folder),
                      revision_of(gate, "head", head.folder())};
  make_folders(proposal.work, judged);
  std::optional<Worktree> base; // where reports of it are kept, it may not be needed
  judged.revisions.base.kept_reports = reports_of_base(proposal, gate.options().target);
  judged.revisions.base.build = [&] {
    if (base) return;
    base.emplace(proposal.repository, base_folder, proposal.base);
    build_base(gate, *base, false);
  };
  try {
    build_assay(gate, "head's kernels in base's tree", head, false);
  } catch (const GateError &e) {
    gate.add(std::move(judged.red));
    return gate.add({red_line("does-not-build", "", e.what())});
  }
  gate.add_figures(compare_figures(text.base(kFigures), text.head(kFigures)));
  gate.judge(judged);
}

/// Whether head's harness still lets right kernels pass and notices wrong ones.
void judge_harness(const Proposal &proposal, JudgedChange &judged, Gate &gate) {
  constexpr double kTenMinutes = 600;
  if (!(gate.options().budget > 0)) gate.set_budget(kTenMinutes);
  gate.add(std::move(judged.red));
  gate.describe("plan", {{"kind", "mutants"}});
  const Worktree head(proposal.repository, proposal.work + "/head", proposal.head);
  try {
    build_assay(gate, "head", head, true);
  } catch (const GateError &e) {
    return gate.add({red_line("does-not-build", "", e.what())});
  }
  std::optional<Worktree> base; // only where a mutant lives
  const auto program_of_base = [&] {
    if (!base) {
      base.emplace(proposal.repository, proposal.work + "/base", proposal.base);
      build_base(gate, *base, true);
    }
    return program_of(base->folder(), gate.options().target);
  };
  std::vector<std::string> mutants;
  for (const std::string &path : proposal.repository.files(proposal.head))
    if (path.starts_with("corpus/mutants/") && path.ends_with(".mutant"))
      mutants.push_back(std::filesystem::path(path).stem().string());
  judge_right_kernels(program_of(head.folder(), gate.options().target), gate);
  judge_mutants(mutants, program_of(head.folder(), gate.options().target), program_of_base, gate);
}

} // namespace

bool is_own(const Repository &repository, const std::string &commit) {
  return repository.has(commit, kKernelTable) &&
         repository.has(commit, "properties/CMakeLists.txt");
}

void gate_own(const Proposal &proposal, Gate &gate) {
  const ChangeText text = proposal.text(own_room);
  JudgedChange judged;
  judged.red = guarded(text);
  judged.added = added_cases(text);
  if (gate.options().all || touches(text, Room::kKernel) || !judged.added.empty())
    return judge_kernels(proposal, text, judged, gate);
  if (touches(text, Room::kJudge) || touches(text, Room::kGenerator) ||
      touches(text, Room::kMutant))
    return judge_harness(proposal, judged, gate);
  gate.add(std::move(judged.red));
  gate.describe("plan", {{"kind", "nothing"}});
}

} // namespace assay::gate
