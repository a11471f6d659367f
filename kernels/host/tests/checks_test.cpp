// SPDX-License-Identifier: Apache-2.0
// Structs of earlier headers, on one that has grown since.
#include "kernels/host/checks.h"

#include <gtest/gtest.h>

namespace assay {

struct Grown {
  uint32_t struct_size;
  int32_t first, added, added_later;
};
template <>
inline constexpr uint32_t kFirstSize<Grown> = offsetof(Grown, added);

namespace {

assay_status seen_of(const Grown *params, Grown &seen) {
  return with_current_struct(params, [&](const Grown *current) -> assay_status {
    ASSAY_RETURN_IF_ERROR(check_struct(current, "grown"));
    seen = *current;
    return ASSAY_OK;
  });
}

TEST(Checks, AnEarlierStructIsContinuedByZeros) {
  for (const size_t size : {offsetof(Grown, added), offsetof(Grown, added_later), sizeof(Grown)}) {
    const Grown given = {static_cast<uint32_t>(size), 5, 6, 7};
    Grown seen{};
    EXPECT_EQ(seen_of(&given, seen), ASSAY_OK);
    EXPECT_EQ(seen.struct_size, sizeof(Grown));
    EXPECT_EQ(seen.first, 5);
    EXPECT_EQ(seen.added, size > offsetof(Grown, added) ? 6 : 0);
    EXPECT_EQ(seen.added_later, size == sizeof(Grown) ? 7 : 0);
  }
}

TEST(Checks, OtherSizesAreRefused) {
  for (const uint32_t size : {0u, 4u, 7u, uint32_t{sizeof(Grown)} + 4, ~0u}) {
    const Grown given = {size, 5, 6, 7};
    Grown seen{};
    EXPECT_EQ(seen_of(&given, seen), ASSAY_INVALID_ARGUMENT) << size;
    EXPECT_STREQ(
        assay_last_error(),
        ("struct_size is " + std::to_string(size) + ", expected 16 (sizeof grown)").c_str());
  }
  Grown seen{};
  EXPECT_EQ(seen_of(nullptr, seen), ASSAY_INVALID_ARGUMENT);
}

} // namespace
} // namespace assay
