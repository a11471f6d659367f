// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/cells/cascade_cells.h"

namespace assay::bench {
namespace {

/// 32 query heads over 8 kv heads of 128, pages of 16.
CascadeCell llama8b(const std::string &name, int batch, std::vector<CascadeLevel> levels) {
  return {name, batch, 32, 8, 128, 16, std::move(levels), KvDtype::kBf16};
}

/// One prefix for all requests.
CascadeCell prefix(int batch, int tokens) {
  return llama8b("prefix b" + std::to_string(batch) + " p" + std::to_string(tokens), batch,
                 {{1, tokens}});
}

/// A shared prefix, and a suffix of every request.
CascadeCell cascade(int batch, int prefix, int suffix) {
  return llama8b("cascade b" + std::to_string(batch) + " p" + std::to_string(prefix) + " u" +
                     std::to_string(suffix),
                 batch, {{1, prefix}, {batch, suffix}});
}

std::vector<CascadeCell> bf16_cascades() {
  return {
      cascade(16, 8192, 128),
      cascade(64, 2048, 256),
      cascade(64, 8192, 256),
      cascade(64, 32768, 256),
      cascade(256, 8192, 256),
      cascade(256, 32768, 128),
      cascade(256, 1024, 128),
      cascade(64, 2048, 2048),
      prefix(16, 8192),
      prefix(64, 2048),
      prefix(64, 8192),
      prefix(64, 32768),
      prefix(256, 8192),
      prefix(256, 32768),
      prefix(256, 1024),
      prefix(32, 131072),
      prefix(512, 2048),
      llama8b("tree d3 f4", 64, {{1, 2048}, {4, 512}, {16, 512}, {64, 128}}),
      llama8b("tree d3 f16", 256, {{1, 2048}, {16, 512}, {256, 128}}),
      llama8b("groups 32x8 p4096", 256, {{32, 4096}, {256, 128}}),
      llama8b("beams b128 p2048", 128, {{1, 2048}, {128, 64}}),
  };
}

} // namespace

const std::vector<CascadeCell> &standard_cascade_cells() {
  static const std::vector<CascadeCell> kCells = [] {
    std::vector<CascadeCell> cells = bf16_cascades();
    for (CascadeCell cell : bf16_cascades()) {
      if (cell.levels.size() == 1) continue;
      cell.name = "fp8 " + cell.name;
      cell.kv_dtype = KvDtype::kE4m3;
      cells.push_back(std::move(cell));
    }
    return cells;
  }();
  return kCells;
}

uint64_t kv_bytes(const CascadeCell &cell) {
  uint64_t tokens = 0;
  for (const CascadeLevel &level : cell.levels)
    tokens += uint64_t(level.segments) * level.tokens;
  return tokens * cell.num_kv_heads * cell.head_dim * 2 * bytes_of(cell.kv_dtype);
}

uint64_t flops(const CascadeCell &cell) {
  uint64_t keys = 0; // keys of one request
  for (const CascadeLevel &level : cell.levels)
    keys += level.tokens;
  return 4 * keys * cell.batch * cell.num_qo_heads * cell.head_dim;
}

} // namespace assay::bench
