// SPDX-License-Identifier: Apache-2.0
// Requests as leaves of a random tree of pages.
#pragma once

#include "kernels/plan/host_tree.h"
#include "kernels/plan/tests/tree_audit.h"

#include <array>
#include <random>

namespace assay {

struct Requests {
  std::vector<int32_t> table, lens;
  int32_t columns;

  TreeInput input(const PrefixTreeShape &shape) const {
    return {shape, table.data(), lens.data(), columns, nullptr};
  }
};

inline Requests draw(std::mt19937 &rng, const PrefixTreeShape &s, int longest) {
  Requests out;
  out.columns = longest;
  int32_t fresh = 0;
  for (int r = 0; r < s.batch; ++r) {
    const int pages = static_cast<int>(rng() % (longest + 1));
    std::vector<int32_t> row(longest, -7); // behind the live part: anything
    const int like = r > 0 && rng() % 4 != 0 ? static_cast<int>(rng() % r) : -1;
    const int others = like < 0 ? 0 : out.lens[like] / s.page_size;
    const int shared = others == 0 ? 0 : static_cast<int>(rng() % (std::min(others, pages) + 1));
    for (int p = 0; p < pages; ++p)
      row[p] = p < shared ? out.table[like * longest + p] : fresh++;
    out.table.insert(out.table.end(), row.begin(), row.end());
    out.lens.push_back(pages * s.page_size - (pages > 0 && rng() % 2 ? rng() % s.page_size : 0));
  }
  return out;
}

inline PrefixTreeShape draw_shape(std::mt19937 &rng) {
  PrefixTreeShape s;
  s.batch = 2 + static_cast<int>(rng() % 40);
  s.q_len = rng() % 2 ? 1 : 1 + static_cast<int>(rng() % 8);
  s.query_rows = s.q_len * (1 + static_cast<int>(rng() % 9));
  s.kv_heads = 1 + static_cast<int>(rng() % 3);
  s.head_dim = 128;
  s.kv_bytes = 1 + static_cast<int>(rng() % 2);
  s.page_size = std::array{1, 16, 48, 64, 128}[rng() % 5];
  s.tile = 128;
  s.blocks = 4;
  s.splits = std::array{0, 1, 1, 2, 7}[rng() % 5];
  s.max_rows = rng() % 6 == 0 ? 40 : 100'000;
  return s;
}

inline std::string violation(const PrefixTreeShape &s, const Requests &in, const HostTree &tree) {
  return tree_violation(in.input(s), tree.view(), {tree.covered(), static_cast<size_t>(s.batch)});
}

} // namespace assay
