// SPDX-License-Identifier: Apache-2.0
// The files of templates/ as the build put them into the program.
#pragma once

#include <cstddef>
#include <string_view>

namespace assay::plugins {

struct EmbeddedFile {
  std::string_view path; ///< from templates/
  std::string_view text;
};

extern const EmbeddedFile kEmbedded[];
extern const size_t kEmbeddedCount;

} // namespace assay::plugins
