// SPDX-License-Identifier: Apache-2.0
// How a kernel declares its key order: which keys meet which running maximum, in which order. A
// bound that replays roundings (oracle T1, T2) needs it; the kernels do not read it.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/host/status.h"

namespace assay {

/// Appends tiles to the array of a key_order call, counting those that do not fit.
class KeyTileWriter {
public:
  KeyTileWriter(assay_key_tile *tiles, int32_t capacity, int32_t p_parts = 1)
      : tiles_(tiles), capacity_(capacity), p_parts_(p_parts) {}
  void add(int32_t level, int32_t split, int32_t state, int32_t begin, int32_t end) {
    add(level, split, state, begin, end, p_parts_);
  }
  void add(int32_t level, int32_t split, int32_t state, int32_t begin, int32_t end,
           int32_t p_parts) {
    if (count_ < capacity_) tiles_[count_] = {level, split, state, begin, end, p_parts};
    ++count_;
  }
  assay_status finish(int32_t *count) const {
    *count = count_;
    return set_ok();
  }

private:
  assay_key_tile *tiles_;
  int32_t capacity_, p_parts_, count_ = 0;
};

} // namespace assay
