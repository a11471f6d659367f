// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace assay {

/// splitmix64 finaliser: every output bit depends on every input bit.
constexpr uint64_t hash_mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Hash of a tuple of integers; the same on every machine.
template <class... T>
constexpr uint64_t hash_values(T... values) {
  uint64_t h = 0;
  ((h = hash_mix(h ^ static_cast<uint64_t>(values))), ...);
  return h;
}

} // namespace assay
