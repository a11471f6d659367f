// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "properties/case/problem.h"

namespace assay {

/// Names of the classes a case belongs to: boundary situations that a run should have met. A case
/// may belong to none.
std::vector<std::string> classify(const Problem &p);

/// Classes of a family without which a run proves little; the runner insists on a case of each.
std::vector<std::string> important_classes(Family family);

/// Important classes that a kernel may leave out by answering ASSAY_UNSUPPORTED.
std::vector<std::string> optional_classes();

} // namespace assay
