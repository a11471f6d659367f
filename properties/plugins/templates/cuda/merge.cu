// SPDX-License-Identifier: Apache-2.0
// Merges of attention states, of two and of many, a block for each (row, head): right kernels to
// start from.
#include <assay/plugin.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

namespace {

constexpr float kLog2E = 1.44269504f, kLn2 = 0.69314718f;

__device__ float load(const float *base, int64_t at) { return base[at]; }
__device__ float load(const __nv_bfloat16 *base, int64_t at) { return __bfloat162float(base[at]); }
__device__ void store(float *base, int64_t at, float x) { base[at] = x; }
__device__ void store(__nv_bfloat16 *base, int64_t at, float x) {
  base[at] = __float2bfloat16_rn(x);
}

// Where input state s of a (row, head) begins, and its LSE.
struct State {
  const void *o;
  int64_t at;
  float lse;
};

__device__ int count_of(const assay_merge_state_params &, int) { return 2; }
__device__ int count_of(const assay_merge_states_params &p, int row) {
  return p.indptr ? p.indptr[row + 1] - p.indptr[row] : p.num_states;
}
__device__ State state_of(const assay_merge_state_params &p, int row, int head, int s) {
  if (s == 0)
    return {p.o_a, row * p.o_a_stride_row + head * p.o_a_stride_head,
            p.lse_a[row * p.lse_a_stride_row + head * p.lse_a_stride_head]};
  return {p.o_b, row * p.o_b_stride_row + head * p.o_b_stride_head,
          p.lse_b[row * p.lse_b_stride_row + head * p.lse_b_stride_head]};
}
__device__ State state_of(const assay_merge_states_params &p, int row, int head, int s) {
  const int64_t state = (p.indptr ? p.indptr[row] : int64_t{row} * p.num_states) + s;
  return {p.o_in, state * p.o_in_stride_state + head * p.o_in_stride_head,
          p.lse_in[state * p.lse_in_stride_state + head * p.lse_in_stride_head]};
}

// Thread i owns dim i. All reads of a block come before its writes: an output may lie on an input.
template <class Element, class Params>
__global__ void merge(const Params p) {
  const int i = threadIdx.x, head = blockIdx.x % p.num_heads, row = blockIdx.x / p.num_heads;
  const int count = count_of(p, row);
  int live = 0, only = 0; // states of LSE -inf weigh nothing
  float lse = -INFINITY, o = 0;
  for (int s = 0; s < count; ++s) {
    const float x = state_of(p, row, head, s).lse;
    lse = fmaxf(lse, x);
    if (x != -INFINITY) ++live, only = s;
  }
  Element bits{}; // bits of O, when a single state is live
  if (live == 1) {
    const State s = state_of(p, row, head, only);
    bits = static_cast<const Element *>(s.o)[s.at + i];
    lse = s.lse;
  } else if (live > 1) {
    const float top = lse;
    float sum = 0;
    for (int s = 0; s < count; ++s) {
      const State state = state_of(p, row, head, s);
      if (state.lse == -INFINITY) continue;
      const float below = state.lse - top;
      const float weight = exp2f(p.lse_base == ASSAY_LSE_BASE_2 ? below : below * kLog2E);
      sum += weight;
      o = fmaf(weight, load(static_cast<const Element *>(state.o), state.at + i), o);
    }
    o *= 1.0f / sum;
    lse = top + log2f(sum) * (p.lse_base == ASSAY_LSE_BASE_2 ? 1.0f : kLn2);
  }
  __syncthreads();
  Element *out = static_cast<Element *>(p.out) + row * p.out_stride_row + head * p.out_stride_head;
  if (live == 1)
    out[i] = bits;
  else
    store(out, i, o);
  if (p.lse != nullptr && i == 0) p.lse[row * p.lse_stride_row + head * p.lse_stride_head] = lse;
}

template <class Params>
int64_t blocks_of(const Params &p) {
  return int64_t{p.num_rows} * p.num_heads;
}

thread_local const char *refusal = "";
const char *last_error() { return refusal; }

// What is refused here is outside the kernel's envelope, and reported as such.
template <class Params>
assay_status supports(const void *params) {
  const auto &p = *static_cast<const Params *>(params);
  refusal = p.dtype == ASSAY_BF16 || p.dtype == ASSAY_FP32 ? "" : "bf16 and fp32 only";
  if (blocks_of(p) > INT32_MAX) refusal = "at most 2^31 - 1 rows of heads";
  return *refusal == '\0' ? ASSAY_OK : ASSAY_UNSUPPORTED;
}

// Returns when the kernel is on the stream: no allocation, no synchronisation.
template <class Params>
assay_status run(const void *params) {
  if (const assay_status status = supports<Params>(params)) return status;
  const auto &p = *static_cast<const Params *>(params);
  if (blocks_of(p) == 0) return ASSAY_OK;
  const auto blocks = static_cast<unsigned>(blocks_of(p));
  const auto stream = static_cast<cudaStream_t>(p.stream);
  if (p.dtype == ASSAY_FP32)
    merge<float><<<blocks, p.head_dim, 0, stream>>>(p);
  else
    merge<__nv_bfloat16><<<blocks, p.head_dim, 0, stream>>>(p);
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return ASSAY_OK;
  refusal = cudaGetErrorString(error);
  return ASSAY_LAUNCH_FAILED;
}

// Bounds come from these: assay's properties/plugins/DECLARATION.md says how to choose each.
constexpr assay_arithmetic kArithmetic = {
    .exponential = ASSAY_EXP_BASE2,
    .exp2_rel_error = 0x1p-22, // two units in the last place, CUDA C++ Programming Guide
    .log2_abs_error = 0x1p-22,
    .rcp_rel_error = 0x1p-24, // a division, rounded once
};

template <class Params>
constexpr assay_kernel entry(const char *name, assay_family family) {
  return {
      .struct_size = sizeof(assay_kernel),
      .name = name,
      .family = family,
      .target = ASSAY_TARGET_CUDA, // device memory
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
