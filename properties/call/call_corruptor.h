// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "properties/call/bad_calls.h"

namespace assay {

/// Makes fields wrong and mends them.
class CallCorruptor {
public:
  using Kind = BadCall::Kind;

  explicit CallCorruptor(const AskBadCall &ask) : ask_(ask) {}
  /// For sizes, types and options.
  CallCorruptor of_shape() const {
    CallCorruptor out(ask_);
    out.of_shape_ = true;
    return out;
  }

  template <class T>
  void set(const std::string &name, T &field, std::type_identity_t<T> wrong) const {
    with(field, wrong, {name, Kind::kValue, fmt::format("{} is {}", name, wrong)});
  }
  template <class T>
  void set_all(const std::string &name, T &field,
               std::initializer_list<std::type_identity_t<T>> wrong) const {
    for (const T value : wrong)
      set(name, field, value);
  }
  void range(const std::string &name, int32_t &field, int64_t low, int64_t high) const {
    set(name, field, static_cast<int32_t>(low - 1));
    if (high < std::numeric_limits<int32_t>::max())
      set(name, field, static_cast<int32_t>(high + 1));
  }
  /// Not aligned to `alignment` bytes; null too, where that is forbidden.
  template <class T>
  void pointer(const std::string &name, T *&field, uintptr_t alignment, bool may_be_null) const {
    if (!may_be_null) with(field, nullptr, {name, Kind::kNull, name + " is null"});
    if (field == nullptr) return;
    const auto odd = reinterpret_cast<uintptr_t>(field) + alignment / 2;
    with(field, reinterpret_cast<T *>(odd),
         {name, Kind::kAlignment, fmt::format("{} is not aligned to {} bytes", name, alignment)});
  }
  void stride(const std::string &name, int64_t &field, int64_t multiple) const {
    set(name, field, -multiple);
    if (multiple > 1) set(name, field, field + multiple / 2);
  }
  /// Corrupts the stride of an output with `count` pieces of `width` elements.
  void output_stride(const std::string &name, int64_t &field, int64_t multiple, int64_t count,
                     int64_t width) const {
    stride(name, field, multiple);
    if (count > 1) set(name, field, width - multiple);
  }
  template <class T>
  void with(T &field, std::type_identity_t<T> wrong, BadCall call) const {
    call.of_shape = of_shape_;
    const T right = std::exchange(field, wrong);
    ask_(call);
    field = right;
  }
  template <class T>
  void alias(const std::string &name, T &field, std::type_identity_t<T> output,
             const std::string &of) const {
    with(field, output, {name, Kind::kAlias, name + " is " + of});
  }
  /// Two fields that are wrong together.
  template <class T, class U>
  void both(T &a, std::type_identity_t<T> wrong_a, U &b, std::type_identity_t<U> wrong_b,
            const BadCall &call) const {
    const T right = std::exchange(a, wrong_a);
    with(b, wrong_b, call);
    a = right;
  }

private:
  const AskBadCall &ask_;
  bool of_shape_ = false;
};

/// What the parameters of all families begin with.
template <class Params>
void corrupt_header(const CallCorruptor &all, Params &p) {
  const CallCorruptor corrupt = all.of_shape();
  corrupt.set_all("struct_size", p.struct_size, {0u, static_cast<uint32_t>(sizeof p - 4)});
  corrupt.set_all("target", p.target, {-1, 2});
  corrupt.set_all("lse_base", p.lse_base, {-1, 2});
}

} // namespace assay
