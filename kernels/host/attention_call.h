// SPDX-License-Identifier: Apache-2.0
// What the calls of attention kernels have in common: checks of the query side and of a paged
// cache, and their device parameters. The parameter structs of the ABI name the query side alike,
// so one template serves them all.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/common/params.h"
#include "kernels/host/checks.h"
#include "kernels/host/device_info.h"

namespace assay {

/// Query heads of a kv head.
template <class Params>
int32_t gqa_group_size(const Params &p) {
  return p.num_qo_heads / p.num_kv_heads;
}

/// Workspace regions start on 256-byte boundaries (the alignment of a CUDA allocation).
inline int64_t align_up(int64_t bytes) { return (bytes + 255) / 256 * 256; }

inline assay_status check_head_dim(int32_t head_dim) {
  if (head_dim != 64 && head_dim != 128 && head_dim != 256)
    return fail(ASSAY_UNSUPPORTED, "head_dim is {}, supported are 64, 128 and 256", head_dim);
  return ASSAY_OK;
}

/// Shape, types and scale of the query side; looks at no pointer.
template <class Params>
assay_status check_query_shape(const Params &p) {
  if (p.dtype == ASSAY_FIELD61)
    ASSAY_RETURN_IF_ERROR(check_field(p.target, p.stream));
  else if (p.dtype != ASSAY_FP16 && p.dtype != ASSAY_BF16)
    return fail(ASSAY_UNSUPPORTED, "dtype is {}, supported are 0 (fp16) and 1 (bf16)", p.dtype);
  ASSAY_RETURN_IF_ERROR(check_lse_base(p.lse_base));
  ASSAY_RETURN_IF_ERROR(check_range("batch", p.batch, 0, 1 << 24));
  ASSAY_RETURN_IF_ERROR(check_heads(p.num_qo_heads, p.num_kv_heads));
  ASSAY_RETURN_IF_ERROR(check_head_dim(p.head_dim));
  return check_scale(p.sm_scale);
}

/// Pointers and strides of q, o and lse.
template <class Params>
assay_status check_query_tensors(const Params &p) {
  ASSAY_RETURN_IF_ERROR(check_stride("q_stride_batch", p.q_stride_batch));
  ASSAY_RETURN_IF_ERROR(check_stride("q_stride_head", p.q_stride_head));
  ASSAY_RETURN_IF_ERROR(check_stride("out_stride_batch", p.out_stride_batch));
  ASSAY_RETURN_IF_ERROR(check_stride("out_stride_head", p.out_stride_head));
  ASSAY_RETURN_IF_ERROR(check_stride_non_negative("lse_stride_batch", p.lse_stride_batch));
  ASSAY_RETURN_IF_ERROR(check_stride_non_negative("lse_stride_head", p.lse_stride_head));
  if (p.batch == 0) return ASSAY_OK;
  ASSAY_RETURN_IF_ERROR(check_pointer("q", p.q, 16));
  ASSAY_RETURN_IF_ERROR(check_pointer("out", p.out, 16));
  ASSAY_RETURN_IF_ERROR(
      check_output_stride("out_stride_batch", p.out_stride_batch, p.batch, p.head_dim));
  ASSAY_RETURN_IF_ERROR(
      check_output_stride("out_stride_head", p.out_stride_head, p.num_qo_heads, p.head_dim));
  if (p.lse == nullptr) return ASSAY_OK;
  ASSAY_RETURN_IF_ERROR(check_pointer("lse", p.lse, 4));
  ASSAY_RETURN_IF_ERROR(check_output_stride("lse_stride_batch", p.lse_stride_batch, p.batch, 1));
  return check_output_stride("lse_stride_head", p.lse_stride_head, p.num_qo_heads, 1);
}

template <class Params>
AttentionParams attention_params(const Params &p) {
  AttentionParams a{};
  a.q = p.q;
  a.out = p.out;
  a.lse = p.lse;
  a.q_stride_batch = p.q_stride_batch;
  a.q_stride_head = p.q_stride_head;
  a.out_stride_batch = p.out_stride_batch;
  a.out_stride_head = p.out_stride_head;
  a.lse_stride_batch = p.lse_stride_batch;
  a.lse_stride_head = p.lse_stride_head;
  a.scale_log2 = static_cast<float>(p.sm_scale * kLog2E);
  a.lse_unit = p.lse_base == ASSAY_LSE_BASE_2 ? 1.0f : static_cast<float>(kLn2);
  a.batch = p.batch;
  a.num_qo_heads = p.num_qo_heads;
  a.num_kv_heads = p.num_kv_heads;
  a.gqa_group_size = gqa_group_size(p);
  return a;
}

inline PagedKvParams paged_kv_params(const assay_paged_kv &kv, int element_bytes) {
  PagedKvParams p{};
  p.seq_lens = kv.seq_lens;
  p.page_size = FastDivisor::make(kv.page_size);
  p.rows = kv.rows;
  if (kv.max_pages == 0) return p; // no keys: the pools may be null, so no offset is formed
  p.k = kv.k;
  p.v = kv.v;
  p.page_table = kv.page_table;
  const auto bytes = [&](int64_t stride) { return static_cast<uint32_t>(stride * element_bytes); };
  p.k_page_bytes = bytes(kv.k_stride_page);
  p.k_token_bytes = bytes(kv.k_stride_token);
  p.v_page_bytes = bytes(kv.v_stride_page);
  p.v_token_bytes = bytes(kv.v_stride_token);
  p.k_stride_head = kv.k_stride_head;
  p.v_stride_head = kv.v_stride_head;
  // check_paged_kv has held both to 32 bits where they are used: a single row needs no stride.
  p.page_table_stride = static_cast<uint32_t>(kv.page_table_stride);
  p.page_table_stride_head = static_cast<uint32_t>(kv.page_table_stride_head);
  p.page_indptr = kv.page_indptr;
  return p;
}

inline assay_status check_device(const DeviceFacts &device) {
  if (device.multiprocessors == 0) return fail(ASSAY_LAUNCH_FAILED, "no CUDA device answers");
  return ASSAY_OK;
}

/// On success `base` is the workspace; it may be null only when no bytes are needed.
inline assay_status check_workspace(void *workspace, uint64_t bytes, int64_t needed, char *&base) {
  base = static_cast<char *>(workspace);
  if (needed == 0) return ASSAY_OK;
  ASSAY_RETURN_IF_ERROR(check_pointer("workspace", workspace, 16));
  if (bytes < static_cast<uint64_t>(needed))
    return fail(ASSAY_WORKSPACE_TOO_SMALL, "workspace_bytes is {}, this call needs {}", bytes,
                needed);
  return check_room("workspace", workspace, needed);
}

} // namespace assay
