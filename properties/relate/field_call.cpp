// SPDX-License-Identifier: Apache-2.0
#include "properties/relate/field_call.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "properties/call/materialise.h"
#include "properties/call/params.h"
#include "properties/case/hash.h"
#include "properties/relate/field61.h"
#include "properties/relate/keys.h"
#include "properties/relate/outcome.h"

namespace assay {
namespace {

using namespace field61;

/// Handles every table starts with.
constexpr uint32_t kMinusInfinity = 2;
constexpr uint64_t kNone = uint64_t{1} << 63;
constexpr uint32_t kNoHandle = 0x80000000u;

uint64_t draw(const Problem &p, uint32_t what, uint64_t a, uint64_t b = 0) {
  return hash_values(0xf1e1du, what, p.q.seed, p.k.seed, p.v.seed, a, b);
}

/// Live words become literals, dead ones words that are none.
void fill_words(Tensors &t, int buffer) {
  const Buffer &b = t.buffers[buffer];
  for (size_t i = 0; i < b.bytes.size() / 2; ++i) {
    const uint64_t literal = draw(t.problem, 1, buffer, i) & 0x7fff;
    const uint32_t dead = t.element(buffer, 2, i) | 0x8000;
    t.set_element(buffer, 2, i, b.live[2 * i] ? static_cast<uint32_t>(literal) : dead);
  }
}

void forget_words(Tensors &t, int buffer) {
  for (size_t i = 0; i < t.buffers[buffer].bytes.size() / 4; ++i)
    t.set_element(buffer, 4, i, t.element(buffer, 4, i) | kNoHandle);
}

/// O is stored as handles: twice the bytes, the same strides in elements.
void widen_output(Tensors &t) {
  Buffer &b = t.buffers[t.o.buffer];
  const std::vector<uint8_t> live = b.live;
  b.bytes.resize(2 * live.size());
  b.live.resize(2 * live.size());
  for (size_t i = 0; i < live.size() / 2; ++i)
    std::fill_n(b.live.begin() + 4 * i, 4, live[2 * i]);
  t.o.size = 4;
  forget_words(t, t.o.buffer);
}

uint32_t enter(Tensors &t, const FieldNumber &number) {
  t.numbers.push_back(number);
  return static_cast<uint32_t>(t.numbers.size() - 1);
}

/// One side of merge_state, or all states of merge_states.
void fill_states(Tensors &t, const View &o, const View &lse, int states, uint32_t salt) {
  const Problem &p = t.problem;
  std::vector<bool> empty;
  for (int s = 0; s < states; ++s)
    for (int h = 0; h < t.heads(); ++h)
      empty.push_back(std::isinf(t.value(lse, s, h)));
  forget_words(t, o.buffer);
  forget_words(t, lse.buffer);
  for (int s = 0; s < states; ++s)
    for (int h = 0; h < t.heads(); ++h) {
      const uint64_t at = uint64_t(s) * t.heads() + h, b = draw(p, salt + 2, at);
      if (empty[at]) {
        t.set_bits(lse, s, h, 0, kMinusInfinity);
        continue;
      }
      // Equal exponents, so that maxima tie.
      const uint64_t exponent = b & 1 ? (b >> 1) % 3 : (b >> 1) % kOrder;
      const uint64_t factor = 1 + draw(p, salt + 3, at) % (kPrime - 1);
      const uint64_t base = p.lse_base == LseBase::kNatural ? kLn2 : 1;
      t.set_bits(lse, s, h, 0, enter(t, {kNone, exponent, factor, base}));
      for (int i = 0; i < p.head_dim; ++i)
        t.set_bits(o, s, h, i, enter(t, {draw(p, salt + 4, at, i) % kPrime, kNone, 1, 1}));
    }
}

/// 2^LSE; its base must be that of the call.
uint64_t mass_of(const Problem &p, const FieldNumber &lse) {
  const uint64_t to_base2 = p.lse_base == LseBase::kNatural ? kLog2E : 1;
  return times(power(kGenerator, static_cast<uint64_t>(Wide{lse.b} * to_base2 % kOrder)), lse.m);
}
bool right_base(const Problem &p, const FieldNumber &lse) {
  return lse.m == 1 || lse.u == (p.lse_base == LseBase::kNatural ? kLn2 : 1);
}

/// The declared scale: the bits of fl(sm_scale * log2 e), or log2 e itself.
uint64_t scale_residue(const Problem &p) {
  const auto scale = static_cast<float>(sm_scale(p) * 1.4426950408889634);
  uint32_t bits;
  std::memcpy(&bits, &scale, 4);
  return scale == 1.44269504088896f ? kLog2E : bits;
}

FieldRow attention_row(const Tensors &t, int row, int head) {
  const Problem &p = t.problem;
  const int kv_head = head / p.group_size;
  const uint64_t scale = scale_residue(p);
  FieldRow out;
  std::vector<Wide> sums(p.head_dim, 0);
  for (const KeyRun &run : key_runs(t, row))
    for (int k = 0; k < run.len; ++k) {
      uint64_t score = 0; // 64 products below 2^30
      for (int i = 0; i < p.head_dim; ++i)
        score += uint64_t{t.bits(t.q, row, head, i)} * t.key(run.cache, run.row, k, kv_head, i);
      const uint64_t weight =
          power(kGenerator, static_cast<uint64_t>(Wide{score} * scale % kOrder));
      out.empty = false;
      out.mass = (out.mass + weight) % kPrime;
      for (int i = 0; i < p.head_dim; ++i) // below 2^76 each
        sums[i] += Wide{weight} * t.val(run.cache, run.row, k, kv_head, i);
    }
  const uint64_t divisor = inverse(out.mass);
  for (Wide sum : sums)
    out.o.push_back(times(static_cast<uint64_t>(sum % kPrime), divisor));
  return out;
}

FieldRow merged_row(const Tensors &t, int row, int head) {
  const Problem &p = t.problem;
  const bool pair = p.family == Family::kMergeState;
  const int first = pair ? 0 : t.first_state[row], last = pair ? 2 : t.first_state[row + 1];
  FieldRow out;
  out.o.assign(p.head_dim, 0);
  for (int s = first; s < last; ++s) {
    const View &lse = t.in_lse[pair ? s : 0], &o = t.in_o[pair ? s : 0];
    const int at = pair ? row : s;
    const uint32_t handle = t.bits(lse, at, head);
    if (handle == kMinusInfinity) continue;
    const uint64_t weight = mass_of(p, t.numbers[handle]);
    out.empty = false;
    out.mass = (out.mass + weight) % kPrime;
    for (int i = 0; i < p.head_dim; ++i) {
      const uint64_t value = t.numbers[t.bits(o, at, head, i)].a;
      out.o[i] = (out.o[i] + times(weight, value)) % kPrime;
    }
  }
  const uint64_t divisor = inverse(out.mass);
  for (uint64_t &value : out.o)
    value = times(value, divisor);
  return out;
}

/// Why a handle has no value in `part`, or nothing.
std::string missing(const Tensors &t, uint32_t handle, uint64_t FieldNumber::*part) {
  if (handle >= t.numbers.size()) return fmt::format("{:#x}, which is no number", handle);
  const uint64_t value = t.numbers[handle].*part;
  return defined(value) ? "" : "undefined: " + reason(value);
}

} // namespace

Tensors field_inputs(const Problem &p) {
  Problem exact = without_features(p); // softcap and sinks are not built from + * / 2^x alone
  exact.dtype = is_attention(p) ? Dtype::kBf16 : Dtype::kFp32;
  if (is_attention(p)) exact.head_dim = 64;
  for (Values *values : {&exact.q, &exact.k, &exact.v})
    values->regime = Regime::kBinary; // overwritten below; normal deviates took half of the time
  Tensors t = materialise(exact);
  t.numbers = {{0, 0, 1, 1}, {1, 1, 1, 1}, {kNone, kNone, kNone, 1}}; // zero, one, -inf
  if (is_attention(p)) {
    fill_words(t, t.q.buffer);
    for (const CacheView &c : t.caches) {
      fill_words(t, c.k);
      fill_words(t, c.v);
    }
    widen_output(t);
    if (t.lse.buffer >= 0) forget_words(t, t.lse.buffer);
    return t;
  }
  const bool pair = p.family == Family::kMergeState;
  for (int side = 0; side < (pair ? 2 : 1); ++side)
    fill_states(t, t.in_o[side], t.in_lse[side], pair ? exact.batch : t.first_state.back(),
                16 * side);
  return t;
}

FieldRow field_reference(const Tensors &t, int row, int head) {
  return is_attention(t.problem) ? attention_row(t, row, head) : merged_row(t, row, head);
}

FieldRow field_result(const Tensors &t, int row, int head, std::string &wrong) {
  FieldRow out;
  for (int i = 0; i < t.problem.head_dim; ++i) {
    const uint32_t handle = t.bits(t.o, row, head, i);
    const std::string why = missing(t, handle, &FieldNumber::a);
    if (!why.empty()) {
      wrong = element_name(row, head, i) + " is " + why;
      return out;
    }
    out.o.push_back(t.numbers[handle].a);
  }
  if (!t.problem.has_lse) return out;
  const uint32_t handle = t.bits(t.lse, row, head);
  if (handle == kMinusInfinity) return out;
  for (auto part : {&FieldNumber::b, &FieldNumber::m})
    if (const std::string why = missing(t, handle, part); !why.empty()) {
      wrong = element_name(row, head, -1) + " is " + why;
      return out;
    }
  out.empty = false;
  if (!right_base(t.problem, t.numbers[handle]))
    wrong = element_name(row, head, -1) + " is a logarithm of another base";
  out.mass = mass_of(t.problem, t.numbers[handle]);
  return out;
}

bool computes_field(const assay_kernel &kernel) {
  if (kernel.target != ASSAY_TARGET_SIMT) return false;
  Problem p;
  p.family = static_cast<Family>(kernel.family);
  p.num_splits = 1;
  p.seq_lens = {1};
  p.levels = {{1, 0, {1}, {1}}};
  Tensors t = field_inputs(p);
  std::vector<void *> addresses = host_addresses(t);
  AbiParams params = make_params(t, addresses, ASSAY_TARGET_SIMT, &t); // any stream: nothing runs
  RunResult result;
  std::vector<uint64_t> workspace;
  return admitted(kernel, params.get(), result, [&](uint64_t bytes) {
    workspace.resize(bytes / 8 + 2);
    auto address = reinterpret_cast<uintptr_t>(workspace.data());
    params.set_workspace(reinterpret_cast<void *>((address + 15) / 16 * 16), bytes);
  });
}

} // namespace assay
