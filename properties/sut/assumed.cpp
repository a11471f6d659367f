// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/assumed.h"

#include <algorithm>
#include <cmath>

#include "properties/call/element.h"
#include "properties/case/query_rows.h"

namespace assay {
namespace {

/// The lowest bit of the exponent: without it no number is NaN or infinite.
uint32_t exponent_bit(Dtype dtype) {
  constexpr uint32_t kBits[] = {0x400, 0x80, 0x800000, 0x08, 0x04}; // by Dtype
  return kBits[static_cast<int>(dtype)];
}

uint32_t finite(uint32_t bits, Dtype dtype) {
  return std::isfinite(from_bits(dtype, bits)) ? bits : bits & ~exponent_bit(dtype);
}

/// A handle of ASSAY_FIELD61 that stands for no number gets one.
uint32_t literal(uint32_t handle) { return handle & 0x7fff; }

void make_finite(Tensors &t, int pool) {
  const Dtype dtype = kv_dtype(t.problem);
  const int size = element_size(dtype);
  const std::vector<uint8_t> &live = t.buffers[static_cast<size_t>(pool)].live;
  for (size_t byte = 0; byte < live.size(); byte += static_cast<size_t>(size)) {
    if (live[byte] != 0) continue;
    const int64_t at = static_cast<int64_t>(byte) / size;
    const uint32_t bits = t.element(pool, size, at);
    t.set_element(pool, size, at, t.numbers.empty() ? finite(bits, dtype) : literal(bits));
  }
}

} // namespace

std::span<const Assumption> assumptions() {
  static constexpr Assumption kAll[] = {{"no_empty_requests", &Assumed::no_empty_requests},
                                        {"finite_pool", &Assumed::finite_pool}};
  return kAll;
}

std::vector<std::string> words_of(const Assumed &assumed) {
  std::vector<std::string> out;
  for (const auto &[word, flag] : assumptions())
    if (assumed.*flag) out.emplace_back(word);
  return out;
}

bool has_empty_request(const Problem &p) {
  if (!is_attention(p)) return false;
  const std::vector<int> keys = keys_per_request(p);
  return std::find(keys.begin(), keys.end(), 0) != keys.end();
}

void make_pools_finite(Tensors &t) {
  for (const CacheView &cache : t.caches)
    for (int pool : {cache.k, cache.v})
      make_finite(t, pool);
}

} // namespace assay
