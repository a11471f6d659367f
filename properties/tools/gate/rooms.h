// SPDX-License-Identifier: Apache-2.0
// What a changed file is to the gate: part of a kernel, part of what judges it, or neither.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "properties/tools/gate/git.h"

namespace assay::gate {

/// Characters: a longer line of source is read by no pattern.
inline constexpr size_t kLongestLine = 2000;

enum class Room {
  kKernel,    ///< code that is judged
  kJudge,     ///< what decides: oracle, properties, executor, ABI, scripts
  kGenerator, ///< tests, and what draws cases: it may make the gate see less, not decide wrongly
  kKept,      ///< kept findings
  kMutant,    ///< kernels that are wrong on purpose
  kWords      ///< nothing that runs
};

/// The room of a file of this repository.
Room own_room(const std::string &path);
/// The room of a file of a plugin's repository, whose kept findings are in the folder `findings`.
Room plugin_room(const std::string &path, const std::string &findings);

/// What base's harness takes from head when it judges head's kernels: kernels without the ABI and
/// the executor, and the mutants, which are made from the kernels' text.
bool overlaid(const std::string &path);

} // namespace assay::gate
