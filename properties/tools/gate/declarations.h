// SPDX-License-Identifier: Apache-2.0
// What head's kernels promise, held against what base's do.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "properties/tools/gate/red_line.h"

namespace assay::gate {

using nlohmann::json;

struct Comparison {
  RedLines red;
  std::vector<std::string> notes; ///< no less is promised
};

/// Compares two documents of `assay list kernels --json`, kernels of `target` only: red lines are
/// declaration-wider and kernel-gone; new kernels and narrower declarations are notes.
Comparison compare_declarations(const json &base, const json &head, const std::string &target);

/// Compares two documents of `assay check --json` over the same draws: envelope-narrower where
/// head's kernel refuses a value, a class or cases that base's takes.
RedLines compare_envelopes(const json &base, const json &head);

/// Entries of `array` whose "name" is `name`; null when there is none.
const json *named(const json &array, const std::string &name);

} // namespace assay::gate
