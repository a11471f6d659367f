// SPDX-License-Identifier: Apache-2.0
// What a served call is: sizes, shapes, and where its pages lie.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/abi/assay.h"

namespace assay::served {

inline constexpr int kDim = 128, kPage = 16;

struct Sizes {
  std::string name, kernel = "paged_attention_v2";
  std::vector<int32_t> lengths;
  int heads = 32, kv_heads = 8, q_len = 1;
  int request = 0, token = 0, head = 0; ///< whose row goes wrong
  int split = 512;                      ///< keys, a multiple of a page
  assay_dtype kv_dtype = ASSAY_BF16;
  int window = 0;
  bool sinks = false, alibi = false;
  int trunk = 0;  ///< keys that all requests share, a multiple of a page
  int branch = 0; ///< behind them, keys that `fork` requests that follow each other share
  int fork = 1;
  /// The pool has more pages than this, and the page of the middle key is one of those.
  int lost_pages = 0;

  /// Keys that the row sees.
  int last_key() const { return lengths[static_cast<size_t>(request)] - q_len + token; }
  int first_key() const { return window == 0 ? 0 : std::max(0, last_key() + 1 - window); }
  int middle_key() const { return (first_key() + last_key()) / 2 / kPage * kPage + 5; }
};

/// What a kernel is given; arrays of this process.
struct Call {
  assay_paged_params p{};
  std::vector<int32_t> table, lengths;
  int pages = 0;                                      ///< pages of the pool
  std::vector<float> k_scale, v_scale, sinks, slopes; ///< empty: none

  int32_t &page_of(int request, int position) {
    return table[static_cast<size_t>(request * p.kv.max_pages + position / kPage)];
  }
};

/// Without pointers. Pages that requests share have one number; numbers have an order of their
/// own.
Call laid_out(const Sizes &sizes, assay_target target);

} // namespace assay::served
