// SPDX-License-Identifier: Apache-2.0
#include "fuzz/cases/case_input.h"

#include <algorithm>
#include <string_view>

#include "fuzz/byte_reader.h"
#include "fuzz/cases/edit_case.h"
#include "properties/case/fields.h"
#include "properties/case/hash.h"
#include "properties/case/rng.h"

// libFuzzer defines it; other engines, and the main that replays, do not.
extern "C" [[gnu::weak]] size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

namespace assay::fuzz {
namespace {

constexpr size_t kLeftOut = 2;          // version and family
constexpr uint32_t kPick = 1, kOwn = 2; // what rng are thrown for

bool by_field() {
  static const bool on = [] {
    const char *value = std::getenv("ASSAY_FUZZ_BY_FIELD");
    return value == nullptr || std::string_view(value) != "0";
  }();
  return on;
}

size_t copy(const Bytes &bytes, uint8_t *out, size_t max_size) {
  const size_t size = std::min(bytes.size(), max_size);
  std::copy_n(bytes.begin(), size, out);
  return size;
}

} // namespace

PickedCase read_case(const CaseFormat &format, Input input) {
  ByteReader in(input);
  PickedCase out;
  out.pick = in.byte();
  if (!format.family) {
    out.problem = decode(in.rest(), format.limits);
    return out;
  }
  Bytes bytes = {kCodecVersion, static_cast<uint8_t>(*format.family)};
  bytes.insert(bytes.end(), in.rest().begin(), in.rest().end());
  out.problem = decode(bytes, format.limits);
  return out;
}

Bytes write_case(const CaseFormat &format, const PickedCase &picked) {
  Bytes bytes = encode(picked.problem, format.limits);
  if (format.family) bytes.erase(bytes.begin(), bytes.begin() + kLeftOut);
  bytes.insert(bytes.begin(), picked.pick);
  return bytes;
}

Bytes mutated_input(const CaseFormat &format, Input input, uint32_t seed) {
  PickedCase picked = read_case(format, input);
  Rng rng(hash_values(kPick, seed));
  if (rng.upto(7) == 0)
    picked.pick = static_cast<uint8_t>(rng.upto(255));
  else
    picked.problem = mutated(picked.problem, format.limits, seed);
  return write_case(format, picked);
}

Bytes crossed_input(const CaseFormat &format, Input a, Input b, uint32_t seed) {
  PickedCase picked = read_case(format, a);
  picked.problem = crossed(picked.problem, read_case(format, b).problem, format.limits, seed);
  return write_case(format, picked);
}

size_t mutate_in_place(const CaseFormat &format, uint8_t *data, size_t size, size_t max_size,
                       uint32_t seed) {
  const bool own = !by_field() || Rng(hash_values(kOwn, seed)).upto(3) == 0;
  if (own && LLVMFuzzerMutate != nullptr) return LLVMFuzzerMutate(data, size, max_size);
  return copy(mutated_input(format, {data, size}, seed), data, max_size);
}

size_t cross_into(const CaseFormat &format, Input a, Input b, uint8_t *out, size_t max_size,
                  uint32_t seed) {
  return copy(crossed_input(format, a, b, seed), out, max_size);
}

} // namespace assay::fuzz
