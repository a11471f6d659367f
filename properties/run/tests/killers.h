// SPDX-License-Identifier: Apache-2.0
// corpus/mutants/killers.csv: the draw that shows each mutant. A search over all properties takes
// half an hour of processor time for all of them, the draws alone half a minute; a row that no
// longer shows its mutant costs a search and nothing else.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "properties/run/tests/bug_rows.h"
#include "properties/run/tests/mutant_cases.h"

namespace assay {

struct Killer {
  const Property *property;
  uint64_t index;
  auto operator<=>(const Killer &) const = default;
};

/// By mutant and kernel. Rows of properties that are gone are left out.
inline const std::map<std::pair<std::string, std::string>, Killer> &killers() {
  static const auto rows = [] {
    std::map<std::pair<std::string, std::string>, Killer> out;
    for (const auto &row : read_rows(ASSAY_KILLERS, 4))
      if (const Property *found = find_property(row[2]))
        out[{row[0], row[1]}] = {found, std::strtoull(row[3].c_str(), nullptr, 10)};
    return out;
  }();
  return rows;
}

/// What the recorded draw shows; without a property where there is none or it shows nothing.
inline DrawnFailure recorded_failure(const mutants::Mutant &mutant, const assay_kernel &kernel,
                                     Sut &sut, const DrawOptions &options) {
  const auto row = killers().find({mutant.name, kernel.name});
  if (row == killers().end() || !applies(*row->second.property, kernel)) return {};
  return failure_at(*row->second.property, kernel, sut, row->second.index, options);
}

} // namespace assay
