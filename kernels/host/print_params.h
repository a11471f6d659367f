// SPDX-License-Identifier: Apache-2.0
// Kernel parameters as text: what the message of a refused launch ends with.
#pragma once

#include "kernels/host/format.h"

#include <cstdint>

namespace assay {

/// Structs with ASSAY_FIELDS as {name value, ...}, arrays as [...], pointers as hexadecimal
/// numbers.
template <class T>
std::string printed(const T &value) {
  if constexpr (requires { value.fields([](const char *, const auto &...) {}); }) {
    return value.fields([](std::string_view names, const auto &...fields) {
      std::string text = "{";
      const auto append = [&](const auto &field) {
        const size_t length = names.find(',');
        text += text.size() > 1 ? ", " : "";
        text += names.substr(0, length);
        text += " " + printed(field);
        names.remove_prefix(length == names.npos ? names.size() : length + 2);
      };
      (append(fields), ...);
      return text + "}";
    });
  } else if constexpr (std::is_array_v<T>) {
    std::string text = "[";
    for (const auto &element : value)
      text += (text.size() > 1 ? ", " : "") + printed(element);
    return text + "]";
  } else if constexpr (std::is_pointer_v<T>) {
    char digits[32] = "0x";
    return {digits, std::to_chars(digits + 2, digits + sizeof digits,
                                  reinterpret_cast<uintptr_t>(value), 16)
                        .ptr};
  } else if constexpr (std::is_class_v<T>) {
    return "{...}";
  } else {
    return text_of(value);
  }
}

} // namespace assay
