// SPDX-License-Identifier: Apache-2.0
// What each field of a declaration adds to the bounds of a call: the same bounds with that field
// exact.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/judge/call.h"

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
 * Over all rows of a call about which the declaration leaves a claim. Input pointers of params are
 * host pointers; outputs, workspace and plan are not looked at. A declared key order that is none
 * throws OrderError.
 */
DeclarationCost declaration_cost(const assay_paged_params &params, const KernelModel &model);
DeclarationCost declaration_cost(const assay_cascade_params &params, const KernelModel &model);
DeclarationCost declaration_cost(const assay_merge_state_params &params, const KernelModel &model);
DeclarationCost declaration_cost(const assay_merge_states_params &params, const KernelModel &model);

} // namespace assay::oracle
