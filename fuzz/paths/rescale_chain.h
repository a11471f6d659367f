// SPDX-License-Identifier: Apache-2.0
// Runs one decoded chain on a state type and checks it step by step (assertions: fuzz_rescale.cpp).
// A template so that the positive controls can feed broken states through the same checks.
#pragma once

#include <bit>

#include "fuzz/byte_reader.h"
#include "fuzz/paths/rescale_model.h"
#include "fuzz/paths/tile_program.h"
#include "kernels/common/attention_state.cuh"

namespace assay::fuzz {

using KernelState = n_simt::AttentionState<float, kLanes>;

template <class State>
class RescaleChain {
public:
  explicit RescaleChain(Input input) : in_(input), scale_(read_scale(in_)) {}

  std::string run() {
    for (int i = 0; i < kMaxOperations && !in_.done(); ++i) {
      step();
      if (!error_.empty()) return error_ + " after operation " + std::to_string(i);
    }
    for (const Slot &slot : slots_)
      require(bound_violation(slot.model, observe(slot.state), scale_));
    return error_;
  }

private:
  static constexpr int kSlots = 3, kMaxOperations = 24;

  struct Slot {
    State state = identity();
    Model model;
  };

  static State identity() {
    State s;
    static_cast<KernelState &>(s) = KernelState::identity();
    return s;
  }

  Lanes read_lanes() {
    Lanes v;
    for (float &x : v)
      x = in_.number();
    return v;
  }

  void step() {
    const uint8_t tag = in_.byte();
    Slot &slot = slots_[tag / 4 % kSlots];
    switch (tag % 4) {
    case 0:
      absorb(slot);
      break;
    case 1:
      rescale(slot);
      break;
    case 2:
      merge(slot, slots_[(tag / 4 + 1 + tag / 16 % 2) % kSlots]);
      break;
    case 3:
      load(slot);
      break;
    }
    check_state(slot);
  }

  void absorb(Slot &slot) {
    const float score = in_.number();
    const Lanes v = read_lanes();
    float raw[kLanes] = {v[0], v[1]};
    slot.state.absorb(score, raw, scale_);
    slot.model.absorb(score, v, scale_);
  }

  void rescale(Slot &slot) {
    const float target = in_.number();
    // Callers pass the maximum with their own: rescale_to needs a target that is not below.
    slot.state.rescale_to(n_simt::Scalar<float>::max(slot.state.m, target), scale_);
    slot.model.rescale(target, scale_);
  }

  /// Moves `from` into `into`: key sets stay disjoint.
  void merge(Slot &into, Slot &from) {
    State ab = into.state, ba = from.state;
    ab.merge(from.state, scale_);
    ba.merge(into.state, scale_);
    if (!into.model.empty() || !from.model.empty())
      require(same_bits(ab, ba) ? "" : "merge is not commutative");
    into.state = ab;
    into.model.merge(from.model);
    from = Slot{};
  }

  /// A partial result as the combine kernel loads it.
  void load(Slot &slot) {
    const float lse = in_.number();
    const Lanes o = read_lanes();
    const float raw[kLanes] = {o[0], o[1]};
    static_cast<KernelState &>(slot.state) = KernelState::from_normalized(lse, raw);
    slot.model = Model::from_normalized(lse, o, scale_);
  }

  void check_state(const Slot &slot) {
    const Model &model = slot.model;
    const State &s = slot.state;
    if (!(s.m == model.m || (std::isnan(s.m) && std::isnan(model.m))))
      return require("m is not the maximum");
    check_identity(slot);
    if (model.empty()) return check_empty(s);
    if (model.nan_absorbed && !std::isnan(s.d)) return require("a NaN score was lost");
    if (scale_in_range(scale_) && std::isfinite(s.m)) {
      State again = s;
      again.rescale_to(s.m, scale_);
      require(same_bits(again, s) ? "" : "rescaling to the same maximum is not exact");
    }
  }

  void check_identity(const Slot &slot) {
    State dead = identity(); // an empty state may hold any o, and any d that is a number
    dead.d = INFINITY;
    dead.o[0] = NAN;
    dead.o[1] = INFINITY;
    State right = slot.state;
    right.merge(dead, scale_);
    require(same_bits(right, slot.state) ? "" : "the identity on the right is not neutral");
    dead.merge(slot.state, scale_);
    if (slot.model.empty())
      require(dead.is_empty() ? "" : "empty + empty is not empty");
    else
      require(same_bits(dead, slot.state) ? "" : "the identity on the left is not neutral");
  }

  void check_empty(const State &s) {
    const Observed seen = observe(s);
    if (seen.lse != -INFINITY) return require("lse of an empty state is not -inf");
    for (float x : seen.normalized)
      if (std::bit_cast<uint32_t>(x) != 0) return require("an empty state does not give 0");
  }

  Observed observe(State s) const {
    Observed seen{s.m, s.d, {s.o[0], s.o[1]}, s.lse2(scale_), {}};
    s.normalize();
    seen.normalized = {s.o[0], s.o[1]};
    return seen;
  }

  static bool same(float a, float b) {
    return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
           (std::isnan(a) && std::isnan(b)); // which payload wins is the hardware's choice
  }
  static bool same_bits(const State &a, const State &b) {
    return same(a.m, b.m) && same(a.d, b.d) && same(a.o[0], b.o[0]) && same(a.o[1], b.o[1]);
  }

  void require(const std::string &violation) {
    if (error_.empty()) error_ = violation;
  }

  ByteReader in_;
  float scale_;
  Slot slots_[kSlots];
  std::string error_;
};

template <class State = KernelState>
std::string check_rescale(Input input) {
  return RescaleChain<State>(input).run();
}

} // namespace assay::fuzz
