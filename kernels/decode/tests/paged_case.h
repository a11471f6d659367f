// SPDX-License-Identifier: Apache-2.0
// A small valid paged call for tests that spoil it.
#pragma once

#include "kernels/abi/plugin.h"

#include <cstdint>

namespace assay {

/// A small valid call; memory is real so that a missing check would run the kernel.
struct PagedCase {
  alignas(16) uint16_t q[4 * 64] = {}, o[4 * 64], k[2 * 16 * 64] = {}, v[2 * 16 * 64] = {};
  float lse[4];
  int32_t table[2] = {0, 1}, lens[1] = {20};
  alignas(16) char workspace[1 << 16];
  assay_paged_params p = assay_paged_params_init();
  PagedCase() {
    p.dtype = p.kv_dtype = ASSAY_BF16;
    p.batch = p.q_len = 1;
    p.num_qo_heads = 4;
    p.num_kv_heads = 1;
    p.head_dim = 64;
    p.sm_scale = 0.125f;
    p.q = q;
    p.out = o;
    p.lse = lse;
    p.q_stride_batch = p.out_stride_batch = 256;
    p.q_stride_head = p.out_stride_head = 64;
    p.lse_stride_batch = 4;
    p.lse_stride_head = 1;
    p.kv.k = k;
    p.kv.v = v;
    p.kv.k_stride_page = p.kv.v_stride_page = 16 * 64;
    p.kv.k_stride_token = p.kv.v_stride_token = 64;
    p.kv.k_stride_head = p.kv.v_stride_head = 64;
    p.kv.page_table = table;
    p.kv.seq_lens = lens;
    p.kv.page_table_stride = 2;
    p.kv.rows = 1;
    p.kv.max_pages = 2;
    p.kv.page_size = 16;
    p.workspace = workspace;
    p.workspace_bytes = sizeof workspace;
    p.num_splits = 3;
  }
};

} // namespace assay
