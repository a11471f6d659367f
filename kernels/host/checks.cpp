// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/checks.h"

#include "kernels/host/device_info.h"

#include <cmath>

namespace assay {

// The numbers that messages name.
static_assert(ASSAY_TARGET_SIMT == 0 && ASSAY_TARGET_CUDA == 1);
static_assert(ASSAY_LSE_BASE_E == 0 && ASSAY_LSE_BASE_2 == 1);
static_assert(ASSAY_FP16 == 0 && ASSAY_BF16 == 1 && ASSAY_FP32 == 2);
static_assert(ASSAY_E4M3 == 3 && ASSAY_E5M2 == 4 && ASSAY_FIELD61 == 64);

assay_status check_target(assay_target target) {
  if (target != ASSAY_TARGET_SIMT && target != ASSAY_TARGET_CUDA)
    return fail(ASSAY_INVALID_ARGUMENT, "target is {}, expected 0 (simt) or 1 (cuda)", target);
  if (!built_with(target))
    return fail(ASSAY_UNSUPPORTED, "target is {}, but this library was built without it",
                target == ASSAY_TARGET_CUDA ? "cuda" : "simt");
  return ASSAY_OK;
}

assay_status check_device_code(assay_target target) {
  const DeviceFacts device = device_facts(target);
  if (device.multiprocessors == 0 || device.runs_code) return ASSAY_OK;
  return fail(ASSAY_UNSUPPORTED,
              "the device has compute capability {}.{}, and this library was compiled for {}",
              device.capability / 10, device.capability % 10, device.code);
}

assay_status check_field(assay_target target, const void *stream) {
  if (target != ASSAY_TARGET_SIMT)
    return fail(ASSAY_UNSUPPORTED, "dtype 64 (field61) exists on target 0 (simt) only");
  if (stream == nullptr)
    return fail(ASSAY_INVALID_ARGUMENT,
                "stream is null; dtype 64 (field61) keeps its numbers in the stream");
  return ASSAY_OK;
}

assay_status check_lse_base(assay_lse_base base) {
  if (base != ASSAY_LSE_BASE_E && base != ASSAY_LSE_BASE_2)
    return fail(ASSAY_INVALID_ARGUMENT, "lse_base is {}, expected 0 (base e) or 1 (base 2)", base);
  return ASSAY_OK;
}

assay_status refuse_range(const ArgumentName &name, int64_t value, int64_t low, int64_t high) {
  return fail(ASSAY_INVALID_ARGUMENT, "{} is {}, expected {} to {}", name, value, low, high);
}

assay_status refuse_pointer(const ArgumentName &name, const void *pointer, uint64_t alignment) {
  if (pointer == nullptr) return fail(ASSAY_INVALID_ARGUMENT, "{} is null", name);
  return fail(ASSAY_INVALID_ARGUMENT, "{} is not aligned to {} bytes", name, alignment);
}

assay_status refuse_room(const ArgumentName &name, const void *pointer, int64_t bytes) {
  return fail(ASSAY_INVALID_ARGUMENT, "{} has {} bytes to the last address, this call needs {}",
              name, UINTPTR_MAX - reinterpret_cast<uintptr_t>(pointer), bytes);
}

assay_status refuse_stride(const ArgumentName &name, int64_t stride) {
  return fail(ASSAY_INVALID_ARGUMENT, "{} is {}, expected a non-negative multiple of {} elements",
              name, stride, kStrideMultiple);
}

assay_status refuse_negative_stride(const ArgumentName &name, int64_t stride) {
  return fail(ASSAY_INVALID_ARGUMENT, "{} is {}, expected >= 0", name, stride);
}

assay_status refuse_output_stride(const char *name, int64_t stride, int64_t count, int64_t width) {
  return fail(ASSAY_INVALID_ARGUMENT,
              "{} is {}, expected at least {}: {} of them would overwrite each other", name, stride,
              width, count);
}

assay_status check_no_alias(const char *output, const void *o, const char *input, const void *i) {
  if (o == i)
    return fail(ASSAY_INVALID_ARGUMENT, "{} aliases {}; this call is not done in place", output,
                input);
  return ASSAY_OK;
}

assay_status check_heads(int32_t num_qo_heads, int32_t num_kv_heads) {
  ASSAY_RETURN_IF_ERROR(check_range("num_qo_heads", num_qo_heads, 1, 1 << 20));
  ASSAY_RETURN_IF_ERROR(check_range("num_kv_heads", num_kv_heads, 1, 1 << 20));
  if (num_qo_heads % num_kv_heads != 0)
    return fail(ASSAY_INVALID_ARGUMENT,
                "num_qo_heads is {}, expected a multiple of num_kv_heads {}", num_qo_heads,
                num_kv_heads);
  return ASSAY_OK;
}

assay_status check_scale(float sm_scale) {
  if (!std::isfinite(sm_scale) || sm_scale <= 0.0f)
    return fail(ASSAY_INVALID_ARGUMENT, "sm_scale is {}, expected finite and > 0", sm_scale);
  return ASSAY_OK;
}

namespace {

/// Checks the stride of a page, a token or a head; kernels keep 64 bits of that of a head.
assay_status check_kv_stride(const ArgumentName &name, int64_t stride, bool of_head) {
  ASSAY_RETURN_IF_ERROR(check_stride(name, stride));
  if (!of_head && stride >= kMaxKvStride)
    return fail(ASSAY_INVALID_ARGUMENT, "{} is {}, expected below 2^31 elements", name, stride);
  return ASSAY_OK;
}

/// Checks the stride of `count` page lists behind `before` other entries; kernels keep 32 bits of
/// an entry's place.
assay_status check_entries(const ArgumentName &name, int64_t stride, int64_t count,
                           int64_t before) {
  if (count > 0 && stride > (kMaxTableEntries - before) / count)
    return fail(ASSAY_INVALID_ARGUMENT,
                "{} is {} for {} lists, expected at most 2^32 entries in all", name, stride, count);
  return ASSAY_OK;
}

} // namespace

assay_status check_cache_sizes(const assay_paged_kv &kv, int level) {
  const auto name = [&](const char *field) { return ArgumentName(level, "kv", field); };
  ASSAY_RETURN_IF_ERROR(check_range(name("rows"), kv.rows, 0, 1 << 24));
  ASSAY_RETURN_IF_ERROR(check_range(name("max_pages"), kv.max_pages, 0, kMaxTokens));
  ASSAY_RETURN_IF_ERROR(check_range(name("page_size"), kv.page_size, 1, kMaxTokens));
  for (const int32_t word : kv.reserved)
    ASSAY_RETURN_IF_ERROR(check_range(name("reserved"), word, 0, 0));
  if (int64_t{kv.max_pages} * kv.page_size > kMaxTokens)
    return fail(ASSAY_INVALID_ARGUMENT, "{} is {} with {} {}, expected at most {} tokens a row",
                name("max_pages"), kv.max_pages, name("page_size"), kv.page_size, kMaxTokens);
  return ASSAY_OK;
}

assay_status check_paged_kv(const assay_paged_kv &kv, int num_kv_heads, int level) {
  const auto name = [&](const char *field) { return ArgumentName(level, "kv", field); };
  ASSAY_RETURN_IF_ERROR(check_cache_sizes(kv, level));
  ASSAY_RETURN_IF_ERROR(check_kv_stride(name("k_stride_page"), kv.k_stride_page, false));
  ASSAY_RETURN_IF_ERROR(check_kv_stride(name("k_stride_token"), kv.k_stride_token, false));
  ASSAY_RETURN_IF_ERROR(check_kv_stride(name("k_stride_head"), kv.k_stride_head, true));
  ASSAY_RETURN_IF_ERROR(check_kv_stride(name("v_stride_page"), kv.v_stride_page, false));
  ASSAY_RETURN_IF_ERROR(check_kv_stride(name("v_stride_token"), kv.v_stride_token, false));
  ASSAY_RETURN_IF_ERROR(check_kv_stride(name("v_stride_head"), kv.v_stride_head, true));
  ASSAY_RETURN_IF_ERROR(
      check_stride_non_negative(name("page_table_stride_head"), kv.page_table_stride_head));
  int64_t entries = INT32_MAX; // of page_indptr
  if (kv.page_indptr == nullptr) {
    if (kv.page_table_stride < kv.max_pages)
      return fail(ASSAY_INVALID_ARGUMENT, "{} is {}, expected at least max_pages {}",
                  name("page_table_stride"), kv.page_table_stride, kv.max_pages);
    ASSAY_RETURN_IF_ERROR(
        check_entries(name("page_table_stride"), kv.page_table_stride, kv.rows, 0));
    entries = kv.rows * kv.page_table_stride;
  }
  ASSAY_RETURN_IF_ERROR(check_entries(name("page_table_stride_head"), kv.page_table_stride_head,
                                      num_kv_heads, entries));
  if (kv.rows == 0) return ASSAY_OK;
  ASSAY_RETURN_IF_ERROR(check_pointer(name("seq_lens"), kv.seq_lens, 4));
  if (kv.max_pages == 0) return ASSAY_OK; // no row can hold a key
  ASSAY_RETURN_IF_ERROR(check_pointer(name("k"), kv.k, 16));
  ASSAY_RETURN_IF_ERROR(check_pointer(name("v"), kv.v, 16));
  if (kv.page_indptr != nullptr)
    ASSAY_RETURN_IF_ERROR(check_pointer(name("page_indptr"), kv.page_indptr, 4));
  return check_pointer(name("page_table"), kv.page_table, 4);
}

} // namespace assay
