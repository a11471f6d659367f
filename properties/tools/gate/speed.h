// SPDX-License-Identifier: Apache-2.0
// How fast head's kernels are beside base's, on a GPU: one process that times both in turns.
#pragma once

#include "properties/tools/gate/findings.h"
#include "properties/tools/gate/regressions.h"

namespace assay::gate {

/// The document of base's `assay bench --against` over these kernels, with both libraries in one
/// run. It is a harness error where base against itself has no line either.
json measure_speed(const RevisionPair &revisions, const std::vector<std::string> &kernels,
                   const Progress &progress);

/// Judges that document, a line per kernel: "timed-outputs" where head wrote other bits while it
/// was timed than before, or an oracle rejects them, "envelope-narrower" where it refuses a cell
/// that base takes, "slower" where it is, by more than noise and two percent. What is faster, and
/// where base's second arm moved away from its first, is a note.
Figures judge_speed(const json &document);

} // namespace assay::gate
