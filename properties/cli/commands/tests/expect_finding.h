// SPDX-License-Identifier: Apache-2.0
// What tests of the bench's judge share.
#pragma once

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "kernels/bench/verify/verify_outputs.h"

namespace assay {

/// The one finding expected, or more.
inline void expect_finding(const bench::Verification &v, const std::string &part) {
  for (const std::string &line : v.findings)
    if (line.find(part) != std::string::npos) return;
  ADD_FAILURE() << "no finding has '" << part << "'; " << v.findings.size()
                << " findings, first: " << (v.findings.empty() ? "none" : v.findings[0]);
}

/// Device memory that is the host's.
inline bench::Memory host_memory() {
  bench::Memory memory;
  memory.read = [](void *to, const void *from, size_t row, size_t pitch, size_t rows) {
    for (size_t i = 0; i < rows; ++i)
      std::memcpy(static_cast<char *>(to) + i * row, static_cast<const char *>(from) + i * pitch,
                  row);
  };
  memory.fill = [](void *at, unsigned char value, size_t bytes) { std::memset(at, value, bytes); };
  return memory;
}

} // namespace assay
