// SPDX-License-Identifier: Apache-2.0
// Cells as JSON: {"cells": [{"name", "batch", "seq", "lengths", "num_qo_heads", "num_kv_heads",
// "head_dim", "page_size", "kv_dtype", "layout"}]}. "lengths" is a name (uniform, random, heavy
// tail, one giant, ramp, many zeros, zipf; see cells.h) or the lengths themselves, `batch` of them,
// the longest of `seq` tokens. "kv_dtype" is bf16, e4m3 or e5m2. "layout", nhd or hnd, may be
// absent (nhd); every other field is required.
#pragma once

#include "kernels/bench/cells.h"

#include <nlohmann/json_fwd.hpp>

namespace assay::bench {

/// Cells of a file. The file may hold anything: std::invalid_argument, one line with file, cell,
/// field and limit, when it is not a list of cells that a bench can hold in memory.
std::vector<Cell> read_cells(const std::string &path);
/// The same of a text; `origin` stands for the file in errors.
std::vector<Cell> parse_cells(const std::string &text, const std::string &origin);

/// What parse_cells() reads.
nlohmann::json cells_to_json(const std::vector<Cell> &cells);

} // namespace assay::bench
