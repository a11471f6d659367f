// SPDX-License-Identifier: Apache-2.0
// What the calls of both paged kernels have in common: arguments checked and turned into device
// parameters. Nothing here touches a device.
#pragma once

#include "kernels/abi/plugin.h"
#include "kernels/blocks/decode_params.h"
#include "kernels/blocks/paged_shape.h"
#include "kernels/host/arithmetic.h"
#include "kernels/host/key_tiles.h"

namespace assay {

struct PagedCall {
  PagedShape shape;
  DecodeParams attention;
  PagedKvParams kv;
  FeatureParams features;
  bool empty; // nothing to launch
};

assay_status build_paged_call(const assay_paged_params *params, PagedCall &call);

/// Checks sizes, strides and pointers of the cache.
assay_status check_cache(const assay_paged_params &params, const PagedShape &shape);

/// The keys [begin, end) of split `split` in a team of warps: warp w takes tiles w, w + warps, ...
/// of the range.
struct TeamRange {
  int warps;
  int32_t split, begin, end;
};

/// Declares the key order of a kernel with `block_warps` warps in a block.
class PagedKeyOrder {
public:
  PagedKeyOrder(const PagedShape &shape, int block_warps, assay_key_tile *tiles, int64_t capacity,
                int64_t *first);
  void add(const TeamRange &range);
  /// Keys that another kernel computes, `tile` at a time, with weights that are rounded once.
  void add_shared(int32_t split, int32_t begin, int32_t end, int32_t tile);
  void end_request() { writer_.end_request(); }

private:
  KeyTileWriter writer_;
  int32_t tile_;
};

/// Tiles have 16, 32 or 64 keys (decode_policy): the deepest sum and the smallest tile bound all.
constexpr assay_arithmetic paged_arithmetic(int warps, int max_splits) {
  return tensor_core_arithmetic(decode_policy(128, 2, 1, kDecodeWarps).tile,
                                decode_policy(64, 1, 1, kDecodeWarps).tile, warps, max_splits);
}

} // namespace assay
