// SPDX-License-Identifier: Apache-2.0
#include "corpus/bugs/elements.h"

#include <cstring>

#include "kernels/arch/convert.cuh"
#include "kernels/arch/load_store.cuh"

namespace assay::bugs {
namespace {

namespace arch = n_simt::arch;

template <class Word, class E>
void load_as(const void *base, int64_t at, float *out) {
  const Word word =
      arch::global_load(reinterpret_cast<const Word *>(static_cast<const E *>(base) + at));
  E elements[kPiece];
  static_assert(sizeof(elements) == sizeof(Word));
  std::memcpy(elements, &word, sizeof(word));
  for (int i = 0; i < kPiece; ++i)
    out[i] = arch::to_float(elements[i]);
}

template <class E>
void store_as(void *base, int64_t at, const float *in) {
  E elements[kPiece];
  for (int i = 0; i < kPiece; ++i)
    elements[i] = arch::from_float<E>(in[i]);
  arch::Vec4 word;
  static_assert(sizeof(elements) == sizeof(word));
  std::memcpy(&word, elements, sizeof(word));
  arch::global_store(reinterpret_cast<arch::Vec4 *>(static_cast<E *>(base) + at), word);
}

void load_floats(const void *base, int64_t at, float *out) {
  for (int half = 0; half < kPiece; half += 4) {
    const auto word = arch::global_load(
        reinterpret_cast<const arch::Vec4 *>(static_cast<const float *>(base) + at + half));
    std::memcpy(out + half, &word, sizeof(word));
  }
}

void store_floats(void *base, int64_t at, const float *in) {
  for (int half = 0; half < kPiece; half += 4) {
    arch::Vec4 word;
    std::memcpy(&word, in + half, sizeof(word));
    arch::global_store(reinterpret_cast<arch::Vec4 *>(static_cast<float *>(base) + at + half),
                       word);
  }
}

} // namespace

void load_piece(const void *base, int64_t at, assay_dtype dtype, float *out) {
  switch (dtype) {
  case ASSAY_FP16:
    return load_as<arch::Vec4, arch::fp16>(base, at, out);
  case ASSAY_BF16:
    return load_as<arch::Vec4, arch::bf16>(base, at, out);
  case ASSAY_E4M3:
    return load_as<arch::Vec2, arch::e4m3>(base, at, out);
  case ASSAY_E5M2:
    return load_as<arch::Vec2, arch::e5m2>(base, at, out);
  default:
    return load_floats(base, at, out);
  }
}

void store_piece(void *base, int64_t at, assay_dtype dtype, const float *in) {
  switch (dtype) {
  case ASSAY_FP16:
    return store_as<arch::fp16>(base, at, in);
  case ASSAY_BF16:
    return store_as<arch::bf16>(base, at, in);
  default:
    return store_floats(base, at, in);
  }
}

void load_row(const void *base, int64_t at, assay_dtype dtype, int dims, float *out) {
  for (int i = 0; i < dims; i += kPiece)
    load_piece(base, at + i, dtype, out + i);
}

void store_row(void *base, int64_t at, assay_dtype dtype, int dims, const float *in) {
  for (int i = 0; i < dims; i += kPiece)
    store_piece(base, at + i, dtype, in + i);
}

float as_bf16(float x) { return arch::to_float(arch::from_float<arch::bf16>(x)); }

} // namespace assay::bugs
