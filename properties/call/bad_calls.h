// SPDX-License-Identifier: Apache-2.0
// Calls that assay.h forbids, made from a right one.
#pragma once

#include <functional>
#include <string>

#include "properties/call/params.h"

namespace assay {

/// What a kernel takes beyond what its structs say.
struct CallTraits {
  bool splits;               ///< num_splits counts
  bool plans;                ///< a plan may be given
  uint64_t scratch_bytes;    ///< needed; 0: the workspace is ignored
  bool fixed_splits = false; ///< num_splits > 0 forces that many of every row
};

/// What is wrong with a call. Causes and fingerprints are made of `argument` and `kind`, so they
/// stay what they are; `what` is for people, and may be put in other words.
struct BadCall {
  enum class Kind : uint8_t { kValue, kNull, kAlignment, kAlias, kTogether };
  std::string argument; ///< as assay.h names it
  Kind kind;
  std::string what;
  bool of_shape = false; ///< sizes, types and options: what sizes of scratch and plans follow, too
};
const char *name_of(BadCall::Kind kind);
using AskBadCall = std::function<void(const BadCall &)>;

/// Puts into `right`, one after another, each mistake that a host can see (null and misaligned
/// pointers, strides, ranges, combinations, forbidden aliases), calls `ask` with what is wrong, and
/// mends it again. What depends on the case is left out where the case makes it right.
void for_each_bad_call(AbiParams &right, const CallTraits &traits, const AskBadCall &ask);

} // namespace assay
