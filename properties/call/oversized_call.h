// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "properties/call/params.h"

namespace assay {

/// A call with sizes at a limit, or beyond.
struct LimitedCall {
  /// Which limit it is at or beyond, as data: causes and fingerprints are made of it.
  std::string limit;
  std::string what; ///< it has, in words
  bool allowed;
  bool of_plan = false; ///< its plan is asked for, and nothing is said of the call itself
};
using AskLimit = std::function<void(const LimitedCall &)>;

/// Limits of assay.h.
inline constexpr int64_t kMaxRows = 1 << 24, kMaxHeads = 1 << 20;
inline constexpr int32_t kMaxTokens = 1 << 30;
inline constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();

inline int32_t int32(int64_t n) { return static_cast<int32_t>(n); }

/// A call that is made large, asked about, and made what it was.
class OversizedCall {
public:
  OversizedCall(AbiParams &call, const AskLimit &ask)
      : call_(call), paged_(call.paged), cascade_(call.cascade), levels_(call.levels),
        merge_state_(call.merge_state), merge_states_(call.merge_states), ask_(ask) {}

  template <class Change>
  void ask(bool allowed, const std::string &limit, const std::string &what, Change change) const {
    ask_about({limit, what, allowed}, change);
  }
  template <class Change>
  void ask_for_plan(bool allowed, const std::string &limit, const std::string &what,
                    Change change) const {
    ask_about({limit, what, allowed, true}, change);
  }

private:
  template <class Change>
  void ask_about(const LimitedCall &limited, Change change) const {
    change();
    ask_(limited);
    call_.paged = paged_;
    call_.cascade = cascade_;
    call_.levels = levels_;
    call_.cascade.levels = call_.levels.data();
    call_.merge_state = merge_state_;
    call_.merge_states = merge_states_;
  }

  AbiParams &call_;
  const assay_paged_params paged_;
  const assay_cascade_params cascade_;
  const std::vector<assay_cascade_level> levels_;
  const assay_merge_state_params merge_state_;
  const assay_merge_states_params merge_states_;
  const AskLimit &ask_;
};

} // namespace assay
