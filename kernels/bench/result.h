// SPDX-License-Identifier: Apache-2.0
// What was measured of a cell, as a line for people and as JSON.
#pragma once

#include "kernels/bench/verify/verify_outputs.h"

#include <map>

#include <nlohmann/json_fwd.hpp>

namespace assay::bench {

/// kHost: what calls of any cell cost the host.
enum class CellKind : uint8_t { kDecode, kCascade, kMerge, kHost };

/// What dense bf16 products reach on an H200, products a second counted as 2 FLOPs.
inline constexpr double kTensorFlops = 790e12;

/// Microseconds a launch in a row of launches: each after the one before, and each started early
/// (decode alone). And of the host: of a call, and of its checks, which are a part of that.
struct Timing {
  double us = 0, early_us = 0;
  double host_us = 0, checks_us = 0;
};

struct CellResult {
  CellKind kind = CellKind::kDecode;
  std::string cell, kv_dtype;            // kv_dtype: of merges that of O
  uint64_t bytes = 0;                    // that a call must move
  uint64_t flops = 0;                    // FLOPs of a cascade
  double plan_us = 0;                    // time of a plan of decode or of a tree
  double plan_lengths_us = 0;            // of a plan that keeps its tree
  Timing floor;                          // plain read of what must be read
  double plain_us = 0;                   // merges: plain kernel that reads and writes the same
  std::map<std::string, Timing> kernels; // "paged_attention_v2" -> its timing
  std::map<std::string, Verification> verified; // by kernel; empty without a judge
  std::string error;                            // not empty: the cell did not run

  double flops_us() const { return static_cast<double>(flops) / kTensorFlops * 1e6; }
  /// The highest of the floors.
  double floor_us() const;
};

/// The objects of a result, one a kernel, for the document's "cells".
void append_json(const CellResult &result, nlohmann::json &cells);

/// Lines above the results of a kind, and the line of one; each ends with a newline.
std::string table_head(CellKind kind);
std::string table_line(const CellResult &result);

} // namespace assay::bench
