// SPDX-License-Identifier: Apache-2.0
// The host of kernel.cuh says what the kernel takes, makes its tensor maps, launches it, and
// declares its arithmetic.
#include "kernel.cuh"

#include <assay/plugin.h>

#include <cstdint>

#if ASSAY_IS_CUDA
#include <cuda_runtime.h>
#else
#include "kernels/simt/launch.h"
#endif

namespace {

thread_local const char *refusal = "";
const char *last_error() { return refusal; }

int64_t rows_of(const assay_paged_params &p) { return int64_t{p.batch} * p.q_len * p.num_qo_heads; }

// What is refused here is outside the kernel's envelope, and reported as such.
assay_status supports(const void *params) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  refusal = "";
  if (p.dtype != ASSAY_BF16 || p.kv_dtype != ASSAY_BF16) refusal = "bf16 only";
  if (p.head_dim != 64 && p.head_dim != 128) refusal = "head_dim 64 and 128 only";
  if (p.kv.page_size % kTile != 0) refusal = "pages of whole tiles of 16 keys only";
  if (p.logits_soft_cap > 0 || p.alibi_slopes || p.sinks) refusal = "no softcap, ALiBi or sinks";
  if (rows_of(p) > INT32_MAX) refusal = "2^31 - 1 query rows at most";
  return *refusal == '\0' ? ASSAY_OK : ASSAY_UNSUPPORTED;
}

/// K or V as a tensor of dims, slots, kv heads and pages. The box of a copy is a tile of one head.
/// A call does not say how many pages there are: the page table names those that exist.
const char *make_map(arch::TensorMap &map, const assay_paged_params &p, const void *pool,
                     int64_t page, int64_t token, int64_t head) {
  const auto dims = static_cast<uint32_t>(p.head_dim);
  arch::TensorShape shape = {.data = pool,
                             .rank = 4,
                             .element_bytes = sizeof(arch::bf16),
                             .size = {dims, static_cast<uint64_t>(p.kv.page_size),
                                      static_cast<uint64_t>(p.num_kv_heads), uint64_t{1} << 31},
                             .box = {dims, kTile, 1, 1}};
  shape.stride[1] = static_cast<uint64_t>(token) * sizeof(arch::bf16);
  shape.stride[2] = static_cast<uint64_t>(head) * sizeof(arch::bf16);
  shape.stride[3] = static_cast<uint64_t>(page) * sizeof(arch::bf16);
  return arch::make_tensor_map(map, shape);
}

#if ASSAY_IS_CUDA
template <int kDim>
assay_status launch(const Params &params) {
  const auto blocks = static_cast<unsigned>(rows_of(params.call));
  const auto stream = static_cast<cudaStream_t>(params.call.stream);
  decode<kDim><<<blocks, kThreads, sizeof(Shared<kDim>), stream>>>(params);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) refusal = cudaGetErrorString(error);
  return error == cudaSuccess ? ASSAY_OK : ASSAY_LAUNCH_FAILED;
}
#else
/// The stream is the executor's: memory, schedule, and the report of a hazard.
template <int kDim>
assay_status launch(const Params &params) {
  const assay::simt::LaunchConfig config = {.grid_x = static_cast<uint32_t>(rows_of(params.call)),
                                            .block = kThreads,
                                            .shared_bytes = sizeof(Shared<kDim>)};
  auto *stream = static_cast<assay::simt::Stream *>(params.call.stream);
  const auto status = assay::simt::launch(stream, config, [&] { decode<kDim>(params); });
  return status == assay::simt::LaunchStatus::kOk ? ASSAY_OK : assay_status{ASSAY_HAZARD};
}
#endif

assay_status run(const void *call) {
  if (const assay_status status = supports(call)) return status;
  Params params = {*static_cast<const assay_paged_params *>(call), {}, {}};
  const assay_paged_params &p = params.call;
  const assay_paged_kv &kv = p.kv;
  if (rows_of(p) == 0) return ASSAY_OK;
  const char *reason = nullptr;
  if (kv.max_pages > 0) // Without pages the pools may be null.
    reason = make_map(params.keys, p, kv.k, kv.k_stride_page, kv.k_stride_token, kv.k_stride_head);
  if (kv.max_pages > 0 && reason == nullptr)
    reason =
        make_map(params.values, p, kv.v, kv.v_stride_page, kv.v_stride_token, kv.v_stride_head);
  if (reason != nullptr) {
    refusal = reason;
    return ASSAY_LAUNCH_FAILED;
  }
  return p.head_dim == 64 ? launch<64>(params) : launch<128>(params);
}

// Bounds come from these: assay's properties/plugins/DECLARATION.md says how to choose each.
constexpr assay_arithmetic kArithmetic = {
    .mma_block = 0, // Products are fma in fp32.
    .p_format = ASSAY_FORMAT_FP32,
    .sum_format = ASSAY_FORMAT_FP32,
    .exponential = ASSAY_EXP_BASE2,
    .sum_depth = 3,            // A butterfly adds the eight keys of a consumer.
    .exp2_rel_error = 0x1p-22, // The head of kernels/arch/math.cuh has these three.
    .log2_abs_error = 0x1p-22,
    .rcp_rel_error = 0x1p-23,
    .tile_tokens = kKeys,
    .max_parallel_states = kConsumers,
};

constexpr assay_kernel kKernels[] = {{
    .struct_size = sizeof(assay_kernel),
    .name = "my_kernel",
    .family = ASSAY_FAMILY_PAGED,
    .target = ASSAY_IS_CUDA ? ASSAY_TARGET_CUDA : ASSAY_TARGET_SIMT,
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
