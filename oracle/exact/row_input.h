// SPDX-License-Identifier: Apache-2.0
// One query row and its keys, decoded exactly.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/abi/plugin.h"
#include "oracle/exact/shard.h"

namespace assay::oracle {

/** What a call adds to plain attention for one query row; the defaults add nothing. */
struct RowFeatures {
  bool fp8 = false; ///< K and V are fp8: the operands of both products are fp16, or with fp8 q fp8
  float k_scale = 1.0f, v_scale = 1.0f;
  float o_scale = 1.0f;  ///< outputs are stored divided by it
  bool q_scaled = false; ///< Q is quantised with a scale of its own
  float q_scale = 1.0f;
  /// Above 0: scales of K and V differ from token to token and divide one into so many blocks.
  /// Both hold their values times those scales, rounded to fp32; the operands of the products are
  /// in the type of q.
  int scale_blocks = 0;
  float softcap = 0.0f; ///< 0: none
  bool alibi = false;
  float slope = 0.0f;    ///< natural-base units
  bool sinks = false;    ///< the row is merged with a sink, even one of logit -inf
  float sink = 0.0f;     ///< natural base
  int64_t behind = 0;    ///< how far the last visible key stands behind the row's own position
  Shard shard;           ///< at which positions the keys are
  int64_t first_key = 0; ///< the row's first key in its list
  bool has_sink() const; ///< a sink that counts: its logit is finite
  /// The kernel applies a map to its logits before the softmax.
  bool mapped() const { return softcap > 0.0f || alibi; }
};

/**
 * The visible keys and values of one query row, in logical order; shared by a GQA group. Where the
 * last of them stands is RowFeatures::behind. A sink may follow as one more key of zeros: its logit
 * is RowFeatures::sink.
 */
struct KeySet {
  int head_dim = 0;        ///< dims of a key
  int v_dim = 0;           ///< dims of a value; 0: as wide as a key
  bool sink = false;       ///< the last key is the sink
  std::vector<float> k, v; ///< [n, head_dim] and [n, value_dim()], exact

  std::vector<double> v_min, v_max; ///< [value_dim()], over the keys; set by finish()
  bool finite = true;               ///< no NaN or infinity in k or v
  bool v_subnormal = false;
  std::vector<unsigned char> k_subnormal; ///< [n], the key holds a subnormal element

  int value_dim() const { return v_dim > 0 ? v_dim : head_dim; }
  size_t size() const { return head_dim ? k.size() / static_cast<size_t>(head_dim) : 0; }
  const float *key(size_t j) const { return k.data() + j * static_cast<size_t>(head_dim); }
  const float *value(size_t j) const { return v.data() + j * static_cast<size_t>(value_dim()); }

  size_t visible() const { return size() - (sink ? 1 : 0); }

  /** Computes the derived members; call after filling k and v. `operand`: what the products see. */
  void finish(assay_dtype operand);

  /** The same keys and the sink. */
  KeySet with_sink(assay_dtype operand) const;
};

/** The format that products of a call take their operands in: that of q where K and V are no fp8, or q
    is too; else fp16, or what fp8 K and V are rounded to; fp32, whose exponents tf32 has. */
assay_dtype operand_dtype(assay_dtype dtype, bool fp8, assay_format kv_format = ASSAY_FORMAT_FP32);

} // namespace assay::oracle
