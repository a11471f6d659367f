// SPDX-License-Identifier: Apache-2.0
// The machine word that carries a T in one load or store.
#pragma once

#include <type_traits>

namespace assay::n_cuda::arch::detail {

template <size_t kBytes>
struct Word;
template <>
struct Word<1> {
  using type = unsigned char;
};
template <>
struct Word<2> {
  using type = unsigned short;
};
template <>
struct Word<4> {
  using type = unsigned int;
};
template <>
struct Word<8> {
  using type = uint2;
};
template <>
struct Word<16> {
  using type = uint4;
};

template <class T>
using WordOf = typename Word<sizeof(T)>::type;

// NOTE: takes the word by value. Through a reference the compiler sees a copy of bytes of unknown
// alignment from memory, and emits loads of one byte (seen: 16 LDG.U8 for one Vec4).
template <class T>
ASSAY_DEVICE T from_word(WordOf<T> word) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  memcpy(&value, &word, sizeof(T));
  return value;
}

template <class T>
ASSAY_DEVICE WordOf<T> to_word(T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  WordOf<T> word;
  memcpy(&word, &value, sizeof(T));
  return word;
}

} // namespace assay::n_cuda::arch::detail
