// SPDX-License-Identifier: Apache-2.0
// Cases made from cases, choice by choice over the one list of properties/case/fields.h: what the
// mutators of fuzz targets do. Every case made here is one that decode() can return.
#pragma once

#include <cstdint>

#include "properties/case/problem.h"

namespace assay::fuzz {

/// `p` with one to four of its choices made anew, one time in eight sixteen of them: other options,
/// and of numbers the ends of their range, anchors and their neighbours, one more or less, half or
/// twice, any. The family stays.
Problem mutated(const Problem &p, const Limits &limits, uint64_t seed);

/// `a` with choices of `b`: each by itself, or all from one on.
Problem crossed(const Problem &a, const Problem &b, const Limits &limits, uint64_t seed);

} // namespace assay::fuzz
