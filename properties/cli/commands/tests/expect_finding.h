// SPDX-License-Identifier: Apache-2.0
// What tests of the bench's judge expect of it.
#pragma once

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

} // namespace assay
