// SPDX-License-Identifier: Apache-2.0
// Red lines by what they are, for tests.
#pragma once

#include <string>
#include <vector>

#include "properties/tools/gate/red_line.h"

namespace assay::gate {

using Ids = std::vector<std::string>;

inline Ids ids(const RedLines &lines) {
  Ids out;
  for (const RedLine &line : lines)
    out.push_back(line.id);
  return out;
}

} // namespace assay::gate
