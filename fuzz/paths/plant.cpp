// SPDX-License-Identifier: Apache-2.0
#include "fuzz/paths/plant.h"

namespace assay::fuzz {
namespace {

constexpr mutants::Mutant kPlanted[] = {
#include "mutant_table.inc"
};

} // namespace

std::span<const mutants::Mutant> planted() { return kPlanted; }

int planted_id(std::string_view name) {
  for (const mutants::Mutant &mutant : kPlanted)
    if (name == mutant.name) return mutant.id;
  return 0;
}

} // namespace assay::fuzz
