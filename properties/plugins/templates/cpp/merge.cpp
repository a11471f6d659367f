// SPDX-License-Identifier: Apache-2.0
// Merges of attention states, of two and of many: right kernels to start from.
#include <assay/plugin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace {

constexpr float kLog2E = 1.44269504f, kLn2 = 0.69314718f;
constexpr float kNegInf = -std::numeric_limits<float>::infinity();

// bf16 is the upper half of a float.
float load(assay_dtype dtype, const void *base, int64_t at) {
  if (dtype == ASSAY_FP32) return static_cast<const float *>(base)[at];
  const uint32_t bits = uint32_t{static_cast<const uint16_t *>(base)[at]} << 16;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// To nearest even. The sum below would carry a NaN into infinity.
void store(assay_dtype dtype, void *base, int64_t at, float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if (dtype == ASSAY_FP32) {
    static_cast<float *>(base)[at] = x;
    return;
  }
  bits = std::isnan(x) ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
  static_cast<uint16_t *>(base)[at] = static_cast<uint16_t>(bits >> 16);
}

// One input of a (row, head): where its O begins, and its LSE.
struct State {
  const void *o;
  int64_t at;
  float lse;
};

// What a (row, head) becomes. It is complete before it is written: an output may lie on an input.
struct Merged {
  std::vector<float> o;
  float lse = kNegInf;
};

Merged merge(assay_dtype dtype, assay_lse_base base, int head_dim, std::vector<State> states) {
  Merged out;
  out.o.assign(head_dim, 0.0f);
  std::erase_if(states, [](const State &s) { return s.lse == kNegInf; }); // they weigh nothing
  if (states.empty()) return out;
  if (states.size() == 1) { // bit for bit
    for (int i = 0; i < head_dim; ++i)
      out.o[i] = load(dtype, states[0].o, states[0].at + i);
    out.lse = states[0].lse;
    return out;
  }
  float top = kNegInf, sum = 0;
  for (const State &s : states)
    top = std::max(top, s.lse);
  for (const State &s : states) {
    const float below = s.lse - top;
    const float weight = std::exp2(base == ASSAY_LSE_BASE_2 ? below : below * kLog2E);
    sum += weight;
    for (int i = 0; i < head_dim; ++i)
      out.o[i] = std::fma(weight, load(dtype, s.o, s.at + i), out.o[i]);
  }
  const float inverse = 1.0f / sum;
  for (float &x : out.o)
    x *= inverse;
  out.lse = top + std::log2(sum) * (base == ASSAY_LSE_BASE_2 ? 1.0f : kLn2);
  return out;
}

template <class Params>
void write(const Params &p, int row, int head, const Merged &merged) {
  for (int i = 0; i < p.head_dim; ++i)
    store(p.dtype, p.out, row * p.out_stride_row + head * p.out_stride_head + i, merged.o[i]);
  if (p.lse != nullptr) p.lse[row * p.lse_stride_row + head * p.lse_stride_head] = merged.lse;
}

void merge_row(const assay_merge_state_params &p, int row, int head) {
  const State a = {p.o_a, row * p.o_a_stride_row + head * p.o_a_stride_head,
                   p.lse_a[row * p.lse_a_stride_row + head * p.lse_a_stride_head]};
  const State b = {p.o_b, row * p.o_b_stride_row + head * p.o_b_stride_head,
                   p.lse_b[row * p.lse_b_stride_row + head * p.lse_b_stride_head]};
  write(p, row, head, merge(p.dtype, p.lse_base, p.head_dim, {a, b}));
}

void merge_row(const assay_merge_states_params &p, int row, int head) {
  const int64_t first = p.indptr ? p.indptr[row] : int64_t{row} * p.num_states;
  const int64_t last = p.indptr ? p.indptr[row + 1] : first + p.num_states;
  std::vector<State> states;
  for (int64_t s = first; s < last; ++s)
    states.push_back({p.o_in, s * p.o_in_stride_state + head * p.o_in_stride_head,
                      p.lse_in[s * p.lse_in_stride_state + head * p.lse_in_stride_head]});
  write(p, row, head, merge(p.dtype, p.lse_base, p.head_dim, std::move(states)));
}

thread_local const char *refusal = "";
const char *last_error() { return refusal; }

// What is refused here is outside the kernel's envelope, and reported as such.
template <class Params>
assay_status supports(const void *params) {
  const assay_dtype dtype = static_cast<const Params *>(params)->dtype;
  refusal = dtype == ASSAY_BF16 || dtype == ASSAY_FP32 ? "" : "bf16 and fp32 only";
  return *refusal == '\0' ? ASSAY_OK : ASSAY_UNSUPPORTED;
}

template <class Params>
assay_status run(const void *params) {
  if (const assay_status status = supports<Params>(params)) return status;
  const auto &p = *static_cast<const Params *>(params);
  for (int row = 0; row < p.num_rows; ++row)
    for (int head = 0; head < p.num_heads; ++head)
      merge_row(p, row, head);
  return ASSAY_OK;
}

// Bounds come from these: assay's properties/plugins/DECLARATION.md says how to choose each.
constexpr assay_arithmetic kArithmetic = {
    .exponential = ASSAY_EXP_BASE2,
    .exp2_rel_error = 0x1p-23, // one unit in the last place
    .log2_abs_error = 0x1p-23,
    .rcp_rel_error = 0x1p-24, // a division, rounded once
};

template <class Params>
constexpr assay_kernel entry(const char *name, assay_family family) {
  return {
      .struct_size = sizeof(assay_kernel),
      .name = name,
      .family = family,
      .target = ASSAY_TARGET_SIMT, // host memory
      .determinism = ASSAY_DETERMINISM_RUN_TO_RUN,
      .batch_invariance = ASSAY_BATCH_ALWAYS,
      .nan_contract = ASSAY_NAN_VALUES | ASSAY_NAN_SCORES,
      .arithmetic = kArithmetic,
      .supports = supports<Params>,
      .run = run<Params>,
      .last_error = last_error,
  };
}
constexpr assay_kernel kKernels[] = {
    entry<assay_merge_state_params>("my_kernel_state", ASSAY_FAMILY_MERGE_STATE),
    entry<assay_merge_states_params>("my_kernel_states", ASSAY_FAMILY_MERGE_STATES)};
constexpr assay_plugin kPlugin = {
    sizeof(assay_plugin), ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR, "my_kernel", 2, kKernels};

} // namespace

const assay_plugin *assay_plugin_entry(uint32_t abi_major) {
  return abi_major == ASSAY_ABI_MAJOR ? &kPlugin : nullptr;
}
