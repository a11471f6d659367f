// SPDX-License-Identifier: Apache-2.0
// Which keys a row sees, and where they lie.
#pragma once

#include <vector>

#include "properties/call/tensors.h"
#include "properties/case/query_rows.h"

namespace assay {

/// How many keys a query row sees.
int visible_count(const Problem &p, int row);

/// Where the keys of a request lie: (cache, row) pairs in order.
struct KeyRun {
  int cache, row, len;
};
std::vector<KeyRun> key_runs(const Tensors &t, int request);

/// The tokens [begin, end) of such a run that a query row sees.
struct VisibleRun {
  int cache, row, begin, end;
};
std::vector<VisibleRun> visible_runs(const Tensors &t, int row);

} // namespace assay
