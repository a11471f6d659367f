// SPDX-License-Identifier: Apache-2.0
// What a finding's mistake looks like: what tells it from others and gives it a lasting name.
#pragma once

#include <string>
#include <vector>

#include "properties/run/run_summary.h"

namespace assay {

struct Cause {
  Symptom symptom;
  bool wrong_o = false, wrong_lse = false;
  /// What the case could not be shrunk out of. Of attention and its call: "window", "sink", ...,
  /// and what its property adds to every case.
  std::vector<std::string> features;
  std::vector<std::string> shape; ///< "splits", "several tiles", "keys in hnd", "strides", ...
  /// What the case has as well, and nobody knows whether it needs it: shrinking was cut short.
  std::vector<std::string> untried;
  /// Where in the call: "a later row", "a later head", "partial page", ...
  std::vector<std::string> position;

  /// Its place alone tells it: a hazard, a stray write, a refusal, a crash.
  bool located() const;
};

/// The cause of a failing case of the property, made as small as it gets; `stats` say how far it
/// got.
Cause cause_of(const Problem &shrunk, const CheckResult &result, const assay_kernel &kernel,
               const Property &property, const ShrinkStats &stats = {});

/// Whether two failing cases may show one mistake: one place; or the same features; or, without
/// any, the same shape and not O alone against the LSE alone.
bool alike(const Cause &a, const Cause &b);

/// The cause of a finding that needs calls before its own: nothing else of its case is known to be
/// needed.
Cause cause_after_others(const CheckResult &result);

/// In words: "outside, o, keeps window and splits".
std::string describe(const Cause &cause);

/// 16 hexadecimal digits of kernel, property and cause; the same in every run that shrinks to the
/// same kind of case.
std::string fingerprint(const assay_kernel &kernel, const Property &property, const Cause &cause);

} // namespace assay
