// SPDX-License-Identifier: Apache-2.0
#include "properties/call/row_values.h"

#include <cstring>

namespace assay {
namespace {

bool is_score_regime(Regime r) { return r >= Regime::kRising && r <= Regime::kGaps; }

uint64_t directions_of(const Problem &p) { return hash_values(p.k.seed, 0xd1u); }

TensorValues plain(const Problem &p, const Values &values, Tensor tensor, Dtype dtype) {
  return {values, tensor, TensorValues::Kind::kPlain, dtype, p.head_dim, 0, 1.0};
}

} // namespace

TensorValues query_values(const Problem &p) {
  TensorValues out = plain(p, p.q, kTensorQ, p.dtype);
  if (p.q.regime == Regime::kZero || !is_score_regime(p.k.regime)) return out;
  out.kind = TensorValues::Kind::kQuery;
  out.directions = directions_of(p);
  return out;
}

TensorValues key_values(const Problem &p) {
  TensorValues out = plain(p, p.k, kTensorK, kv_dtype(p));
  if (!is_score_regime(p.k.regime)) return out;
  out.kind = TensorValues::Kind::kKey;
  out.directions = directions_of(p);
  out.unit = p.head_dim * double(sm_scale(p));
  return out;
}

TensorValues value_values(const Problem &p) { return plain(p, p.v, kTensorV, kv_dtype(p)); }

RowValues RowValues::query(const Problem &p, const LogicalIndex &at) {
  return {query_values(p), at};
}
RowValues RowValues::key(const Problem &p, const LogicalIndex &at) { return {key_values(p), at}; }
RowValues RowValues::value(const Problem &p, const LogicalIndex &at) {
  return {value_values(p), at};
}

template <class Bits, class Of>
void RowValues::write_each(std::byte *to, Of bits_of) const {
  for (int i = 0; i < of_.head_dim; ++i) {
    const auto bits = static_cast<Bits>(bits_of(i));
    std::memcpy(to + static_cast<size_t>(i) * sizeof(Bits), &bits, sizeof(Bits));
  }
}

template <class Narrow>
void RowValues::write_narrow(std::byte *to, Narrow narrow) const {
  const auto rounded = [narrow](double value) { return narrow(static_cast<float>(value)); };
  const auto hash = [this](int dim) { return hash_mix(prefix_ ^ static_cast<uint64_t>(dim)); };
  // What most elements of drawn cases are, without a question about each.
  if (of_.kind == Kind::kPlain && of_.values.regime == Regime::kNormal)
    return write_each<uint16_t>(
        to, [&](int dim) { return rounded(scale_ * row_values::normal(hash(dim))); });
  if (of_.kind == Kind::kPlain && of_.values.regime == Regime::kSmallInt)
    return write_each<uint16_t>(
        to, [&](int dim) { return rounded(row_values::small_int(scale_, hash(dim))); });
  if (of_.kind == Kind::kKey) {
    const uint32_t up = rounded(logit_), down = rounded(-logit_);
    return write_each<uint16_t>(
        to, [this, up, down](int dim) { return direction(dim) > 0 ? up : down; });
  }
  write_each<uint16_t>(to, [this](int dim) { return bits(dim); });
}

void RowValues::write(std::byte *to, int size) const {
  if (of_.kind == Kind::kPlain && of_.values.regime == Regime::kZero) {
    std::memset(to, 0, static_cast<size_t>(of_.head_dim) * static_cast<size_t>(size));
    return;
  }
  const auto any = [this](int dim) { return bits(dim); };
  if (size == 4) return write_each<uint32_t>(to, any);
  if (size == 1) return write_each<uint8_t>(to, any);
  // Lambdas, because the compiler inlines them; it calls a function that is passed by its name.
  if (of_.dtype == Dtype::kBf16)
    write_narrow(to, [](float value) { return bf16_bits(value); });
  else
    write_narrow(to, [](float value) { return fp16_bits(value); });
}

} // namespace assay
