// SPDX-License-Identifier: Apache-2.0
#include "oracle/judge/reason.h"

namespace assay::oracle {

const char *reason_text(Reason reason) {
  switch (reason) {
  case Reason::kNone:
    return "";
  case Reason::kOutside:
    return "outside the interval";
  case Reason::kUndecided:
    return "undecided at the highest precision";
  case Reason::kBoundNotFinite:
    return "the bound is not a finite number";
  case Reason::kNan:
    return "NaN from finite inputs";
  case Reason::kInfinity:
    return "infinity from finite inputs";
  case Reason::kEmptyNotZero:
    return "a row without keys must be exactly 0";
  case Reason::kEmptyLse:
    return "the LSE of a row without keys must be -inf";
  case Reason::kOneStateOutput:
    return "one live state: its bits must be returned";
  case Reason::kOneStateLse:
    return "one live state: its LSE must be returned";
  case Reason::kNoKnownOrder:
    return "no known order of keys explains this row";
  }
  return "";
}

} // namespace assay::oracle
