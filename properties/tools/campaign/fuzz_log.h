// SPDX-License-Identifier: Apache-2.0
// Reads the output of libFuzzer.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace assay::campaign {

struct FuzzLog {
  uint64_t executions = 0, features = 0, edges = 0;
  /// Executions and features on the way, at most seven points that divide the run evenly.
  std::vector<std::pair<uint64_t, uint64_t>> progress;
  std::string
      message; ///< what ended it: the target's own words, or the sanitizer's summary; or empty
  std::string artifact;  ///< the input that it left, or empty
  std::string case_text; ///< that the target printed beside it, or empty
};

FuzzLog read_fuzz_log(const std::string &text);

/// A key of eight hexadecimal digits, equal for messages that differ only in numbers and addresses.
std::string finding_key(const std::string &task, const std::string &message);

} // namespace assay::campaign
