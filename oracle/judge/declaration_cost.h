// SPDX-License-Identifier: Apache-2.0
// What each field of a declaration adds to the bounds of a call: the same bounds with that field
// exact.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/judge/problems.h"

namespace assay::oracle {

/** Bounds of outputs added up; of each the sharper of T0 and T1 (T2 knows bits, not the
 * declaration).
 */
struct BoundSums {
  BudgetTerms o;
  double lse = 0.0;
};

/** A field, or the two that go together. */
struct DeclaredField {
  const char *name;  ///< as in assay_arithmetic; two with ", " between
  const char *exact; ///< what it is held against, in words
  void (*make_exact)(assay_arithmetic &arithmetic);
};

/** Every field of assay_arithmetic is in one of them. */
const std::vector<DeclaredField> &declared_fields();

struct DeclarationCost {
  uint64_t outputs = 0;          ///< elements of O in the sums
  double magnitude = 0.0;        ///< their |O| added up
  BoundSums declared, exact;     ///< as declared; with all fields exact
  std::vector<BoundSums> fields; ///< each field of declared_fields() exact, the others as declared
};

/**
 * Over all rows of a call about which the declaration leaves a claim. A declared key order that is
 * none throws OrderError.
 */
DeclarationCost declaration_cost(const CallRows &rows, const KernelModel &model);

} // namespace assay::oracle
