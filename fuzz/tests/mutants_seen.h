// SPDX-License-Identifier: Apache-2.0
// The mutants of which their texts say that a fuzz target's seeds see them.
#pragma once

#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

#include "corpus/mutants/active.h"
#include "fuzz/tests/seeds.h"

namespace assay::fuzz {

struct Seen {
  std::string target;
  const mutants::Mutant *mutant;
};

inline std::vector<Seen> seen_by(std::initializer_list<const char *> targets) {
  std::vector<Seen> out;
  for (const char *target : targets)
    for (const mutants::Mutant &mutant : mutants::all())
      if (mutants::lists(mutant.seen_by, target)) out.push_back({target, &mutant});
  return out;
}

inline void PrintTo(const Seen &seen, std::ostream *out) { *out << seen.mutant->name; }
inline const auto name_of = [](const auto &tested) {
  return std::string(tested.param.mutant->name);
};

} // namespace assay::fuzz
