// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

namespace assay::simt {

// A source position of device code. Every operation that can be a hazard takes one as its last
// parameter, by default the caller's: a report then names the line of the kernel, not that of the
// primitive.
struct Site {
  const char *file = nullptr; // static storage; null: unknown
  uint32_t line = 0;

  static constexpr Site here(const char *file = __builtin_FILE(),
                             uint32_t line = __builtin_LINE()) {
    return {file, line};
  }
};

inline bool operator==(const Site &a, const Site &b) {
  // NOTE: equal literals of different translation units need not share an address.
  return a.line == b.line &&
         (a.file == b.file || (a.file && b.file && std::strcmp(a.file, b.file) == 0));
}

// "kernels/decode/x.cuh", relative to the source root when the file is inside it; empty where it is
// unknown.
std::string file_of(const Site &site);
// "kernels/decode/x.cuh:12", relative to the source root when the file is inside it.
std::string to_string(const Site &site);

} // namespace assay::simt
