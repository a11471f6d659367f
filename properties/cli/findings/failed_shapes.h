// SPDX-License-Identifier: Apache-2.0
// Serving shapes that fail, as findings of the run: made smaller, and with their cause.
#pragma once

#include "properties/cli/findings/finding_log.h"

namespace assay {

/// Shrinks each serving shape that shows a kernel wrong where no draw did. It becomes the finding
/// of that kernel and property, and is written like any other. `kept` then names that file.
void shrink_failed_shapes(const Session &session, KeptFindings &kept, RunSummary &summary,
                          FindingLog &log, const std::atomic<bool> &stop);

} // namespace assay
