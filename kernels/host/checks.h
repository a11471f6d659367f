// SPDX-License-Identifier: Apache-2.0
// Argument checks shared by the entry points. Each names the argument and its limit; what passes
// builds no text.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/host/argument_name.h"
#include "kernels/host/fail.h"

#include <cstdint>
#include <cstring>
#include <limits>

namespace assay {

/// Positions and tile look-ahead are int32: 2^30 tokens leave room for every base + stride.
inline constexpr int64_t kMaxTokens = int64_t{1} << 30;
inline constexpr int64_t kMaxGrid = std::numeric_limits<int32_t>::max();
/// Natural to base 2 and back.
inline constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453;
/// Vector accesses are 16 bytes: 8 elements of 16 bits.
inline constexpr int64_t kStrideMultiple = 8;
/// Page and token strides, in elements of at most 2 bytes, reach the kernels as 32-bit bytes.
inline constexpr int64_t kMaxKvStride = int64_t{1} << 31;
/// A page table has at most so many entries, with the lists of all kv heads.
inline constexpr int64_t kMaxTableEntries = int64_t{1} << 32;

/// sizeof a struct in ABI 0.13, the first whose callers are served. A struct that gets a field
/// keeps its number here.
template <class Params>
inline constexpr uint32_t kFirstSize = sizeof(Params);

/// f(params), with the struct of an earlier header continued by zeros.
template <class Params, class F>
auto with_current_struct(const Params *params, F f) {
  if (params == nullptr || params->struct_size >= sizeof(Params) ||
      params->struct_size < kFirstSize<Params>) [[likely]]
    return f(params); // check_struct says what is wrong with it
  Params current{};
  std::memcpy(&current, params, params->struct_size);
  current.struct_size = sizeof current;
  return f(&current);
}

template <class Params>
assay_status check_struct(const Params *params, const char *type) {
  if (params == nullptr) return fail(ASSAY_INVALID_ARGUMENT, "params is null ({})", type);
  if (params->struct_size != sizeof(Params))
    return fail(ASSAY_INVALID_ARGUMENT, "struct_size is {}, expected {} (sizeof {})",
                params->struct_size, sizeof(Params), type);
  return ASSAY_OK;
}

assay_status check_target(assay_target target);
/// Whether the current device of the target runs kernels of this library. Where no device answers
/// there is nothing to say yet.
assay_status check_device_code(assay_target target);
/// What ASSAY_FIELD61 needs.
assay_status check_field(assay_target target, const void *stream);
assay_status check_lse_base(assay_lse_base base);
/// Compose the message of the checks below for an argument that fails. They are out of line, so
/// that a check that passes is a comparison and builds not even the name.
assay_status refuse_range(const ArgumentName &name, int64_t value, int64_t low, int64_t high);
assay_status refuse_pointer(const ArgumentName &name, const void *pointer, uint64_t alignment);
assay_status refuse_room(const ArgumentName &name, const void *pointer, int64_t bytes);
assay_status refuse_stride(const ArgumentName &name, int64_t stride);
assay_status refuse_negative_stride(const ArgumentName &name, int64_t stride);
assay_status refuse_output_stride(const char *name, int64_t stride, int64_t count, int64_t width);

inline assay_status check_range(const ArgumentName &name, int64_t value, int64_t low,
                                int64_t high) {
  if (value >= low && value <= high) [[likely]]
    return ASSAY_OK;
  return refuse_range(name, value, low, high);
}
/// Non-null and aligned to `alignment` bytes, a power of two.
inline assay_status check_pointer(const ArgumentName &name, const void *pointer,
                                  uint64_t alignment) {
  if (pointer != nullptr && (reinterpret_cast<uintptr_t>(pointer) & (alignment - 1)) == 0)
      [[likely]]
    return ASSAY_OK;
  return refuse_pointer(name, pointer, alignment);
}
/// That `bytes` from `pointer` on have addresses.
inline assay_status check_room(const ArgumentName &name, const void *pointer, int64_t bytes) {
  if (reinterpret_cast<uintptr_t>(pointer) <= UINTPTR_MAX - static_cast<uint64_t>(bytes)) [[likely]]
    return ASSAY_OK;
  return refuse_room(name, pointer, bytes);
}
/// >= 0 and a multiple of kStrideMultiple.
inline assay_status check_stride(const ArgumentName &name, int64_t stride) {
  if (stride >= 0 && stride % kStrideMultiple == 0) [[likely]]
    return ASSAY_OK;
  return refuse_stride(name, stride);
}
inline assay_status check_stride_non_negative(const ArgumentName &name, int64_t stride) {
  if (stride >= 0) [[likely]]
    return ASSAY_OK;
  return refuse_negative_stride(name, stride);
}
/// Checks the stride of an output with `count` pieces of `width` elements, which may not overlap.
inline assay_status check_output_stride(const char *name, int64_t stride, int64_t count,
                                        int64_t width) {
  if (count <= 1 || stride >= width) [[likely]]
    return ASSAY_OK;
  return refuse_output_stride(name, stride, count, width);
}
/// Refuses an output that starts where an input does.
assay_status check_no_alias(const char *output, const void *o, const char *input, const void *i);
assay_status check_heads(int32_t num_qo_heads, int32_t num_kv_heads);
assay_status check_scale(float sm_scale);
/// `level`: of the cascade that has the cache, kNoLevel elsewhere. The sizes are also what a plan
/// needs to know of a cache.
assay_status check_cache_sizes(const assay_paged_kv &kv, int level = kNoLevel);
assay_status check_paged_kv(const assay_paged_kv &kv, int num_kv_heads, int level = kNoLevel);

} // namespace assay
