// SPDX-License-Identifier: Apache-2.0
// Why an element is not inside, as data; words are for people and nothing reads them.
#pragma once

namespace assay::oracle {

enum class Reason {
  kNone,
  kOutside,        ///< outside the interval
  kUndecided,      ///< at the highest precision
  kBoundNotFinite, ///< the bound is not a finite number
  kNan,            ///< from finite inputs
  kInfinity,       ///< from finite inputs
  kEmptyNotZero,   ///< O of a row without keys is exactly 0
  kEmptyLse,       ///< its LSE is -inf
  kOneStateOutput, ///< one live state: its bits must be returned
  kOneStateLse,    ///< and its LSE
  kNoKnownOrder ///< outside T1 by every order that is known, while the row's other heads are inside
};

/// Whether the interval has to do with it: not where certain bits are due, or where there is none.
constexpr bool is_by_interval(Reason reason) {
  return (reason < Reason::kEmptyNotZero && reason != Reason::kBoundNotFinite) ||
         reason == Reason::kNoKnownOrder;
}
const char *reason_text(Reason reason); ///< "" of kNone

} // namespace assay::oracle
