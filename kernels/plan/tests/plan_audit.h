// SPDX-License-Identifier: Apache-2.0
// What a sound plan is, for the tests and the fuzzer.
#pragma once

#include "kernels/plan/split_plan.h"

#include <span>
#include <string>

namespace assay {

/// The first way in which `plan` is unsound for requests of `lens` tokens ([plan.shape.batch], no
/// window), or empty. Sound means:
///   1. Every key of every request is computed exactly once, inside the request.
///   2. Every request is written, also one without keys. Its splits are 0, 1, ... and every one
///      of them says how many there are.
///   3. Every partial slot lies in the workspace and is written by one item only. All splits of a
///      request agree where its slots are.
///   4. In a balanced plan no worker holds more tiles than the larger of
///        ceil((tiles + boundaries * kBoundaryTiles) / workers)   and
///        ceil(tiles / workers) + kMaxExcessTiles,   which whole workers may have.
///   5. Counters start at 0.
std::string plan_violation(std::span<const int32_t> lens, const SplitPlan &plan);

} // namespace assay
