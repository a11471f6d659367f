// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/host/format.h"

namespace assay {

inline constexpr int kNoLevel = -1;

/// The name of an argument in its parts, which become text only in the message of a failure: "q",
/// "kv.k", "levels[2].kv.k", "levels[2].segment_indptr".
struct ArgumentName {
  // Implicit: a check takes a name as it takes text.
  ArgumentName(const char *field) : field(field) {}
  /// `holder`: the struct that has the field; null where the level or the parameters have it.
  ArgumentName(int level, const char *holder, const char *field)
      : field(field), holder(holder), level(level) {}

  const char *field;
  const char *holder = nullptr;
  int level = kNoLevel; // level of a cascade
};

inline std::string text_of(const ArgumentName &name) {
  std::string text;
  if (name.level != kNoLevel) text = format("levels[{}].", name.level);
  if (name.holder != nullptr) text.append(name.holder).append(".");
  return text.append(name.field);
}

} // namespace assay
