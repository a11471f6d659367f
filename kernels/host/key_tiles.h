// SPDX-License-Identifier: Apache-2.0
// How a kernel declares its key order: which keys meet which running maximum, in which order. A
// bound that replays roundings (oracle T1, T2) needs it; the kernels do not read it.
#pragma once

#include "kernels/abi/plugin.h"

namespace assay {

/// Appends tiles to the array of a key_order call, request after request, counting those that do
/// not fit.
class KeyTileWriter {
public:
  KeyTileWriter(assay_key_tile *tiles, int64_t capacity, int64_t *first, int32_t p_parts = 1)
      : tiles_(tiles), capacity_(capacity), first_(first), p_parts_(p_parts) {
    *first_ = 0;
  }
  void add(int32_t level, int32_t split, int32_t state, int32_t begin, int32_t end) {
    add(level, split, state, begin, end, p_parts_);
  }
  void add(int32_t level, int32_t split, int32_t state, int32_t begin, int32_t end,
           int32_t p_parts) {
    if (count_ < capacity_) tiles_[count_] = {level, split, state, begin, end, p_parts};
    ++count_;
  }
  /// What is added from here on is of the next request.
  void end_request() { *++first_ = count_; }

private:
  assay_key_tile *tiles_;
  int64_t capacity_, count_ = 0;
  int64_t *first_;
  int32_t p_parts_;
};

} // namespace assay
