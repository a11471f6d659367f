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

void RowValues::write(std::byte *to, int size) const {
  const auto any = [this](int dim) { return bits(dim); };
  if (size == 4) return write_each<uint32_t>(to, any);
  if (size == 1) return write_each<uint8_t>(to, any);
  // What most elements of drawn cases are, without a question about each.
  const bool bf16 = of_.dtype == Dtype::kBf16;
  const auto plain = [this](auto narrow) {
    return [this, narrow](int dim) {
      return narrow(
          static_cast<float>(scale_ * row_values::normal(hash_mix(prefix_ ^ uint64_t(dim)))));
    };
  };
  const auto directed = [this](auto narrow) {
    const uint32_t up = narrow(static_cast<float>(logit_));
    const uint32_t down = narrow(static_cast<float>(-logit_));
    return [this, up, down](int dim) { return direction(dim) > 0 ? up : down; };
  };
  if (of_.kind == Kind::kPlain && of_.values.regime == Regime::kNormal)
    return bf16 ? write_each<uint16_t>(to, plain(bf16_bits))
                : write_each<uint16_t>(to, plain(fp16_bits));
  if (of_.kind == Kind::kKey)
    return bf16 ? write_each<uint16_t>(to, directed(bf16_bits))
                : write_each<uint16_t>(to, directed(fp16_bits));
  write_each<uint16_t>(to, any);
}

} // namespace assay
