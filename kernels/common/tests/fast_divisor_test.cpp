// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/paged_kv.cuh"

#include <gtest/gtest.h>

namespace assay {
namespace {

// Every divisor a page size is likely to be, and the largest: around each multiple, where an
// approximate reciprocal would be one off first.
TEST(FastDivisor, equals_division_around_every_multiple) {
  std::vector<uint32_t> divisors;
  for (uint32_t d = 1; d <= 4097; ++d)
    divisors.push_back(d);
  for (uint32_t d : {65535u, 65536u, 65537u, 1u << 29, (1u << 30) - 1, 1u << 30})
    divisors.push_back(d);
  for (uint32_t d : divisors) {
    const FastDivisor f = FastDivisor::make(d);
    const uint32_t limit = (1u << 31) - 1;
    for (uint64_t q : {0ull, 1ull, 2ull, 3ull, 1000ull, 0x7fffffffull / d - 1, 0x7fffffffull / d})
      for (int64_t n = int64_t(q * d) - 2; n <= int64_t(q * d) + 2; ++n)
        if (n >= 0 && n <= limit) {
          ASSERT_EQ(n_simt::divide(uint32_t(n), f), uint32_t(n) / d) << n << " / " << d;
        }
  }
}

} // namespace
} // namespace assay
