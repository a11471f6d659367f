// SPDX-License-Identifier: Apache-2.0
// Calls whose outputs have coherent errors: no element shows them, and a row as one may.
#pragma once

#include "oracle/tests/random_merge.h"

namespace assay::oracle::test {

inline void bend(const RowOutputs &out, void *o, int64_t at, double factor) {
  for (int64_t i = at; i < at + out.dims; ++i) {
    const double x = load_element(out.dtype, o, i) * factor;
    store_element(out.dtype, o, i, static_cast<float>(round_to(format_of(out.dtype), x)));
  }
}
inline void bend(RandomCall &call, int row, int head, double factor) {
  bend(call.rows.out, call.o_of(row, head, 0), 0, factor);
}

/// Every row and head by a factor of its own, 1 +- 2^-5 to 2^-14.
inline void bend(RandomCall &call, std::mt19937 &random) {
  for (int row = 0; row < call.rows.out.rows(); ++row)
    for (int head = 0; head < call.rows.out.heads; ++head) {
      const double sign = random() % 2 ? 1.0 : -1.0;
      bend(call, row, head, 1.0 + std::ldexp(sign, -5 - static_cast<int>(random() % 10)));
    }
}
/// The factors of merges are 1 + 2^-7 to 2^-24, as some are of fp32.
inline void bend(RandomMerge &call, std::mt19937 &random) {
  const RowOutputs &out = call.rows.out;
  auto *o = const_cast<void *>(call.outputs().o);
  for (int row = 0; row < out.rows(); ++row)
    for (int head = 0; head < out.heads; ++head)
      bend(out, o, call.at(row, head, 0),
           1.0 + std::ldexp(1.0, -7 - static_cast<int>(random() % 18)));
  if (random() % 2 == 0) call.model.arithmetic.exp2_rel_error = 0x1p-9f;
}

/// Calls without an order, most of them, whose row sums add rounded weights or others.
class BentCall {
public:
  BentCall(std::mt19937 &random, CallMemory &memory) : call(options(random), random(), memory) {
    assay_arithmetic &a = call.model.arithmetic;
    const assay_format sums[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_CALL, ASSAY_FORMAT_FP16};
    a.sum_format = sums[random() % 3];
    if (random() % 3 == 0) a.p_format = ASSAY_FORMAT_FP16;
    if (random() % 4 == 0) a.p_format = ASSAY_FORMAT_TF32; // with an order: nothing is replayed
    if (random() % 4 == 0) a.exp2_rel_error = 0x1p-9f;
    call.fill();
    bend(call, random);
  }

  RandomCall call;

private:
  static Options options(std::mt19937 &random) {
    Options o = random_options(random);
    for (int &keys : o.lengths)
      keys = std::min(keys, 300);
    o.kv_heads = std::min(o.kv_heads, 2);
    o.group = std::min(o.group, 5);
    o.q_len = std::min(o.q_len, 2);
    if (random() % 4 == 0) o.tile = 64;
    if (random() % 6 == 0) o.v_size = 0x1p-120f;
    return o;
  }
};

} // namespace assay::oracle::test
