// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "properties/case/problem.h"
#include "properties/sut/hazard.h"

namespace assay {

/// Bytes of a guard band, in front of a block and behind it.
inline constexpr size_t kGuardBand = 256;
/// Writes the bands around the block of `bytes` at `data`.
void write_bands(std::byte *data, size_t bytes);
/// Adds a violation when a band byte changed.
void check_bands(const std::byte *data, size_t bytes, const std::string &name,
                 std::vector<Violation> &violations);

/// Bytes with a guard band on either side, `offset` bytes behind a multiple of 256.
class GuardedBytes {
public:
  static constexpr size_t kBand = kGuardBand;
  explicit GuardedBytes(size_t bytes, size_t offset = 0);
  GuardedBytes(GuardedBytes &&) = default; // the bytes keep their address
  GuardedBytes &operator=(GuardedBytes &&) = default;
  std::byte *data() { return whole() + kBand; }
  std::byte *whole() { return storage_.data() + lead_; } ///< first byte of the leading band
  size_t whole_bytes() const { return bytes_ + 2 * kBand; }
  /// Adds a violation when a band byte changed.
  void check(const std::string &name, std::vector<Violation> &violations) {
    check_bands(data(), bytes_, name, violations);
  }

private:
  size_t bytes_;
  size_t lead_ = 0;
  std::vector<std::byte> storage_;
};

/// Fills scratch memory with the case's poison, as fp32 words.
void fill_poison(std::byte *to, size_t bytes, const Problem &p);

} // namespace assay
