// SPDX-License-Identifier: Apache-2.0
// The benchmark cells: serving shapes by model, batch and length distribution.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::bench {

enum class Lengths : uint8_t {
  kUniform,   // every request has `seq` tokens
  kRandom,    // uniform in 1 .. seq
  kHeavyTail, // exponential with mean 2000, one request of `seq`
  kOneGiant,  // one request of `seq`, the others 1/128 of it
  kRamp,      // linear from seq / batch to seq
  kManyZeros, // three of four requests empty
};

struct Cell {
  std::string name;
  int batch, seq;
  Lengths lengths;
  int num_qo_heads, num_kv_heads, head_dim, page_size;
};

/// The standard cells, bf16 KV.
const std::vector<Cell> &standard_cells();

/// Lengths of a cell's requests, the same on every run.
std::vector<int32_t> cell_lengths(const Cell &cell);

/// K and V bytes of `lens` live tokens: what a decode step must read once.
uint64_t kv_bytes(const Cell &cell, const std::vector<int32_t> &lens, int element_bytes);

} // namespace assay::bench
