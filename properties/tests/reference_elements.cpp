// SPDX-License-Identifier: Apache-2.0
#include "properties/tests/reference_elements.h"

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "properties/call/element.h"
#include "properties/tests/reference_kernels.h"

namespace assay::reference {
namespace {

template <class Word>
uint32_t bits_of(const char *at) {
  Word word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

/// Values of every pattern of bits of the types of 8 or 16 bits. They are made when the program
/// starts: a process forked while another thread makes them would wait for ever.
const auto kValues = [] {
  std::array<std::vector<float>, 8> all;
  for (const Dtype d : {Dtype::kFp16, Dtype::kBf16, Dtype::kE4m3, Dtype::kE5m2})
    for (uint32_t bits = 0; bits < 1u << 8 * element_size(d); ++bits)
      all[static_cast<size_t>(d)].push_back(from_bits(d, bits));
  return all;
}();

} // namespace

float load(const void *base, int64_t index, assay_dtype dtype) {
  const int size = element_size(static_cast<Dtype>(dtype));
  const char *at = static_cast<const char *>(base) + index * size;
  const uint32_t bits = size == 1   ? bits_of<uint8_t>(at)
                        : size == 2 ? bits_of<uint16_t>(at)
                                    : bits_of<uint32_t>(at);
  if (bug == Bug::kNanIs480 && dtype == ASSAY_E4M3 && (bits & 0x7f) == 0x7f)
    return bits & 0x80 ? -480.0f : 480.0f;
  return from_bits(static_cast<Dtype>(dtype), bits);
}

void load_row(const void *base, int64_t index, int count, assay_dtype dtype, float *out) {
  const int size = element_size(static_cast<Dtype>(dtype));
  if (size == 4 || bug == Bug::kNanIs480) {
    for (int i = 0; i < count; ++i)
      out[i] = load(base, index + i, dtype);
    return;
  }
  const float *values = kValues[static_cast<size_t>(dtype)].data();
  const char *at = static_cast<const char *>(base) + index * size;
  for (int i = 0; i < count; ++i)
    out[i] = values[size == 1 ? bits_of<uint8_t>(at + i) : bits_of<uint16_t>(at + i * 2)];
}

void store(void *base, int64_t index, assay_dtype dtype, float x) {
  auto d = static_cast<Dtype>(dtype);
  // to_bits saturates; a kernel's conversion overflows to infinity.
  uint32_t bits =
      std::isinf(x) ? (d == Dtype::kFp16 ? 0x7c00 : 0x7f80) | (x < 0 ? 0x8000 : 0) : to_bits(d, x);
  if (d == Dtype::kFp32) std::memcpy(&bits, &x, 4);
  std::memcpy(static_cast<char *>(base) + index * element_size(d), &bits, element_size(d));
}

} // namespace assay::reference
