// SPDX-License-Identifier: Apache-2.0
#include "properties/case/problem_gen.h"

#include <ostream>

#include "properties/case/case_text.h"

namespace assay {
namespace {

/// More than any case under check_limits() consumes.
constexpr int kMaxBytes = 256;

} // namespace

rc::Gen<Bytes> gen_case_bytes() {
  // RapidCheck scales integers with the size parameter; at its nominal size they are uniform.
  auto byte = rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<uint8_t>());
  auto length = rc::gen::weightedElement<size_t>(
      {{1, 0}, {1, 16}, {1, 32}, {1, 48}, {1, 64}, {2, 96}, {10, kMaxBytes}});
  return rc::gen::mapcat(length,
                         [byte](size_t count) { return rc::gen::container<Bytes>(count, byte); });
}

rc::Gen<Problem> gen_problem(const Limits &limits, Family family) {
  return rc::gen::map(gen_case_bytes(), [limits, family](const Bytes &bytes) {
    return decode_family(bytes, limits, family);
  });
}

Problem draw_problem(const Limits &limits, Family family, uint64_t seed) {
  return gen_problem(limits, family)(rc::Random(seed), rc::kNominalSize).value();
}

void showValue(const Problem &p, std::ostream &os) { os << format_problem(p); }

} // namespace assay
