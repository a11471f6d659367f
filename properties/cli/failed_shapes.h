// SPDX-License-Identifier: Apache-2.0
// Serving shapes that fail, as findings of the run: made smaller, and with their cause.
#pragma once

#include "properties/cli/finding_log.h"

namespace assay {

/// Of each kernel and property that no draw has shown wrong but a serving shape has: the shape is
/// shrunk, becomes the finding of that run, and is written like any other. `kept` names it there.
void shrink_failed_shapes(const Session &session, KeptFindings &kept, RunSummary &summary,
                          FindingLog &log, const std::atomic<bool> &stop);

} // namespace assay
