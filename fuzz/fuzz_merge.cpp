// SPDX-License-Identifier: Apache-2.0
// The kernels' own merges on raw bits of LSEs, masses and values: merge_pair (merge_state),
// merge_few and MergeStatesBlock (merge_states), join_sink, merge_published and add_low_part (warps
// of a block), publish_partials (splits of v2), finish_cascade_row (levels, one state in
// registers).
//
//   1. Empty states (LSE -inf), whatever their o holds, change nothing: without others the result
//      is +0 and -inf; a lone other one comes back bit for bit from merge_state and merge_states.
//   2. m of warps is exactly their maximum. merge_state(a, b) == merge_state(b, a) bit for bit.
//      Rows with the same states get the same result, and nothing of partials that nobody wrote
//      (NaN here) comes in.
//   3. A NaN LSE or mass among two or more states that are not empty is in the LSE and in every
//      component; a NaN value is in its component when its state has 2^-20 of the weight.
//   4. Otherwise LSE and o (of warps d and the sums, too) are within the rounding error of the
//      arithmetic: 2 u of each exponent, 4 u an exponential, at most 7 rescalings of 6 u, a
//      rounding for each addition, 2^-22 (1 + |log2 d|) of the logarithm.
// No claim: LSEs of +inf, infinite values unless their weight is 0 in a merge that then leaves them
// out, sums above 2^126, logits outside 2^126.
#include "fuzz/paths/merge_judge.h"

ASSAY_FUZZ_TARGET(assay::fuzz::check_merge)
