// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <limits>

#include "fuzz/target.h"

namespace assay::fuzz {

/// Reads an input field by field. Total: past the end every field is zero.
class ByteReader {
public:
  explicit ByteReader(Input bytes) : bytes_(bytes) {}

  bool done() const { return at_ >= bytes_.size(); }
  Input rest() const { return bytes_.subspan(at_); }

  uint8_t byte() { return done() ? 0 : bytes_[at_++]; }
  uint32_t word() {
    uint32_t w = 0;
    for (int i = 0; i < 4; ++i)
      w |= static_cast<uint32_t>(byte()) << 8 * i;
    return w;
  }
  /// In low .. high; two bytes when one is not enough.
  int integer(int low, int high) {
    const uint32_t n = static_cast<uint32_t>(high - low) + 1;
    uint32_t x = byte();
    if (n > 256) x |= static_cast<uint32_t>(byte()) << 8;
    if (n > 65536) x |= static_cast<uint32_t>(byte()) << 16;
    return low + static_cast<int>(x % n);
  }

  /// A float by its own field: one byte for the numbers that break things and for small multiples
  /// of 1/4, five bytes for any bit pattern.
  float number() {
    const uint8_t tag = byte();
    if (tag >= 128) return std::bit_cast<float>(word());
    if (tag >= 32) return static_cast<float>(tag - 80) / 4;
    return tag < kSpecial.size() ? kSpecial[tag] : 0.0f;
  }

private:
  using Limit = std::numeric_limits<float>;
  static constexpr std::array<float, 26> kSpecial = {0.0f,
                                                     -0.0f,
                                                     Limit::infinity(),
                                                     -Limit::infinity(),
                                                     Limit::quiet_NaN(),
                                                     -Limit::quiet_NaN(),
                                                     Limit::max(),
                                                     -Limit::max(),
                                                     Limit::min(),
                                                     -Limit::min(),
                                                     Limit::denorm_min(),
                                                     -Limit::denorm_min(),
                                                     0x1.fffffcp-127f, // largest subnormal
                                                     0x1p126f,
                                                     -0x1p126f,
                                                     0x1.000002p126f,
                                                     1e5f,
                                                     -1e5f,
                                                     126.0f,
                                                     -126.0f,
                                                     -127.0f,
                                                     -149.0f,
                                                     -150.0f,
                                                     1.44269504f,
                                                     0x1p-24f,
                                                     0x1p24f};

  Input bytes_;
  size_t at_ = 0;
};

} // namespace assay::fuzz
