// SPDX-License-Identifier: Apache-2.0
// What the invariants share: running a case, comparing bits.
#pragma once

#include <string>

#include "properties/relate/check_result.h"
#include "properties/sut/sut.h"

namespace assay {

/// A finished run: memory before and after, and what is already wrong with it.
struct Outcome {
  Tensors before, after;
  CheckResult check; ///< fail: bad status, hazard, memory violation; discard: unsupported
  bool ok() const { return check.passed(); }
};

Outcome run_tensors(Tensors t, Sut &sut);
Outcome run_problem(const Problem &p, Sut &sut);

/// "row 3 head 0 dim 17"; dim -1 is the LSE.
std::string element_name(int row, int head, int dim);

/// Fails unless O and LSE of (row, head) of both runs have the same bits; two NaNs are the same.
/// `what` says what the second run changed.
CheckResult same_row_bits(const Tensors &a, int row_a, int head_a, const Tensors &b, int row_b,
                          int head_b, const std::string &what);
/// As above, of every row and head; both runs have the same shape.
CheckResult same_bits(const Tensors &a, const Tensors &b, const std::string &what);

/// Deterministic choice below `bound` that depends on the case's seeds.
int pick(const Problem &p, uint32_t salt, int bound);

/// Whether a row's bits may follow the other requests and heads of this case, as the kernel
/// declares (batch_invariance; without determinism they may follow anything): relations that change
/// them then hold within the bound, not bit for bit.
bool bits_follow_batch(const Problem &p, const Sut &sut);

} // namespace assay
