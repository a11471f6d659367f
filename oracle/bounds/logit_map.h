// SPDX-License-Identifier: Apache-2.0
// Internal: from a scaled score to the logit the softmax sees: softcap, ALiBi. oracle/README.md
// section 6.
#pragma once

#include <string>

#include "oracle/bounds/error_model.h"
#include "oracle/exact/row_input.h"

namespace assay::oracle {

/** A base-2 logit, how well it is known, and what the kernel's may be off by. */
struct Logit {
  double x = 0.0, radius = 0.0, error = 0.0;
};

/** `distance`: key position less query position. `scale_error`: of the kernel's base-2 scale. */
Logit map_logit(const RowFeatures &features, const ErrorModel &model, double scale_error,
                const Logit &scaled, double distance);

/** What a kernel holds for a sink: fl(sink * log2 e). */
Logit sink_logit(const RowFeatures &features);

/** Empty, or why nothing is claimed for a row with these features. */
std::string unclaimed_features(const RowFeatures &features);

} // namespace assay::oracle
