// SPDX-License-Identifier: Apache-2.0
// Chains of absorb, rescale_to, merge and from_normalized on raw float bits (NaN, Inf, -Inf,
// subnormals, -0, values near overflow), over the AttentionState<float, N> of the kernels.
//
// After every operation:
//   1. m is exactly the maximum of the scores, loads and rescale targets so far; a NaN loses.
//   2. The identity is neutral bit for bit on both sides, also when its d holds Inf and its o NaN.
//   3. Empty + empty is empty. An empty state gives o = +0 and lse = -inf whatever its o holds.
//   4. merge(a, b) == merge(b, a) bit for bit (NaN payloads aside) unless both are empty.
//   5. rescale_to(m) changes no bit.
//   6. A NaN or +inf score is never lost: d is NaN, and the state is not empty.
// At the end, for every state whose inputs are inside the range (2^-126 <= scale <= 2^126, |score|
// and |scale * score| <= 2^126 or score = -inf, sum of |v| <= 2^126 per component), against an
// enclosure of the exact value in 320-bit intervals:
//   7. d, o are finite and d >= 0: no NaN and no Inf out of finite inputs.
//   8. d and o are within the rounding error of their own chain: per key, x * 2 u for the arguments
//      of the exponentials (they telescope) and 6 u per step; 2^-126 per operation for underflow.
//   9. When m is a key's score: lse2() is within that of the exact logarithm plus 2^-22
//      (1 + |log2 d|) and two roundings, and normalize() gives o / d within 4 u more.
#include "fuzz/paths/rescale_chain.h"

ASSAY_FUZZ_TARGET(assay::fuzz::check_rescale<>)
