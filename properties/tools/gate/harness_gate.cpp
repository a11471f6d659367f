// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/gate/harness_gate.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include <fmt/format.h>

#include "properties/tools/gate/error.h"
#include "properties/tools/process/process.h"

namespace assay::gate {
namespace {

/// At least so long, whatever the build took.
constexpr double kMin = 60;

process::Ended assay(const std::string &program, std::vector<std::string> words, double seconds,
                     Gate &gate) {
  words.insert(words.begin(), program);
  // Where the program lies: `check` looks for ./findings.
  return process::run({.words = words,
                       .folder = std::filesystem::path(program).parent_path().string(),
                       .seconds = seconds,
                       .waiting = gate.progress().waiting});
}

double left(const Gate &gate) { return gate.options().budget - gate.seconds(); }

enum class Fate { kSeen, kLives, kUnknown };

Fate fate_of(const std::string &mutant, const std::string &program, Gate &gate) {
  const process::Ended ended = assay(program,
                                     {"mutants", "--default-draw", "--mutant", mutant, "--seed",
                                      std::to_string(gate.options().seed)},
                                     std::max(left(gate), kMin), gate);
  return ended.code == kPass ? Fate::kSeen : ended.code == kHarness ? Fate::kLives : Fate::kUnknown;
}

/// Shuffles the names, equally in every run with the seed, so that no name is always last.
std::vector<std::string> shuffled(std::vector<std::string> names, uint64_t seed) {
  std::sort(names.begin(), names.end());
  std::mt19937_64 random(seed);
  for (size_t i = names.size(); i > 1; --i)
    std::swap(names[i - 1], names[random() % i]);
  return names;
}

} // namespace

void judge_right_kernels(const std::string &program, Gate &gate) {
  gate.progress().step("head: assay check");
  const process::Ended ended =
      assay(program, {"check", "--quiet", "--cases", "10"}, std::max(left(gate), kMin), gate);
  if (ended.code == 124)
    gate.harness_failed("assay check of head did not end within the budget");
  else if (!ended.ok())
    gate.add({red_line("harness", "",
                       fmt::format("assay check of head ended with {}: {}", ended.code,
                                   process::last_line(ended.out + ended.err)))});
}

void judge_mutants(const std::vector<std::string> &mutants, const std::string &program,
                   const std::function<std::string()> &program_of_base, Gate &gate) {
  gate.progress().step(fmt::format("head: {} mutants", mutants.size()));
  int seen = 0, equal = 0, unknown = 0, ran = 0;
  for (const std::string &mutant : shuffled(mutants, gate.options().seed)) {
    if (ran > 0 && !(left(gate) > 0)) break;
    ++ran;
    const Fate fate = fate_of(mutant, program, gate);
    if (fate == Fate::kLives && fate_of(mutant, program_of_base(), gate) == Fate::kSeen)
      gate.add({red_line("harness", "",
                         fmt::format("mutant {} lives, which base's draws notice", mutant))});
    seen += fate == Fate::kSeen;
    equal += fate == Fate::kLives;
    unknown += fate == Fate::kUnknown;
  }
  gate.note(fmt::format("{} of {} mutants run: {} noticed, {} not, {} could not be run", ran,
                        mutants.size(), seen, equal, unknown));
  if (!mutants.empty() && seen + equal == 0) gate.harness_failed("no mutant could be run");
}

} // namespace assay::gate
