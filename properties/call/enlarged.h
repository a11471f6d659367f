// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "properties/call/params.h"

namespace assay {

using AskLimit = std::function<void(const std::string &what, bool allowed)>;

/// Limits of assay.h.
inline constexpr int64_t kMaxRows = 1 << 24, kMaxHeads = 1 << 20;
inline constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();

inline int32_t int32(int64_t n) { return static_cast<int32_t>(n); }

/// A call that is made large, asked about, and made what it was.
class Enlarged {
public:
  Enlarged(AbiParams &call, const AskLimit &ask)
      : call_(call), paged_(call.paged), cascade_(call.cascade), levels_(call.levels),
        merge_state_(call.merge_state), merge_states_(call.merge_states), ask_(ask) {}

  template <class Change>
  void ask(bool allowed, const std::string &what, Change change) const {
    change();
    ask_(what, allowed);
    call_.paged = paged_;
    call_.cascade = cascade_;
    call_.levels = levels_;
    call_.cascade.levels = call_.levels.data();
    call_.merge_state = merge_state_;
    call_.merge_states = merge_states_;
  }

private:
  AbiParams &call_;
  const assay_paged_params paged_;
  const assay_cascade_params cascade_;
  const std::vector<assay_cascade_level> levels_;
  const assay_merge_state_params merge_state_;
  const assay_merge_states_params merge_states_;
  const AskLimit &ask_;
};

} // namespace assay
