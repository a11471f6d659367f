// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/gate/guards.h"

#include <algorithm>
#include <regex>
#include <sstream>

#include <fmt/format.h>

namespace assay::gate {
namespace {

/// What a finding asks for, without words and standing.
struct Kept {
  std::string problem, status = "fixed";
};

std::string value_of(const std::string &line) {
  const size_t at = line.find_first_not_of(" \t", line.find('=') + 1);
  return at == std::string::npos ? "" : line.substr(at);
}

Kept read(const std::string &text) {
  Kept out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("note") || line.starts_with("issue")) continue;
    if (line.starts_with("status"))
      out.status = value_of(line);
    else
      out.problem += line + "\n";
  }
  return out;
}

/// "a, b and 3 more".
std::string listed(const std::vector<std::string> &paths) {
  constexpr size_t kMax = 3;
  std::string out;
  for (size_t i = 0; i < std::min(paths.size(), kMax); ++i)
    out += (i == 0 ? "" : ", ") + paths[i];
  return paths.size() > kMax ? fmt::format("{} and {} more", out, paths.size() - kMax) : out;
}

std::vector<std::string> paths_of(const ChangeText &change, Room room) {
  std::vector<std::string> out;
  for (const Change &c : change.changes)
    if (change.room(c.path) == room) out.push_back(c.path);
  return out;
}

void guard_findings(const ChangeText &change, RedLines &out) {
  for (const Change &c : change.changes) {
    if (change.room(c.path) != Room::kKept) continue;
    if (c.how == How::kDeleted)
      out.push_back(
          red_line("finding-deleted", "", fmt::format("{}: kept finding deleted", c.path)));
    else if (c.how == How::kChanged && weaker_finding(change.base(c.path), change.head(c.path)))
      out.push_back(
          red_line("finding-weakened", "", fmt::format("{}: kept finding weakened", c.path)));
  }
}

void guard_mutants(const ChangeText &change, RedLines &out) {
  std::vector<std::string> changed;
  for (const Change &c : change.changes) {
    if (change.room(c.path) != Room::kMutant) continue;
    if (c.how == How::kDeleted)
      out.push_back(red_line("mutant-deleted", "", fmt::format("{}: mutant deleted", c.path)));
    else if (c.how == How::kChanged)
      changed.push_back(c.path);
  }
  // A mutant is a change of a kernel's text: it may have to follow, and may come to change nothing.
  if (!changed.empty() && touches(change, Room::kKernel))
    out.push_back(red_line("mutant-changed", "",
                           fmt::format("{}: changed beside a kernel", listed(changed))));
}

void guard_kernels(const ChangeText &change, RedLines &out) {
  for (const Change &c : change.changes) {
    if (c.how == How::kDeleted || change.room(c.path) != Room::kKernel) continue;
    for (const std::string &line : change.added(c.path))
      if (const std::string why = special_case(line); !why.empty()) {
        out.push_back(red_line("special-case", "", fmt::format("{}: {}: {}", c.path, why, line)));
        break;
      }
  }
}

} // namespace

bool touches(const ChangeText &change, Room room) { return !paths_of(change, room).empty(); }

bool weaker_finding(const std::string &base, const std::string &head) {
  const Kept before = read(base), after = read(head);
  if (before.problem != after.problem) return true;
  return before.status != after.status && after.status != "fixed";
}

std::string special_case(const std::string &line) {
  // libstdc++'s regex recurses once a character: a line of 100 KB would end the gate.
  if (line.size() > kLongestLine)
    return "is longer than " + std::to_string(kLongestLine) + " characters";
  static const std::regex kAsks(R"(\b(getenv|secure_getenv|dlsym|dladdr|dl_iterate_phdr|backtrace)"
                                R"(|getppid|program_invocation_name|__progname)\b|/proc/)");
  static const std::regex kTarget(R"(\b(ASSAY_COMPILE_CUDA|__CUDA_ARCH__|__CUDACC__|n_simt)\b)");
  static const std::regex kLasts(
      R"(\bthread_local\b|^\s*static\s+(?!const|assert|inline)[^()]*(=[^()]*;|;|\{\s*\}?;)\s*$)");
  const std::string code = line.substr(0, line.find("//"));
  if (std::regex_search(code, kAsks)) return "asks what runs it";
  if (std::regex_search(code, kTarget)) return "depends on the target";
  if (std::regex_search(code, kLasts)) return "keeps what outlives a call";
  return "";
}

RedLines guarded(const ChangeText &change) {
  RedLines out;
  const std::vector<std::string> judge = paths_of(change, Room::kJudge);
  if (!judge.empty() && touches(change, Room::kKernel))
    out.push_back(red_line("judge-changed", "",
                           fmt::format("what judges changes beside a kernel: {}", listed(judge))));
  guard_findings(change, out);
  guard_mutants(change, out);
  guard_kernels(change, out);
  return out;
}

} // namespace assay::gate
