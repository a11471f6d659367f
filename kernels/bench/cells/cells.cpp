// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/cells/cells.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace assay::bench {

namespace {

std::vector<Cell> bf16_cells() {
  using L = Lengths;
  return {
      {"llama8b b1 1k", 1, 1024, L::kUniform, 32, 8, 128, 16},
      {"llama8b b1 8k", 1, 8192, L::kUniform, 32, 8, 128, 16},
      {"llama8b b1 32k", 1, 32768, L::kUniform, 32, 8, 128, 16},
      {"llama8b b1 128k", 1, 131072, L::kUniform, 32, 8, 128, 16},
      {"llama8b b8 1k", 8, 1024, L::kUniform, 32, 8, 128, 16},
      {"llama8b b8 8k", 8, 8192, L::kUniform, 32, 8, 128, 16},
      {"llama8b b32 4k", 32, 4096, L::kUniform, 32, 8, 128, 16},
      {"llama8b b64 8k", 64, 8192, L::kUniform, 32, 8, 128, 16},
      {"llama8b b128 2k", 128, 2048, L::kUniform, 32, 8, 128, 16},
      {"llama8b b256 1k", 256, 1024, L::kUniform, 32, 8, 128, 16},
      {"llama8b b256 256", 256, 256, L::kUniform, 32, 8, 128, 16},
      {"llama70b b64 4k", 64, 4096, L::kUniform, 64, 8, 128, 16},
      {"qwen7b b8 2k", 8, 2048, L::kUniform, 28, 4, 128, 16},
      {"qwen7b b1 2k", 1, 2048, L::kUniform, 28, 4, 128, 16},
      {"qwen7b b64 8k", 64, 8192, L::kUniform, 28, 4, 128, 16},
      {"mha b1 8k", 1, 8192, L::kUniform, 32, 32, 128, 16},
      {"mha b1 128k", 1, 131072, L::kUniform, 32, 32, 128, 16},
      {"mha b16 8k", 16, 8192, L::kUniform, 32, 32, 128, 16},
      {"llama8b b64 random 1..8k", 64, 8192, L::kRandom, 32, 8, 128, 16},
      {"llama8b b128 heavy tail", 128, 16384, L::kHeavyTail, 32, 8, 128, 16},
      {"llama8b b128 one giant", 128, 131072, L::kOneGiant, 32, 8, 128, 16},
      {"llama8b b64 ramp 8k", 64, 8192, L::kRamp, 32, 8, 128, 16},
      {"llama8b b256 many zeros 4k", 256, 4096, L::kManyZeros, 32, 8, 128, 16},
      {"page1 b64 8k", 64, 8192, L::kUniform, 32, 8, 128, 1},
      {"page64 b64 8k", 64, 8192, L::kUniform, 32, 8, 128, 64},
      {"d64 b32 4k", 32, 4096, L::kUniform, 32, 8, 64, 16},
      {"d256 b32 4k", 32, 4096, L::kUniform, 16, 4, 256, 16},
  };
}

/// The bf16 cells again, with e4m3 keys and values; one with e5m2.
std::vector<Cell> all_cells() {
  std::vector<Cell> cells = bf16_cells();
  for (Cell cell : bf16_cells()) {
    cell.name = "fp8 " + cell.name;
    cell.kv_dtype = KvDtype::kE4m3;
    cells.push_back(cell);
  }
  Cell e5m2 = bf16_cells()[7];
  e5m2.name = "e5m2 " + e5m2.name;
  e5m2.kv_dtype = KvDtype::kE5m2;
  cells.push_back(e5m2);
  return cells;
}

} // namespace

const char *name_of(KvDtype dtype) {
  return dtype == KvDtype::kBf16 ? "bf16" : dtype == KvDtype::kE4m3 ? "e4m3" : "e5m2";
}
const char *name_of(Layout layout) { return layout == Layout::kNhd ? "nhd" : "hnd"; }
const char *name_of(Lengths lengths) {
  static constexpr const char *kNames[] = {"uniform", "random",     "heavy tail", "one giant",
                                           "ramp",    "many zeros", "zipf",       "given"};
  return kNames[static_cast<int>(lengths)];
}
int bytes_of(KvDtype dtype) { return dtype == KvDtype::kBf16 ? 2 : 1; }

const std::vector<Cell> &standard_cells() {
  static const std::vector<Cell> kCells = all_cells();
  return kCells;
}

std::vector<int32_t> cell_lengths(const Cell &cell) {
  if (cell.lengths == Lengths::kGiven) return cell.given;
  std::mt19937_64 rng(20261120);
  std::vector<int32_t> lens(cell.batch, cell.seq);
  for (int i = 0; i < cell.batch; ++i) {
    switch (cell.lengths) {
    case Lengths::kUniform:
      break;
    case Lengths::kRandom:
      lens[i] = 1 + static_cast<int32_t>(rng() % cell.seq);
      break;
    case Lengths::kHeavyTail: {
      const double u = (static_cast<double>(rng() >> 11) + 0.5) * 0x1p-53;
      lens[i] = i == cell.batch / 2
                    ? cell.seq
                    : std::clamp(static_cast<int32_t>(-2000.0 * std::log(u)), 1, cell.seq);
      break;
    }
    case Lengths::kOneGiant:
      lens[i] = i == cell.batch / 3 ? cell.seq : cell.seq / 128;
      break;
    case Lengths::kRamp:
      lens[i] = static_cast<int32_t>(int64_t{cell.seq} * (i + 1) / cell.batch);
      break;
    case Lengths::kManyZeros:
      lens[i] = i % 4 == 0 ? cell.seq : 0;
      break;
    case Lengths::kZipf:
      lens[i] = std::max(cell.seq / (i + 1), 1);
      break;
    case Lengths::kGiven:
      break;
    }
  }
  if (cell.lengths == Lengths::kZipf) std::shuffle(lens.begin(), lens.end(), rng);
  return lens;
}

uint64_t kv_bytes(const Cell &cell, const std::vector<int32_t> &lens) {
  uint64_t tokens = 0;
  for (int32_t len : lens)
    tokens += len;
  return tokens * cell.num_kv_heads * cell.head_dim * 2 * bytes_of(cell.kv_dtype);
}

} // namespace assay::bench
