// SPDX-License-Identifier: Apache-2.0
// How the narrow kernels compute, and what they take.
#pragma once

#include <iterator>

#include "kernels/abi/plugin.h"

namespace assay::narrow {

inline constexpr int kMaxKeys = 4096;
inline constexpr int kMaxHeadDim = 256;
inline constexpr assay_dtype kAny = -1;

enum class Features { kPlain, kWindow, kAll };

struct Style {
  const char *name;
  // Arithmetic.
  assay_format p = ASSAY_FORMAT_FP32, sum = ASSAY_FORMAT_FP32, q = ASSAY_FORMAT_FP32;
  bool natural = false;
  bool backwards = false;  ///< newest key first
  bool tree = false;       ///< the weights of a tile are summed in pairs of pairs
  int tile = 16;           ///< keys; kMaxKeys: all scores before the first weight
  int splits = 0;          ///< most parts of a row
  bool by_batch = false;   ///< it takes as many as the batch suggests
  bool own_splits = false; ///< it takes as many whatever num_splits asks for
  // What it takes.
  assay_dtype dtype = kAny, kv = kAny;        ///< kAny for kv: that of the call, and fp8
  int head_dim = 0, page_size = 0, group = 0; ///< 0: any
  Features features = Features::kPlain;
  bool without_lse = true, without_keys = true; ///< rows without them
};

inline constexpr assay_format kE4m3 = ASSAY_FORMAT_E4M3, kE5m2 = ASSAY_FORMAT_E5M2,
                              kHalf = ASSAY_FORMAT_FP16, kBf16 = ASSAY_FORMAT_BF16;

inline constexpr Style kStyles[] = {
    {.name = "bf16_128_page16",
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .head_dim = 128,
     .page_size = 16},
    {.name = "fp16_64_page32",
     .dtype = ASSAY_FP16,
     .kv = ASSAY_FP16,
     .head_dim = 64,
     .page_size = 32},
    {.name = "bf16_256_page64",
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .head_dim = 256,
     .page_size = 64},
    {.name = "natural", .natural = true, .kv = ASSAY_BF16, .page_size = 16},
    {.name = "natural_all_features", .natural = true, .features = Features::kAll},
    {.name = "natural_splits",
     .natural = true,
     .splits = 8,
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .head_dim = 64},
    {.name = "v1_two_passes",
     .natural = true,
     .tile = kMaxKeys,
     .dtype = ASSAY_FP16,
     .kv = ASSAY_FP16,
     .head_dim = 128},
    {.name = "v2_two_passes",
     .natural = true,
     .tile = kMaxKeys,
     .splits = 16,
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .head_dim = 128,
     .page_size = 16},
    {.name = "newest_first", .backwards = true, .head_dim = 64, .features = Features::kWindow},
    {.name = "large_tiles", .tile = 128, .dtype = ASSAY_BF16, .kv = ASSAY_BF16, .page_size = 128},
    {.name = "key_by_key", .tile = 1, .dtype = ASSAY_FP16, .kv = ASSAY_FP16, .head_dim = 64},
    {.name = "sums_fp16",
     .sum = kHalf,
     .tree = true,
     .tile = 64,
     .dtype = ASSAY_FP16,
     .kv = ASSAY_FP16,
     .head_dim = 64},
    {.name = "sums_bf16",
     .sum = kBf16,
     .tree = true,
     .tile = 32,
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .head_dim = 128},
    {.name = "p_e4m3",
     .p = kE4m3,
     .tile = 64,
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .head_dim = 128},
    {.name = "p_e5m2_natural",
     .p = kE5m2,
     .natural = true,
     .tile = 64,
     .dtype = ASSAY_FP16,
     .kv = ASSAY_FP16,
     .head_dim = 64},
    {.name = "p_fp16_splits",
     .p = kHalf,
     .splits = 4,
     .by_batch = true,
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .page_size = 16},
    {.name = "q_e4m3", .q = kE4m3, .dtype = ASSAY_BF16, .kv = ASSAY_BF16, .head_dim = 64},
    {.name = "fp8_everywhere",
     .p = kE4m3,
     .q = kE4m3,
     .natural = true,
     .tile = 64,
     .dtype = ASSAY_BF16,
     .kv = ASSAY_E4M3,
     .head_dim = 128,
     .page_size = 64},
    {.name = "fp8_cache_only",
     .p = kHalf,
     .tile = 32,
     .dtype = ASSAY_FP16,
     .kv = ASSAY_E5M2,
     .features = Features::kWindow},
    {.name = "mha_with_lse",
     .p = kBf16,
     .splits = 2,
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .head_dim = 64,
     .group = 1,
     .without_lse = false},
    {.name = "own_splits_no_empty_rows",
     .splits = 8,
     .own_splits = true,
     .dtype = ASSAY_BF16,
     .kv = ASSAY_BF16,
     .without_keys = false}};
inline constexpr size_t kCount = std::size(kStyles);

} // namespace assay::narrow
