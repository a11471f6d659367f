// SPDX-License-Identifier: Apache-2.0
#include "properties/sut/guard.h"

#include <cstdint>
#include <cstring>

#include "properties/call/values.h"

namespace assay {
namespace {

/// Position-dependent, so that a shifted copy of the band shows as well.
std::byte pattern(size_t i) { return static_cast<std::byte>(0xa5 ^ (i * 29)); }

} // namespace

void write_bands(std::byte *data, size_t bytes) {
  std::byte *front = data - kGuardBand;
  for (size_t i = 0; i < kGuardBand; ++i) {
    front[i] = pattern(i);
    data[bytes + i] = pattern(i);
  }
}

void check_bands(const std::byte *data, size_t bytes, const std::string &name,
                 std::vector<Violation> &violations) {
  const std::byte *front = data - kGuardBand;
  const auto changed = [&](Violation::Kind kind, size_t away) {
    violations.push_back({.kind = kind, .buffer = name, .first = away, .count = 1, .size = bytes});
  };
  for (size_t i = 0; i < kGuardBand; ++i) {
    if (data[bytes + i] != pattern(i)) return changed(Violation::Kind::kPastEnd, i);
    if (front[i] != pattern(i)) return changed(Violation::Kind::kBeforeStart, kGuardBand - i);
  }
}

GuardedBytes::GuardedBytes(size_t bytes, size_t offset)
    : bytes_(bytes), storage_(bytes + offset + 3 * kBand) {
  auto address = reinterpret_cast<uintptr_t>(storage_.data());
  lead_ = (kBand - address % kBand) % kBand + offset;
  write_bands(data(), bytes_);
}

void fill_poison(std::byte *to, size_t bytes, const Problem &p) {
  constexpr uint64_t kSalt = 0x77000000;
  uint32_t bits = poison_bits(p.poison, Dtype::kFp32, kSalt);
  const size_t whole = bytes / 4 * 4;
  for (size_t i = 0; i < whole; i += 4) {
    // The others are one value; a workspace may have hundreds of MB.
    if (p.poison == Poison::kRandomBits) bits = poison_bits(p.poison, Dtype::kFp32, kSalt + i);
    std::memcpy(to + i, &bits, 4);
  }
  if (p.poison == Poison::kRandomBits) bits = poison_bits(p.poison, Dtype::kFp32, kSalt + whole);
  std::memcpy(to + whole, &bits, bytes - whole);
}

} // namespace assay
