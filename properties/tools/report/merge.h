// SPDX-License-Identifier: Apache-2.0
// The documents of several runs of `check` as the document of one: shards of a run by seeds or by
// properties. Strings in them may be anything; nothing else of them is taken on trust.
#pragma once

#include <string>
#include <vector>

#include "properties/tools/report/field.h"

namespace assay::report {

/// A document and the file it came from.
struct Shard {
  std::string file;
  json document;
};

/// Counts are summed, the worst errors the largest, findings grouped by kernel and fingerprint, and
/// a class is covered where the shards have two cases of it together. Kept findings are those of
/// all, each once. Throws BadReport, which names file and field, for documents of other versions,
/// targets or kernels, and for a property that two shards drew with the same seed.
json merged(const std::vector<Shard> &shards);

} // namespace assay::report
