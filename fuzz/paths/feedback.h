// SPDX-License-Identifier: Apache-2.0
// What a run did to numbers, as features for libFuzzer beside the edges: an input that reaches a
// new level of a signal is kept. Costs nothing that matters in other builds. ASSAY_FUZZ_FEEDBACK=0
// in the environment switches it off, to measure what it is worth.
#pragma once

namespace assay::fuzz {

enum class Signal {
  kMaximum,   // exponent of the running maximum or largest LSE
  kMass,      // exponent of the row sum
  kGrowth,    // exponent of what the maximum grew by, in base-2 logits; of a distance of two LSEs
  kMasked,    // which tiles held no key of a row; how many states were empty
  kRemainder, // live keys of a tile; states
  kWeight,    // exponent of the smallest weight, flushed ones last
  kDominant,  // exponent of the weight whose key makes most of a component
  kCancelled, // bits that a component lost to cancellation
  kSubnormal, // subnormal results: d, o
  kErrorMass, // |error| / bound of d or of the LSE, o, in half powers of two
  kErrorLse,
  kErrorSum,
  kTiles,    // tiles of keys of a request or segment
  kProducts, // matrix products of the run
  kArrivals, // atomic operations of the run: splits that arrive
  kCount
};

/// Begins an input; `form` keeps the signals of different code apart, 0 to 10.
void begin_feedback(int form);

/// The run reached `level` of a signal. Rounded, and clamped to 0 .. 63.
void note(Signal signal, double level);

/// The binary exponent of |x|, shifted and divided so that fp32's fit in 0 .. 63.
double exponent_level(double x);

/// |error| / bound in half powers of two: 63 at the bound, 0 from 2^-31 of it down.
double error_level(double error, double bound);

} // namespace assay::fuzz
