// SPDX-License-Identifier: Apache-2.0
// What the invariants share: running a case, comparing bits.
#pragma once

#include <string>

#include "properties/check_result.h"
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

/// Whether the kernel itself chooses how to cut this case's rows (num_splits = 0). The cut may then
/// depend on the whole batch and differ between heads, so relations that change the batch or the
/// head hold within the bound, not bit for bit.
bool kernel_picks_cut(const Problem &p, const Sut &sut);

/// Keys each request attends to: seq_lens, or the sum over a cascade's levels.
std::vector<int> keys_per_request(const Problem &p);

/// How many keys a query row sees.
int visible_count(const Problem &p, int row);

/// Copies scales, slopes and sinks, each to the kv head (with its query heads) so many further.
void copy_features(Tensors &to, const Tensors &from, int kv_heads_apart);

/// Where the keys of a request lie: (cache, row) pairs in order.
struct KeyRun {
  int cache, row, len;
};
std::vector<KeyRun> key_runs(const Tensors &t, int request);

/// Of those, the tokens [begin, end) that a query row sees.
struct VisibleRun {
  int cache, row, begin, end;
};
std::vector<VisibleRun> visible_runs(const Tensors &t, int row);

} // namespace assay
