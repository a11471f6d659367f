// SPDX-License-Identifier: Apache-2.0
// Runs the cells and reports them: a table for people, JSON for plots and history.
#pragma once

#include <cstdio>

#include <nlohmann/json_fwd.hpp>

#include "kernels/bench/bench.h"

namespace assay::bench {

/// Runs `cells` and prints one line per cell to `text` as it finishes; fills `document` unless
/// there is no device. Returns 0, or 1 when a judge of the options found something, 3 when there
/// is no device, 4 when a cell failed.
int run_and_report(const CellSet &cells, const Options &options, std::FILE *text,
                   nlohmann::json &document);

} // namespace assay::bench
