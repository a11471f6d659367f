// SPDX-License-Identifier: Apache-2.0
// The mutants of the tree of schemata in front of which this is compiled.
#include "corpus/mutants/active.h"

#include <iterator>

namespace assay::mutants {
namespace {

constexpr Mutant kMutants[] = {
#include "mutant_table.inc"
};

// The null keeps the array from being empty.
constexpr const char *kOmitted[] = {
#include "mutant_omitted.inc"
    nullptr};

} // namespace

std::span<const Mutant> all() { return kMutants; }
std::span<const char *const> omitted() { return {kOmitted, std::size(kOmitted) - 1}; }

} // namespace assay::mutants
