// SPDX-License-Identifier: Apache-2.0
// Cases for RapidCheck, which shrink as their bytes do.
#pragma once

#include <ostream>

#include <rapidcheck.h>

#include "properties/case/case_text.h"
#include "properties/case/problem_gen.h"

namespace assay {

/// Byte strings for the codec. Every byte spans its full range at any size.
inline rc::Gen<Bytes> gen_case_bytes() {
  // RapidCheck scales integers with the size parameter; at its nominal size they are uniform.
  const auto byte = rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<uint8_t>());
  const auto length = rc::gen::weightedElement<size_t>(
      {{1, 0}, {1, 16}, {1, 32}, {1, 48}, {1, 64}, {2, 96}, {10, 256}});
  return rc::gen::mapcat(length,
                         [byte](size_t count) { return rc::gen::container<Bytes>(count, byte); });
}

inline rc::Gen<Problem> gen_problem(const Limits &limits, Family family) {
  return rc::gen::map(gen_case_bytes(), [limits, family](const Bytes &bytes) {
    return decode_family(bytes, limits, family);
  });
}

/// Found by RapidCheck.
inline void showValue(const Problem &p, std::ostream &os) { os << format_problem(p); }

} // namespace assay
