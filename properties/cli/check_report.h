// SPDX-License-Identifier: Apache-2.0
// What `assay check` says at its end, for people and for machines.
#pragma once

#include "properties/cli/envelopes.h"
#include "properties/cli/findings.h"

namespace assay {

void print_table(const Session &session, const RunSummary &summary,
                 const std::vector<const assay_kernel *> &kernels);

/// What the run does not prove: `idle` kernels, that no property concerns, properties without a
/// case or a class, undecided ones.
void report_gaps(const Session &session, const RunSummary &summary,
                 const std::vector<const assay_kernel *> &idle);

/// What the run does not prove of whole kernels, as `gaps` of each.
void add_kernel_gaps(nlohmann::json &document, const RunSummary &summary,
                     const std::vector<const assay_kernel *> &kernels,
                     const std::vector<const assay_kernel *> &idle);

nlohmann::json to_json(const RunSummary &summary, const std::string &target,
                       const std::vector<const assay_kernel *> &kernels, const Envelopes &envelopes,
                       const KeptFindings &kept, int exit);

} // namespace assay
