// SPDX-License-Identifier: Apache-2.0
// Inputs that hold a case: how they are read, and mutated field by field.
#pragma once

#include <optional>

#include "fuzz/target.h"
#include "properties/case/codec.h"

namespace assay::fuzz {

/// A byte for the target, then the bytes of the codec.
struct CaseFormat {
  Limits limits;
  std::optional<Family> family; ///< the family of every case; then version and family are left out
};

struct PickedCase {
  uint8_t pick = 0;
  Problem problem;
};

/// Total, as decode() is.
PickedCase read_case(const CaseFormat &format, Input input);
Bytes write_case(const CaseFormat &format, const PickedCase &picked);

/// An input near `input`, the same for the same seed: its case edited (edit_case.h) or, one time in
/// eight, its byte for the target changed. As long as a written case at most.
Bytes mutated_input(const CaseFormat &format, Input input, uint32_t seed);
/// The case of `a` with choices of that of `b`.
Bytes crossed_input(const CaseFormat &format, Input a, Input b, uint32_t seed);

/// What libFuzzer calls: one mutation in four is its own, on bytes. ASSAY_FUZZ_BY_FIELD=0 in the
/// environment leaves all to it, to measure what the others are worth.
size_t mutate_in_place(const CaseFormat &format, uint8_t *data, size_t size, size_t max_size,
                       uint32_t seed);
size_t cross_into(const CaseFormat &format, Input a, Input b, uint8_t *out, size_t max_size,
                  uint32_t seed);

} // namespace assay::fuzz

/// Gives a target whose inputs are cases of `format` the mutators above.
#define ASSAY_CASE_MUTATOR(format)                                                                 \
  extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,           \
                                            unsigned seed) {                                       \
    return assay::fuzz::mutate_in_place(format, data, size, max_size, seed);                       \
  }                                                                                                \
  extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b,   \
                                              size_t b_size, uint8_t *out, size_t max_size,        \
                                              unsigned seed) {                                     \
    return assay::fuzz::cross_into(format, {a, a_size}, {b, b_size}, out, max_size, seed);         \
  }
