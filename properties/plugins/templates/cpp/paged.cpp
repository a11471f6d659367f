// SPDX-License-Identifier: Apache-2.0
// Paged decode attention, one query row after another: a right kernel to start from.
#include <assay/plugin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace {

constexpr int kTile = 16; // keys between two updates of the running maximum
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

void attend(const assay_paged_params &p, int request, int token, int head) {
  const int kv_head = head / (p.num_qo_heads / p.num_kv_heads);
  const int end = p.kv.seq_lens[request] - p.q_len + token + 1; // causal: the newest tokens
  const int begin = p.window_left >= 0 ? std::max(0, end - 1 - p.window_left) : 0;
  const int64_t q = request * p.q_stride_batch + token * p.q_stride_token + head * p.q_stride_head;
  const float scale = p.sm_scale * kLog2E; // logits are in base 2 from here on
  float m = kNegInf, sum = 0;
  std::vector<float> o(p.head_dim, 0.0f);
  for (int first = begin; first < end; first += kTile) {
    const int count = std::min(kTile, end - first);
    float x[kTile], top = m;
    for (int j = 0; j < count; ++j) {
      const int64_t k = key_at(p.kv, request, first + j, kv_head);
      float dot = 0;
      for (int i = 0; i < p.head_dim; ++i)
        dot = std::fma(load(p.q, q + i), load(p.kv.k, k + i), dot);
      x[j] = dot * scale;
      top = std::max(top, x[j]);
    }
    const float alpha = std::exp2(m - top); // 0 for the first tile
    m = top;
    sum *= alpha;
    for (float &element : o)
      element *= alpha;
    for (int j = 0; j < count; ++j) {
      const int64_t v = value_at(p.kv, request, first + j, kv_head);
      const float weight = std::exp2(x[j] - m);
      sum += weight;
      for (int i = 0; i < p.head_dim; ++i)
        o[i] = std::fma(weight, load(p.kv.v, v + i), o[i]);
    }
  }
  const bool empty = begin >= end; // a row without keys: 0 and -inf
  const float inverse = empty ? 0.0f : 1.0f / sum;
  const int64_t out =
      request * p.out_stride_batch + token * p.out_stride_token + head * p.out_stride_head;
  for (int i = 0; i < p.head_dim; ++i)
    store(p.out, out + i, o[i] * inverse);
  if (p.lse == nullptr) return;
  const float lse = empty ? kNegInf : m + std::log2(sum);
  p.lse[request * p.lse_stride_batch + token * p.lse_stride_token + head * p.lse_stride_head] =
      p.lse_base == ASSAY_LSE_BASE_2 ? lse : lse * kLn2;
}

thread_local const char *refusal = "";
const char *last_error() { return refusal; }

// What is refused here is outside the kernel's envelope, and reported as such.
assay_status supports(const void *params) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  refusal = "";
  if (p.dtype != ASSAY_BF16 || p.kv_dtype != ASSAY_BF16) refusal = "bf16 only";
  if (p.logits_soft_cap > 0 || p.alibi_slopes || p.sinks) refusal = "no softcap, ALiBi or sinks";
  return *refusal == '\0' ? ASSAY_OK : ASSAY_UNSUPPORTED;
}

assay_status run(const void *params) {
  if (const assay_status status = supports(params)) return status;
  const auto &p = *static_cast<const assay_paged_params *>(params);
  for (int request = 0; request < p.batch; ++request)
    for (int token = 0; token < p.q_len; ++token)
      for (int head = 0; head < p.num_qo_heads; ++head)
        attend(p, request, token, head);
  return ASSAY_OK;
}

// Bounds come from these: assay's properties/plugins/DECLARATION.md says how to choose each.
constexpr assay_arithmetic kArithmetic = {
    .mma_block = 0, // std::fma in fp32
    .p_format = ASSAY_FORMAT_FP32,
    .sum_format = ASSAY_FORMAT_FP32,
    .exponential = ASSAY_EXP_BASE2,
    .sum_depth = kTile,
    .exp2_rel_error = 0x1p-23, // one unit in the last place
    .log2_abs_error = 0x1p-23,
    .rcp_rel_error = 0x1p-24, // a division, rounded once
    .tile_tokens = kTile,
};

constexpr assay_kernel kKernels[] = {{
    .struct_size = sizeof(assay_kernel),
    .name = "my_kernel",
    .family = ASSAY_FAMILY_PAGED,
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
