// SPDX-License-Identifier: Apache-2.0
// The document of `assay check`, which says everything that its reports say.
#pragma once

#include "properties/cli/findings/findings.h"
#include "properties/cli/plugins/envelopes.h"

namespace assay {

/// What the run does not prove of whole kernels, as `gaps` of each.
void add_kernel_gaps(nlohmann::json &document, const RunSummary &summary,
                     const std::vector<const assay_kernel *> &kernels,
                     const std::vector<const assay_kernel *> &idle);

nlohmann::json to_json(const RunSummary &summary, const std::string &target,
                       const std::vector<const assay_kernel *> &kernels, const Envelopes &envelopes,
                       const KeptFindings &kept, int exit);

} // namespace assay
