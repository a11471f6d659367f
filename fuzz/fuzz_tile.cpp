// SPDX-License-Identifier: Apache-2.0
// AttentionTile itself on raw bits: up to four tiles of scores (set in its registers) and values
// (in shared memory) go through mask_tail, update_softmax, accumulate_values and reduce_sums on one
// warp of the executor; bf16, fp16, two row tiles, and weights in two parts.
//
// These hold for every query row and a scale from 2^-126 to 2^126 (1. for any scale):
//   1. After every tile m is exactly the maximum of the scores so far on all eight lanes that hold
//      the row; a NaN loses. d and the LSE are the same on all eight.
//   2. A NaN score is in d, in the LSE and in every component; of +inf the mass tells.
//   3. A row that saw no key, whatever stood at masked ones, has d = 0, lse = -inf and gives +0.
//   4. A finite row has d and o within the rounding error of the declared arithmetic
//      (tile_enclosure.cpp), the sum of both parts where weights have two; its LSE and quotient
//      follow from its own m, d and o within 2^-22 (1 + |log2 d|), two roundings, and 4 u.
//   5. A NaN value is in its component of every row that gives its key 2^-20 of the weight.
// No claim: exponents off by more than 8 (|scale * m| above 2^27), components that meet an infinity
// or sums above 2^126, scores whose base-2 logits leave 2^126.
#include "fuzz/paths/tile_judge.h"

ASSAY_FUZZ_TARGET(assay::fuzz::check_tile)
