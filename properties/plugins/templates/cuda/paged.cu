// SPDX-License-Identifier: Apache-2.0
// Paged decode attention, a block for each query row: a right kernel to start from.
#include <assay/plugin.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

namespace {

constexpr int kTile = 64; // keys between two updates of the running maximum, a thread each
constexpr int kMaxHeadDim = 256;
constexpr float kLog2E = 1.44269504f, kLn2 = 0.69314718f;

__device__ float load(const void *base, int64_t at) {
  return __bfloat162float(static_cast<const __nv_bfloat16 *>(base)[at]);
}

__device__ int64_t page_of(const assay_paged_kv &kv, int row, int token) {
  return kv.page_table[row * kv.page_table_stride + token / kv.page_size];
}

__device__ float score(const assay_paged_params &p, const float *q, int request, int token,
                       int kv_head) {
  const int64_t k = page_of(p.kv, request, token) * p.kv.k_stride_page +
                    token % p.kv.page_size * p.kv.k_stride_token + kv_head * p.kv.k_stride_head;
  float dot = 0;
  for (int i = 0; i < p.head_dim; ++i)
    dot = fmaf(q[i], load(p.kv.k, k + i), dot);
  return dot * (p.sm_scale * kLog2E); // logits are in base 2 from here on
}

// Thread i owns dim i of the output and computes the score of key i of a tile.
__global__ void attend(const assay_paged_params p) {
  __shared__ float q[kMaxHeadDim], x[kTile];
  const int i = threadIdx.x, head = blockIdx.x % p.num_qo_heads;
  const int token = blockIdx.x / p.num_qo_heads % p.q_len;
  const int request = blockIdx.x / p.num_qo_heads / p.q_len;
  const int kv_head = head / (p.num_qo_heads / p.num_kv_heads);
  const int end = p.kv.seq_lens[request] - p.q_len + token + 1; // causal: the newest tokens
  const int begin = p.window_left >= 0 ? max(0, end - 1 - p.window_left) : 0;
  q[i] =
      load(p.q, request * p.q_stride_batch + token * p.q_stride_token + head * p.q_stride_head + i);
  float m = -INFINITY, sum = 0, o = 0;
  for (int first = begin; first < end; first += kTile) {
    const int count = min(kTile, end - first);
    __syncthreads(); // q is there, and the last tile has been read
    if (i < count) x[i] = score(p, q, request, first + i, kv_head);
    __syncthreads();
    float top = m;
    for (int j = 0; j < count; ++j)
      top = fmaxf(top, x[j]);
    const float alpha = exp2f(m - top); // 0 for the first tile
    m = top;
    sum *= alpha;
    o *= alpha;
    for (int j = 0; j < count; ++j) {
      const int slot = (first + j) % p.kv.page_size;
      const int64_t v = page_of(p.kv, request, first + j) * p.kv.v_stride_page +
                        slot * p.kv.v_stride_token + kv_head * p.kv.v_stride_head;
      const float weight = exp2f(x[j] - m);
      sum += weight;
      o = fmaf(weight, load(p.kv.v, v + i), o);
    }
  }
  const bool empty = begin >= end; // a row without keys: 0 and -inf
  const int64_t out =
      request * p.out_stride_batch + token * p.out_stride_token + head * p.out_stride_head;
  static_cast<__nv_bfloat16 *>(p.out)[out + i] =
      __float2bfloat16_rn(empty ? 0.0f : o * (1.0f / sum));
  if (p.lse == nullptr || i != 0) return;
  const float lse = empty ? -INFINITY : m + log2f(sum);
  p.lse[request * p.lse_stride_batch + token * p.lse_stride_token + head * p.lse_stride_head] =
      p.lse_base == ASSAY_LSE_BASE_2 ? lse : lse * kLn2;
}

int64_t blocks_of(const assay_paged_params &p) {
  return int64_t{p.batch} * p.q_len * p.num_qo_heads;
}

thread_local const char *refusal = "";
const char *last_error() { return refusal; }

// What is refused here is outside the kernel's envelope, and reported as such.
assay_status supports(const void *params) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  refusal = "";
  if (p.dtype != ASSAY_BF16 || p.kv_dtype != ASSAY_BF16) refusal = "bf16 only";
  if (p.logits_soft_cap > 0 || p.alibi_slopes || p.sinks) refusal = "no softcap, ALiBi or sinks";
  if (blocks_of(p) > INT32_MAX) refusal = "at most 2^31 - 1 query rows";
  return *refusal == '\0' ? ASSAY_OK : ASSAY_UNSUPPORTED;
}

// Returns when the kernel is on the stream: no allocation, no synchronisation.
assay_status run(const void *params) {
  if (const assay_status status = supports(params)) return status;
  const auto &p = *static_cast<const assay_paged_params *>(params);
  if (blocks_of(p) == 0) return ASSAY_OK;
  const auto stream = static_cast<cudaStream_t>(p.stream);
  attend<<<static_cast<unsigned>(blocks_of(p)), p.head_dim, 0, stream>>>(p);
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
    .sum_depth = kTile,
    .exp2_rel_error = 0x1p-22, // two units in the last place, CUDA C++ Programming Guide
    .log2_abs_error = 0x1p-22,
    .rcp_rel_error = 0x1p-24, // a division, rounded once
    .tile_tokens = kTile,
};

constexpr assay_kernel kKernels[] = {{
    .struct_size = sizeof(assay_kernel),
    .name = "my_kernel",
    .family = ASSAY_FAMILY_PAGED,
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
