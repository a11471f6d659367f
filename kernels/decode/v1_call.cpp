// SPDX-License-Identifier: Apache-2.0
#include "kernels/decode/v1_call.h"

#include "kernels/host/checks.h"

#include <algorithm>

namespace assay {
namespace {

int tile_warps(const assay_paged_params &p, const PagedShape &s) {
  return v1_tile_warps(s.batch * s.head_tiles, p.even_lengths != 0, s.head_dim, s.kv_bytes,
                       s.device.multiprocessors);
}

} // namespace

assay_status PagedV1::build(const assay_paged_params *p, PagedV1Call &call) {
  ASSAY_RETURN_IF_ERROR(build_paged_call(p, call.paged));
  const PagedShape &s = call.paged.shape;
  call.empty = call.paged.empty;
  call.head_tiles = s.batch * s.head_tiles;
  call.tile_warps = tile_warps(*p, s);
  const DecodePolicy policy = decode_policy(s.head_dim, s.kv_bytes, s.row_tiles, kDecodeWarps);
  const int64_t slots = int64_t{s.device.multiprocessors} * policy.min_blocks;
  call.blocks =
      std::min(v1_blocks(call.head_tiles, call.tile_warps, slots, p->enable_pdl != 0), kMaxGrid);
  return ASSAY_OK;
}

assay_status PagedV1::key_order(const void *params, assay_key_tile *tiles, int64_t capacity,
                                int64_t *first) {
  const auto &p = *static_cast<const assay_paged_params *>(params);
  const PagedShape s = paged_shape(p);
  const int warps = tile_warps(p, s);
  PagedKeyOrder order(s, kDecodeWarps, tiles, capacity, first);
  for (int32_t request = 0; request < p.batch; ++request, order.end_request()) {
    const int32_t len = p.kv.seq_lens[request];
    order.add({warps, 0, first_planned(len, s.span), len});
  }
  return set_ok();
}

} // namespace assay
