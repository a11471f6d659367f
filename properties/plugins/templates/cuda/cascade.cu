// SPDX-License-Identifier: Apache-2.0
// Cascade attention, a block for each query row over the segments that serve it: a right kernel to
// start from.
#include <assay/plugin.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {

constexpr int kTile = 64; // keys scored at once, a thread each
constexpr int kMaxHeadDim = 256;
constexpr float kLog2E = 1.44269504f, kLn2 = 0.69314718f;

// The host's array of levels, by value.
struct Levels {
  assay_cascade_level level[ASSAY_MAX_CASCADE_LEVELS];
};

__device__ float load(const void *base, int64_t at) {
  return __bfloat162float(static_cast<const __nv_bfloat16 *>(base)[at]);
}

__device__ int64_t page_of(const assay_paged_kv &kv, int row, int token) {
  return kv.page_table[row * kv.page_table_stride + token / kv.page_size];
}

__device__ float score(const assay_cascade_params &p, const assay_paged_kv &kv, const float *q,
                       int segment, int token, int kv_head) {
  const int64_t k = page_of(kv, segment, token) * kv.k_stride_page +
                    token % kv.page_size * kv.k_stride_token + kv_head * kv.k_stride_head;
  float dot = 0;
  for (int i = 0; i < p.head_dim; ++i)
    dot = fmaf(q[i], load(kv.k, k + i), dot);
  return dot * (p.sm_scale * kLog2E); // logits are in base 2 from here on
}

// The online softmax of one query row, of which a thread has one dim.
struct State {
  float m = -INFINITY, sum = 0, o = 0;
  bool empty = true;
};

__device__ void add_segment(const assay_cascade_params &p, const assay_paged_kv &kv, int segment,
                            int kv_head, const float *q, float *x, State &state) {
  const int i = threadIdx.x, end = kv.seq_lens[segment];
  for (int first = 0; first < end; first += kTile) {
    const int count = min(kTile, end - first);
    __syncthreads(); // q is there, and the last tile has been read
    if (i < count) x[i] = score(p, kv, q, segment, first + i, kv_head);
    __syncthreads();
    for (int j = 0; j < count; ++j) {
      const int slot = (first + j) % kv.page_size;
      const int64_t v = page_of(kv, segment, first + j) * kv.v_stride_page +
                        slot * kv.v_stride_token + kv_head * kv.v_stride_head;
      const float top = fmaxf(state.m, x[j]);
      const float alpha = exp2f(state.m - top); // 0 for the first key
      const float weight = exp2f(x[j] - top);
      state.m = top;
      state.sum = state.sum * alpha + weight;
      state.o = fmaf(weight, load(kv.v, v + i), state.o * alpha);
    }
    state.empty = false;
  }
}

__global__ void attend(const assay_cascade_params p, const Levels levels) {
  __shared__ float q[kMaxHeadDim], x[kTile];
  const int i = threadIdx.x;
  const int head = blockIdx.x % p.num_qo_heads, request = blockIdx.x / p.num_qo_heads;
  const int kv_head = head / (p.num_qo_heads / p.num_kv_heads);
  q[i] = load(p.q, request * p.q_stride_batch + head * p.q_stride_head + i);
  State state;
  for (int l = 0; l < p.num_levels; ++l) {
    const assay_cascade_level &level = levels.level[l];
    for (int s = 0; s < level.kv.rows; ++s) // at most one of a level serves the request
      if (level.segment_indptr[s] <= request && request < level.segment_indptr[s + 1])
        add_segment(p, level.kv, s, kv_head, q, x, state);
  }
  const float inverse = 1.0f / state.sum;
  static_cast<__nv_bfloat16 *>(p.out)[request * p.out_stride_batch + head * p.out_stride_head + i] =
      __float2bfloat16_rn(state.empty ? 0.0f : state.o * inverse); // without keys: 0 and -inf
  if (p.lse == nullptr || i != 0) return;
  const float lse = state.empty ? -INFINITY : state.m + log2f(state.sum);
  p.lse[request * p.lse_stride_batch + head * p.lse_stride_head] =
      p.lse_base == ASSAY_LSE_BASE_2 ? lse : lse * kLn2;
}

int64_t blocks_of(const assay_cascade_params &p) { return int64_t{p.batch} * p.num_qo_heads; }

thread_local const char *refusal = "";
const char *last_error() { return refusal; }

// What is refused here is outside the kernel's envelope, and reported as such.
assay_status supports(const void *params) {
  const auto &p = *static_cast<const assay_cascade_params *>(params);
  refusal = p.dtype == ASSAY_BF16 ? "" : "bf16 only";
  if (blocks_of(p) > INT32_MAX) refusal = "at most 2^31 - 1 query rows";
  return *refusal == '\0' ? ASSAY_OK : ASSAY_UNSUPPORTED;
}

// Returns when the kernel is on the stream: no allocation, no synchronisation.
assay_status run(const void *params) {
  if (const assay_status status = supports(params)) return status;
  const auto &p = *static_cast<const assay_cascade_params *>(params);
  if (blocks_of(p) == 0) return ASSAY_OK;
  Levels levels{};
  std::copy_n(p.levels, p.num_levels, levels.level);
  const auto stream = static_cast<cudaStream_t>(p.stream);
  attend<<<static_cast<unsigned>(blocks_of(p)), p.head_dim, 0, stream>>>(p, levels);
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return ASSAY_OK;
  refusal = cudaGetErrorString(error);
  return ASSAY_LAUNCH_FAILED;
}

// Bounds come from these: assay's properties/plugins/DECLARATION.md says how to choose each.
constexpr assay_arithmetic kArithmetic = {
    .mma_block = 0, // fmaf in fp32
    .p_format = ASSAY_FORMAT_FP32,
    .sum_format = ASSAY_FORMAT_FP32,
    .exponential = ASSAY_EXP_BASE2,
    .sum_depth = 1,            // the running maximum follows every key
    .exp2_rel_error = 0x1p-22, // two units in the last place, CUDA C++ Programming Guide
    .log2_abs_error = 0x1p-22,
    .rcp_rel_error = 0x1p-24, // a division, rounded once
    .tile_tokens = 1,
};

constexpr assay_kernel kKernels[] = {{
    .struct_size = sizeof(assay_kernel),
    .name = "my_kernel",
    .family = ASSAY_FAMILY_CASCADE,
    .target = ASSAY_TARGET_CUDA, // device memory
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
