// SPDX-License-Identifier: Apache-2.0
// One query row and its keys, decoded exactly. The page walk here is the oracle's own.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/abi/assay.h"

namespace assay::oracle {

/** What a call adds to plain attention for one query row; the defaults add nothing. */
struct RowFeatures {
  bool fp8 = false; ///< K and V are fp8: the operands of both products are fp16 in any dtype
  float k_scale = 1.0f, v_scale = 1.0f;
  float softcap = 0.0f; ///< 0: none
  bool alibi = false;
  float slope = 0.0f;    ///< natural-base units
  bool sinks = false;    ///< the row is merged with a sink, even one of logit -inf
  float sink = 0.0f;     ///< natural base
  bool has_sink() const; ///< a sink that counts: its logit is finite
  /// The kernel applies a map to its logits before the softmax.
  bool mapped() const { return softcap > 0.0f || alibi; }
};

/**
 * The visible keys and values of one query row, in logical order; shared by a GQA group. The last
 * of them stands at the row's own position. A sink may follow as one more key of zeros: its logit
 * is RowFeatures::sink.
 */
struct KeySet {
  int head_dim = 0;
  bool sink = false;       ///< the last key is the sink
  std::vector<float> k, v; ///< [n, head_dim], exact

  std::vector<double> v_min, v_max; ///< [head_dim], over the keys; set by finish()
  bool finite = true;               ///< no NaN or infinity in k or v
  bool v_subnormal = false;
  std::vector<unsigned char> k_subnormal; ///< [n], the key holds a subnormal element

  size_t size() const { return head_dim ? k.size() / static_cast<size_t>(head_dim) : 0; }
  const float *key(size_t j) const { return k.data() + j * static_cast<size_t>(head_dim); }
  const float *value(size_t j) const { return v.data() + j * static_cast<size_t>(head_dim); }

  size_t visible() const { return size() - (sink ? 1 : 0); }

  /** Computes the derived members; call after filling k and v. `operand`: what the products see. */
  void finish(assay_dtype operand);

  /** The same keys and the sink. */
  KeySet with_sink(assay_dtype operand) const;
};

/** Token positions [begin, end) of a request. */
struct KeyRange {
  int begin = 0, end = 0;
};

/**
 * A query row of a paged call is row = request * q_len + token.
 * What it sees; throws std::invalid_argument when a length exceeds what its page table can hold.
 */
KeyRange visible_keys(const assay_paged_params &params, int row);
KeySet gather_paged(const assay_paged_params &params, int row, int kv_head);
RowFeatures gather_features(const assay_paged_params &params, int qo_head);
RowFeatures gather_features(const assay_cascade_params &params, int qo_head);

/** The format that products of a call take their operands in. */
assay_dtype operand_dtype(assay_dtype dtype, bool fp8);

/** Keys that a level of a cascade holds for a request: 0 when none of its segments serves it. */
int level_length(const assay_cascade_params &params, int level, int request);

/** Levels in order: the keys of level l come before those of level l + 1. */
KeySet gather_cascade(const assay_cascade_params &params, int request, int kv_head);

std::vector<float> gather_query(const assay_paged_params &params, int row, int qo_head);
std::vector<float> gather_query(const assay_cascade_params &params, int request, int qo_head);

} // namespace assay::oracle
