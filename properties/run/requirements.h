// SPDX-License-Identifier: Apache-2.0
// What a property asks of a kernel and of a run, and its fields in words.
#pragma once

#include <string>
#include <vector>

#include "properties/run/registry.h"

namespace assay {

const char *name_of(Comparison comparison);

/// A property's bits in words.
struct PropertyWords {
  std::vector<std::string> families, needs, about, without, sets;
};
PropertyWords words_of(const Property &property);

/// Whether the property says anything about this kernel at all.
bool applies(const Property &property, const assay_kernel &kernel);

/// Classes a run of this property must have met: those of the family that the property does not
/// itself rule out.
std::vector<std::string> required_classes(const Property &property, const assay_kernel &kernel);

} // namespace assay
