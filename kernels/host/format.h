// SPDX-License-Identifier: Apache-2.0
// Messages without a library: the kernels need nothing but a C++20 compiler and the CUDA toolkit.
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

namespace assay {

/// A message with a {} per argument; another number of them does not compile.
template <class... Args>
struct MessagePattern {
  consteval MessagePattern(const char *pattern) : text(pattern) {
    size_t holes = 0;
    for (const char *c = pattern; *c != 0; ++c)
      holes += c[0] == '{' && c[1] == '}';
    if (holes != sizeof...(Args)) throw "the message has not one {} per argument";
  }
  std::string_view text;
};

inline std::string text_of(std::string_view s) { return std::string(s); }
/// The shortest decimal that reads back as `x`.
template <class X>
requires std::integral<X> || std::floating_point<X> std::string text_of(X x) {
  if constexpr (std::same_as<X, bool>) {
    return x ? "1" : "0";
  } else {
    char digits[64];
    return std::string(digits, std::to_chars(digits, digits + sizeof digits, x).ptr);
  }
}

template <class... Args>
std::string format(std::type_identity_t<MessagePattern<Args...>> pattern, const Args &...args) {
  std::string_view rest = pattern.text;
  std::string message;
  [[maybe_unused]] const auto append = [&](const auto &arg) {
    const size_t hole = rest.find("{}");
    message += rest.substr(0, hole);
    message += text_of(arg);
    rest.remove_prefix(hole + 2);
  };
  (append(args), ...);
  return message.append(rest);
}

} // namespace assay
