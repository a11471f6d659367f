// SPDX-License-Identifier: Apache-2.0
// Cells as JSON: {"cells": [...], "cascade": [...], "merge": [...]}, each array optional.
//
// cells: {"name", "batch", "seq", "lengths", "num_qo_heads", "num_kv_heads", "head_dim",
// "page_size", "kv_dtype", "layout"}. "lengths" is a name (uniform, random, heavy tail, one giant,
// ramp, many zeros, zipf; see cells.h) or the lengths themselves, `batch` of them, the longest of
// `seq` tokens. "kv_dtype" is bf16, e4m3 or e5m2. "layout", nhd or hnd, may be absent (nhd).
// cascade: {"name", "batch", "num_qo_heads", "num_kv_heads", "head_dim", "page_size", "kv_dtype",
// "levels"}, with "levels" an array of {"segments", "tokens"}; see cascade_cells.h. "kv_dtype" may
// be absent (bf16). merge: {"name", "op", "rows", "states", "num_heads", "head_dim"}; "op" is
// merge_state (of 2 states) or merge_states. Every other field is required.
#pragma once

#include "kernels/bench/cells/cell_set.h"

#include <nlohmann/json_fwd.hpp>

namespace assay::bench {

/// Cells of a file. The file may hold anything: std::invalid_argument, one line with file, cell,
/// field and limit, when it is not a list of cells that a bench can hold in memory.
CellSet read_cells(const std::string &path);
/// Reads the cells of a text; errors name `origin` as the file.
CellSet parse_cells(const std::string &text, const std::string &origin);

/// What parse_cells() reads.
nlohmann::json cells_to_json(const CellSet &cells);

} // namespace assay::bench
