// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "properties/invariants/invariants.h"

namespace assay {

/// One invariant as data.
struct Property {
  const char *name;
  unsigned families;      ///< bits 1 << Family
  const char *comparison; ///< "bitwise", "within bound", ...
  const char *statement;  ///< what holds
  const char *catches;    ///< what breaks it
  int cost;               ///< kernel runs per case, about
  CheckResult (*check)(const Problem &, Sut &);
};

std::span<const Property> properties();
const Property *find_property(std::string_view name); ///< null when there is none

/// Whether the property says anything about this kernel at all.
bool applies(const Property &property, const assay_kernel &kernel);

/// Classes a run of this property must have met: those of the family that the property does not
/// itself rule out.
std::vector<std::string> required_classes(const Property &property, const assay_kernel &kernel);

/// Properties of one feature: a kernel without it has no case of them, and need not.
bool about_features(const Property &property);

} // namespace assay
