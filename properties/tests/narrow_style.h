// SPDX-License-Identifier: Apache-2.0
// How a narrow kernel computes, and what it takes.
#pragma once

#include "kernels/abi/plugin.h"

namespace assay::narrow {

inline constexpr int kMaxKeys = 4096;
inline constexpr int kMaxHeadDim = 256;
inline constexpr assay_dtype kAny = -1;

enum class Features { kPlain, kWindow, kAll };

/// How many parts a row has. The first two obey a num_splits above 0.
enum class Parts { kAsked, kAskedOrByBatch, kAlways, kByBatch, kByCapacity };

/// Why a kernel refuses a call, or null.
using Refusal = const char *(*)(const assay_paged_params &);

struct Style {
  const char *name;
  // Arithmetic.
  assay_format p = ASSAY_FORMAT_FP32, sum = ASSAY_FORMAT_FP32, q = ASSAY_FORMAT_FP32;
  assay_format score = ASSAY_FORMAT_FP32, partial = ASSAY_FORMAT_FP32;
  bool natural = false;
  bool fp64 = false;      ///< its accumulators
  bool scaled_q = false;  ///< the scale is multiplied into q, which is rounded to bf16
  bool backwards = false; ///< newest key first
  bool any_order = false; ///< the keys of a tile in another order at each call
  bool tree = false;      ///< the weights of a tile are summed in pairs of pairs
  int tile = 16;          ///< keys; kMaxKeys: all scores before the first weight
  int states = 1;         ///< they take the tiles of a part in turn
  int splits = 0;         ///< most parts of a row
  Parts parts = Parts::kAsked;
  bool ordered = false; ///< it declares the order of its keys
  bool twice = false;   ///< it writes its outputs twice
  // What it takes.
  assay_dtype dtype = kAny, kv = kAny;        ///< kAny for kv: that of the call, and fp8
  int head_dim = 0, page_size = 0, group = 0; ///< 0: any
  Features features = Features::kPlain;
  bool without_lse = true, without_keys = true; ///< rows without them
  bool ragged = false;                          ///< qo_indptr
  Refusal refusal = nullptr;                    ///< what else it does not take
};

} // namespace assay::narrow
