// SPDX-License-Identifier: Apache-2.0
// Cascade attention, one query row after another over the segments that serve it: a right kernel to
// start from.
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
float load(const void *base, int64_t at) {
  const uint32_t bits = uint32_t{static_cast<const uint16_t *>(base)[at]} << 16;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// To nearest even. The sum below would carry a NaN into infinity.
void store(void *base, int64_t at, float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = std::isnan(x) ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
  static_cast<uint16_t *>(base)[at] = static_cast<uint16_t>(bits >> 16);
}

int64_t key_at(const assay_paged_kv &kv, int row, int token, int head) {
  const int64_t page = kv.page_table[row * kv.page_table_stride + token / kv.page_size];
  return page * kv.k_stride_page + token % kv.page_size * kv.k_stride_token +
         head * kv.k_stride_head;
}
int64_t value_at(const assay_paged_kv &kv, int row, int token, int head) {
  const int64_t page = kv.page_table[row * kv.page_table_stride + token / kv.page_size];
  return page * kv.v_stride_page + token % kv.page_size * kv.v_stride_token +
         head * kv.v_stride_head;
}

// The online softmax of one query row, carried key by key through all segments.
struct State {
  float m = kNegInf, sum = 0; // maximum in base 2, weights relative to it
  std::vector<float> o;
  bool empty = true;
};

void add_key(const assay_cascade_params &p, const assay_paged_kv &kv, int64_t q, int64_t k,
             int64_t v, State &state) {
  float dot = 0;
  for (int i = 0; i < p.head_dim; ++i)
    dot = std::fma(load(p.q, q + i), load(kv.k, k + i), dot);
  const float x = dot * (p.sm_scale * kLog2E); // logits are in base 2 from here on
  const float top = std::max(state.m, x);
  const float alpha = std::exp2(state.m - top); // 0 for the first key
  const float weight = std::exp2(x - top);
  state.m = top;
  state.sum = state.sum * alpha + weight;
  for (int i = 0; i < p.head_dim; ++i)
    state.o[i] = std::fma(weight, load(kv.v, v + i), state.o[i] * alpha);
  state.empty = false;
}

void add_segment(const assay_cascade_params &p, const assay_paged_kv &kv, int segment, int64_t q,
                 int kv_head, State &state) {
  for (int token = 0; token < kv.seq_lens[segment]; ++token)
    add_key(p, kv, q, key_at(kv, segment, token, kv_head), value_at(kv, segment, token, kv_head),
            state);
}

void attend(const assay_cascade_params &p, int request, int head) {
  const int kv_head = head / (p.num_qo_heads / p.num_kv_heads);
  const int64_t q = request * p.q_stride_batch + head * p.q_stride_head;
  State state;
  state.o.assign(p.head_dim, 0.0f);
  for (int l = 0; l < p.num_levels; ++l) {
    const assay_cascade_level &level = p.levels[l];
    for (int s = 0; s < level.kv.rows; ++s) // at most one of a level serves the request
      if (level.segment_indptr[s] <= request && request < level.segment_indptr[s + 1])
        add_segment(p, level.kv, s, q, kv_head, state);
  }
  const float inverse = state.empty ? 0.0f : 1.0f / state.sum; // without keys: 0 and -inf
  for (int i = 0; i < p.head_dim; ++i)
    store(p.out, request * p.out_stride_batch + head * p.out_stride_head + i, state.o[i] * inverse);
  if (p.lse == nullptr) return;
  const float lse = state.empty ? kNegInf : state.m + std::log2(state.sum);
  p.lse[request * p.lse_stride_batch + head * p.lse_stride_head] =
      p.lse_base == ASSAY_LSE_BASE_2 ? lse : lse * kLn2;
}

thread_local const char *refusal = "";
const char *last_error() { return refusal; }

// What is refused here is outside the kernel's envelope, and reported as such.
assay_status supports(const void *params) {
  const auto &p = *static_cast<const assay_cascade_params *>(params);
  refusal = p.dtype == ASSAY_BF16 ? "" : "bf16 only";
  return *refusal == '\0' ? ASSAY_OK : ASSAY_UNSUPPORTED;
}

assay_status run(const void *params) {
  if (const assay_status status = supports(params)) return status;
  const auto &p = *static_cast<const assay_cascade_params *>(params);
  for (int request = 0; request < p.batch; ++request)
    for (int head = 0; head < p.num_qo_heads; ++head)
      attend(p, request, head);
  return ASSAY_OK;
}

// Bounds come from these: assay's properties/plugins/DECLARATION.md says how to choose each.
constexpr assay_arithmetic kArithmetic = {
    .mma_block = 0, // std::fma in fp32
    .p_format = ASSAY_FORMAT_FP32,
    .sum_format = ASSAY_FORMAT_FP32,
    .exponential = ASSAY_EXP_BASE2,
    .sum_depth = 1,            // a tile is one key
    .exp2_rel_error = 0x1p-23, // one unit in the last place
    .log2_abs_error = 0x1p-23,
    .rcp_rel_error = 0x1p-24, // a division, rounded once
    .tile_tokens = 1,
};

constexpr assay_kernel kKernels[] = {{
    .struct_size = sizeof(assay_kernel),
    .name = "my_kernel",
    .family = ASSAY_FAMILY_CASCADE,
    .target = ASSAY_TARGET_SIMT, // host memory
    .determinism = ASSAY_DETERMINISM_RUN_TO_RUN,
    .batch_invariance = ASSAY_BATCH_ALWAYS,
    .nan_contract = ASSAY_NAN_VALUES | ASSAY_NAN_SCORES,
    .arithmetic = kArithmetic,
    .supports = supports,
    .run = run,
    .last_error = last_error,
}};
constexpr assay_plugin kPlugin = {
    sizeof(assay_plugin), ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR, "my_kernel", 1, kKernels};

} // namespace

const assay_plugin *assay_plugin_entry(uint32_t abi_major) {
  return abi_major == ASSAY_ABI_MAJOR ? &kPlugin : nullptr;
}
