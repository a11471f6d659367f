// SPDX-License-Identifier: Apache-2.0
// The files of templates/, and those of named arithmetics, as the build put them into the program.
#pragma once

#include <cstddef>
#include <string_view>

namespace assay::plugins {

struct EmbeddedFile {
  std::string_view path; ///< from templates/, or arithmetics/NAME.json, include/assay/NAME.h
  std::string_view text;
};

extern const EmbeddedFile kEmbedded[];
extern const size_t kEmbeddedCount;

} // namespace assay::plugins
