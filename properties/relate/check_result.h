// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "kernels/abi/assay.h"
#include "oracle/judge/budget_sizes.h"
#include "properties/relate/symptom.h"

namespace assay {

/// What the oracle judged: of a case, or of all cases of a run.
struct Judged {
  double ratio_t0 = 0, ratio_t1 = 0, ratio_t2 = 0, ratio_lse = 0; ///< worst |error| / bound seen
  uint64_t outputs = 0;        ///< judged by the oracle: O elements and LSEs
  uint64_t no_claim = 0;       ///< live outputs that the oracle says nothing about
  uint64_t declared_away = 0;  ///< of those: for the errors that the kernel declares
  oracle::BudgetSizes budgets; ///< the median of each call's outputs
  uint64_t certified_rows = 0; ///< whose oracle was recomputed in interval arithmetic

  /// The largest ratio of O, by the tightest tier that judged it.
  double ratio_o() const { return ratio_t2 > 0 ? ratio_t2 : ratio_t1 > 0 ? ratio_t1 : ratio_t0; }

  /// Keeps the worse ratios of the two and the sum of the counts.
  void add(const Judged &other) {
    ratio_t0 = std::max(ratio_t0, other.ratio_t0);
    ratio_t1 = std::max(ratio_t1, other.ratio_t1);
    ratio_t2 = std::max(ratio_t2, other.ratio_t2);
    ratio_lse = std::max(ratio_lse, other.ratio_lse);
    outputs += other.outputs;
    no_claim += other.no_claim;
    declared_away += other.declared_away;
    budgets.merge(other.budgets);
    certified_rows += other.certified_rows;
  }
};

/// A call that the kernel does not run, by what it is compiled for.
struct RefusedCall {
  assay_dtype dtype = ASSAY_FP16, kv_dtype = ASSAY_FP16;
  int head_dim = 0;
};

/// What one property says about one case.
struct CheckResult : Judged {
  enum class Kind {
    kPass,
    kFail,
    kUndecided, ///< the oracle could not decide at its highest precision; never counts as a pass
    kDiscard    ///< the property says nothing about this case (or the kernel does not support it)
  };
  Kind kind = Kind::kPass;
  bool unsupported = false; ///< discarded because the kernel answered that it cannot run the case
  RefusedCall refused;      ///< the call of `unsupported`
  std::string message;      ///< one line: what is wrong, or why discarded
  std::string detail;       ///< further lines: the worst element, budget by term
  int row = 0, head = 0;    ///< of the first element of `detail`
  Symptom symptom;          ///< of a failure: the message as data

  bool passed() const { return kind == Kind::kPass; }
  bool failed() const { return kind == Kind::kFail; }

  static CheckResult pass() { return {}; }
  static CheckResult fail(std::string message, Symptom symptom) {
    CheckResult out = make(Kind::kFail, std::move(message));
    out.symptom = std::move(symptom);
    return out;
  }
  static CheckResult discard(std::string reason) { return make(Kind::kDiscard, std::move(reason)); }

  /// What both judged, and the other's verdict if this one passes.
  CheckResult &also(const CheckResult &other) {
    if (passed()) {
      kind = other.kind;
      unsupported = other.unsupported;
      refused = other.refused;
      message = other.message;
      detail = other.detail;
      row = other.row;
      head = other.head;
      symptom = other.symptom;
    }
    add(other);
    return *this;
  }

private:
  static CheckResult make(Kind kind, std::string message) {
    CheckResult out;
    out.kind = kind;
    out.message = std::move(message);
    return out;
  }
};

} // namespace assay
