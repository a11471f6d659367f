// SPDX-License-Identifier: Apache-2.0
// The decode cells: serving shapes by model, batch and length distribution.
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
  kZipf,      // the r-th longest has seq / r, in random order
  kGiven,     // Cell::given
};
const char *name_of(Lengths lengths);

enum class KvDtype : uint8_t { kBf16, kE4m3, kE5m2 };
inline constexpr int kKvDtypes = 3;
const char *name_of(KvDtype dtype);
int bytes_of(KvDtype dtype);

/// Order of a page: tokens of all kv heads, or one kv head after the other.
enum class Layout : uint8_t { kNhd, kHnd };
inline constexpr int kLayouts = 2;
const char *name_of(Layout layout);

struct Cell {
  std::string name;
  int batch, seq;
  Lengths lengths;
  int num_qo_heads, num_kv_heads, head_dim, page_size;
  KvDtype kv_dtype = KvDtype::kBf16;
  Layout layout = Layout::kNhd;
  std::vector<int32_t> given = {}; // lengths of the requests, with Lengths::kGiven
};

/// The standard cells: serving shapes with bf16 KV, most of them again with e4m3.
const std::vector<Cell> &standard_cells();

/// Lengths of a cell's requests, the same on every run.
std::vector<int32_t> cell_lengths(const Cell &cell);

/// K and V bytes of `lens` live tokens: what a decode step must read once.
uint64_t kv_bytes(const Cell &cell, const std::vector<int32_t> &lens);

} // namespace assay::bench
