// SPDX-License-Identifier: Apache-2.0
// What a narrow kernel computes for one query row.
#pragma once

#include "properties/tests/narrow_style.h"

namespace assay::narrow {

/// Writes O and the LSE of query token `token` of a request and of query head `head`.
void run_row(const Style &style, const assay_paged_params &p, int request, int token, int head);

/// The query tokens of a request.
int tokens_of(const assay_paged_params &p, int request);

} // namespace assay::narrow
