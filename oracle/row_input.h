// SPDX-License-Identifier: Apache-2.0
// One query row and its keys, decoded exactly. The page walk here is the oracle's own.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/abi/assay.h"

namespace assay::oracle {

/** The live keys and values of one (request, kv head), in logical order; shared by a GQA group. */
struct KeySet {
  int head_dim = 0;
  std::vector<float> k, v; ///< [n, head_dim], exact

  std::vector<double> v_min, v_max; ///< [head_dim], over the keys; set by finish()
  bool finite = true;               ///< no NaN or infinity in k or v
  bool v_subnormal = false;
  std::vector<unsigned char> k_subnormal; ///< [n], the key holds a subnormal element

  size_t size() const { return head_dim ? k.size() / static_cast<size_t>(head_dim) : 0; }
  const float *key(size_t j) const { return k.data() + j * static_cast<size_t>(head_dim); }
  const float *value(size_t j) const { return v.data() + j * static_cast<size_t>(head_dim); }

  /** Computes the derived members; call after filling k and v. */
  void finish(assay_dtype dtype);
};

/** Throws std::invalid_argument when a length exceeds what its page table can hold. */
KeySet gather_paged(const assay_paged_params &params, int request, int kv_head);

/** Levels in order: the keys of level l come before those of level l + 1. */
KeySet gather_cascade(const assay_cascade_params &params, int request, int kv_head);

std::vector<float> gather_query(const assay_paged_params &params, int request, int qo_head);
std::vector<float> gather_query(const assay_cascade_params &params, int request, int qo_head);

} // namespace assay::oracle
