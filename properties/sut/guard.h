// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "properties/case/problem.h"

namespace assay {

/// Bytes with a guard band on either side, 256-byte aligned.
class GuardedBytes {
public:
  static constexpr size_t kBand = 256;
  explicit GuardedBytes(size_t bytes);
  GuardedBytes(GuardedBytes &&) = default; // the bytes keep their address
  GuardedBytes &operator=(GuardedBytes &&) = default;
  std::byte *data() { return whole() + kBand; }
  std::byte *whole() { return storage_.data() + lead_; } ///< first byte of the leading band
  size_t whole_bytes() const { return bytes_ + 2 * kBand; }
  /// Adds a violation when a band byte changed.
  void check(const std::string &name, std::vector<std::string> &violations);

private:
  size_t bytes_;
  size_t lead_ = 0;
  std::vector<std::byte> storage_;
};

/// Fills scratch memory with the case's poison, as fp32 words.
void fill_poison(std::byte *to, size_t bytes, const Problem &p);

} // namespace assay
