// SPDX-License-Identifier: Apache-2.0
// A correct kernel in scalar code, independent of kernels/: block-FMA products, approximate
// exponentials, rounded P, tiles, states merged in the block, splits merged through (O, LSE). And
// the same kernel with one thing wrong.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/abi/plugin.h"
#include "oracle/exact/row_input.h"
#include "oracle/exact/tile_order.h"

namespace assay::oracle::test {

enum class Mutant {
  kNone,
  // The keys a kernel sees.
  kLastKeyDropped,
  kKeyPastTheEnd,
  kInteriorKeyDropped,
  kRowDuplicated,
  kValueRowsSwapped,
  kTileSkipped,
  kStaleValueTile,
  // Its arithmetic.
  kOutputNotRescaled,
  kSumNotRescaled,
  kSumMissesLane,
  kStatesIgnoreMaxima,
  kMergeIgnoresMaxima,
  kMergeMixesBases,
  kMergeNormaliserOff,
  kScaleInBf16,
  kAccumulatorInBf16,
  kScoresInBf16,
  kExp2Coarse,
  kTilePFourBits,
  kOutputTruncated,
  // Its features.
  kNoSoftcap,
  kAlibiOffByOne,
  kSinkPerSplit,
  kScaleIgnored, ///< K's scale is taken as 1
  kCount
};
const char *mutant_name(Mutant mutant);

/** Where running maxima are multiplied by the scale: all are correct kernels. */
enum class Maxima { kUnscaled, kScaled, kScaledAtMerge, kDifferenceFirst };

/** How the approximate instructions use up their allowance. */
enum class Noise {
  kNone,
  kHashed,
  kUp,
  kDown,
  kSkewed ///< up for results below 1/2, down above: what distorts a softmax most
};

struct Emulation {
  int block = 16; ///< 0: fp32 FMA chains and unrounded P
  int fraction_bits = 25;
  int tile = 64;
  int p_parts = 1;                           ///< 2: what rounding took from P, rounded, meets V too
  assay_format p_format = ASSAY_FORMAT_CALL; ///< without blocks: unrounded
  assay_format sum_format = ASSAY_FORMAT_FP32;
  assay_format partial_format = ASSAY_FORMAT_FP32; ///< format of O of a split, before each merge
  assay_format score_format = ASSAY_FORMAT_FP32;   ///< half of the kernels round scaled scores
  int p_scale_log2 = 0;                            ///< weights meet V times 2^this
  assay_format kv_format = ASSAY_FORMAT_FP32;      ///< format of fp8 K and V times their scales
                                                   ///< and of fp32 ones
  bool rounded_before_scale = false;               ///< O, then v_scale
  bool natural = false;                           ///< exponentials, logarithms and LSEs of partials
  assay_format unit_q_format = ASSAY_FORMAT_FP32; ///< format of Q, scaled to its largest value
  assay_format q_format = ASSAY_FORMAT_FP32;      ///< format of Q, times a part of its scales
  assay_format product_format = ASSAY_FORMAT_FP32; ///< format of products of Q and K
  assay_format qk_sum_format = ASSAY_FORMAT_FP32;  ///< format of their partial sums
  assay_format output_format = ASSAY_FORMAT_FP32;  ///< format of O before its last rounding
  int states = 1;                                  ///< per split
  bool combine = true; ///< through (O, LSE) partials even with one split
  int stages = 1;      ///< merges through partials; 2: halves first
  Maxima maxima = Maxima::kUnscaled;
  bool low_subnormals = false; ///< alignment gives subnormal operands the smallest normal exponent
  Noise noise = Noise::kHashed;
  double exp2_error = 0x1p-22; ///< relative; declared, and used up in the direction of `noise`
  double log2_error = 0x1p-22; ///< per 1 + |result|
  double rcp_error = 0x1p-23;  ///< relative
  bool round_output = true;    ///< false: the fp32 value before the last rounding, to test the rest
  uint64_t seed = 0;
  Mutant mutant = Mutant::kNone;
};

/** What a kernel with this arithmetic would declare. */
assay_arithmetic declared(const Emulation &emulation);

struct RowOutput {
  std::vector<float> o;
  float lse = 0.0f;
};

RowOutput emulate_row(std::span<const float> q, const KeySet &keys, assay_dtype dtype,
                      float sm_scale, assay_lse_base base, const TileOrder &order,
                      const Emulation &emulation, const RowFeatures &features = {});

/** Applies the mutants of the first kind to what the kernel sees. `extra` lies past the row's end.
 */
void mutate_input(Mutant mutant, uint64_t seed, const KeySet &extra, KeySet &keys,
                  TileOrder &order);

/** `splits` ranges of about equal length, their tiles dealt out to `states` in turn. */
TileOrder deal_tiles(int keys, int tile, int splits, int states, int p_parts = 1);

/** Merge of n states as the merge kernels do it, in the declared base. */
RowOutput emulate_merge(std::span<const float> o, std::span<const float> lse, int head_dim,
                        assay_dtype dtype, assay_lse_base base, const Emulation &emulation);

} // namespace assay::oracle::test
