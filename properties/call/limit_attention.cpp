// SPDX-License-Identifier: Apache-2.0
#include "properties/call/limit_attention.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay {
namespace {

constexpr int64_t kMaxKvStride = (int64_t{1} << 31) - 16; // a multiple of 16, below 2^31

/// The largest n of 1 .. high for which `fits`, which holds up to some n.
template <class Fits>
int64_t largest(int64_t high, Fits fits) {
  int64_t low = 1;
  while (low < high) {
    const int64_t mid = high - (high - low) / 2;
    if (fits(mid))
      low = mid;
    else
      high = mid - 1;
  }
  return low;
}

/// Heads of a paged call or a cascade, and outputs that do not overlap, however many there are.
template <class Params>
void set_heads(Params &p, int64_t kv_heads, int64_t group, int64_t tokens) {
  p.num_qo_heads = int32(kv_heads * group);
  p.num_kv_heads = int32(kv_heads);
  p.out_stride_head = p.head_dim;
  p.out_stride_batch = tokens * p.num_qo_heads * p.head_dim;
  p.lse_stride_head = 1;
  p.lse_stride_batch = tokens * p.num_qo_heads;
}

/// Leaves the page table of so many rows at most 2^32 entries.
void fit_table(assay_paged_kv &kv) {
  const int64_t most = (int64_t{1} << 32) / std::max(kv.rows, 1);
  kv.max_pages = int32(std::min<int64_t>(kv.max_pages, most));
  kv.page_table_stride = std::min(kv.page_table_stride, most);
}

/// Limits of a cache that no other size of the call matters to. `kv` finds it: levels move.
/// `fewer_requests` leaves so few that their page tables have at most 2^32 entries.
template <class Find, class Fewer>
void cache_limits(const OversizedCall &call, const std::string &name, Find kv,
                  Fewer fewer_requests) {
  const auto pages = [&](int32_t max_pages, int32_t page_size) {
    const std::string what =
        fmt::format("{} has {} pages of {} tokens", name, max_pages, page_size);
    call.ask(true, "pages", what, [&] {
      fewer_requests();
      kv().max_pages = max_pages;
      kv().page_size = page_size;
      kv().page_table_stride = max_pages;
    });
  };
  pages(1, kMaxTokens);
  pages(kMaxTokens, 1);
  pages(1 << 15, 1 << 15);
  call.ask(true, "strides", name + " has strides of pages and tokens of 2^31 - 16", [&] {
    kv().k_stride_page = kv().k_stride_token = kMaxKvStride;
    kv().v_stride_page = kv().v_stride_token = kMaxKvStride;
  });
  call.ask(true, "strides of heads", name + " has strides of heads of 2^40",
           [&] { kv().k_stride_head = kv().v_stride_head = int64_t{1} << 40; });
}

class PagedLimits {
public:
  PagedLimits(AbiParams &params, const CallTraits &traits, const AskLimit &ask)
      : p_(params.paged), traits_(traits), call_(params, ask) {}

  /// 2^31 - 1 is a prime beyond every factor: no call has so many blocks, but one fewer or more.
  void all() const {
    ask(true, 6'487'866, 331, 1, 0); // 2^31 - 2 blocks
    ask(false, kMaxRows, 128, 1, 0); // 2^31
    most_requests(127, 1, 0);
    most_requests(kMaxHeads, 1, 0);
    most_requests(1, kMaxHeads, 0);
    most_requests(1000, 16, 0);
    most_requests(1000, 17, 0); // one row more than a head tile has
    if (traits_.fixed_splits) {
      ask(true, 42'966, 151, 1, 331);
      ask(false, kMaxRows, 2, 1, 64);
      most_requests(1, 1, 1 << 16);
      most_requests(31, 33, 1000);
    } else if (traits_.splits) {
      call_.ask(true, "num_splits", "num_splits is 65536", [&] { p_.num_splits = 1 << 16; });
    }
    call_.ask(true, "window_left", "window_left is 2^30 - 1",
              [&] { p_.window_left = kMaxTokens - 1; });
    if (traits_.plans) {
      ask_for_plan(true, 1 << 10, 1); // 2^34 tokens
      ask_for_plan(false, kMaxTokens, 1);
      ask_for_plan(false, kMaxTokens, 4); // 2^32 tokens a request
    }
    cache_limits(
        call_, "kv", [&]() -> assay_paged_kv & { return p_.kv; },
        [&] { p_.batch = p_.kv.rows = std::min(p_.batch, 4); });
  }

private:
  /// Head tiles of a request: 16 query rows of a kv head, 8 with head_dim 256.
  int64_t head_tiles(int64_t kv_heads, int64_t group) const {
    const int64_t rows = p_.head_dim == 256 ? 8 : 16;
    return kv_heads * ((p_.q_len * group + rows - 1) / rows);
  }

  void ask(bool allowed, int64_t batch, int64_t kv_heads, int64_t group, int64_t splits) const {
    const std::string what =
        fmt::format("batch {}, num_qo_heads {}, num_kv_heads {}, q_len {}, num_splits {}", batch,
                    kv_heads * group, kv_heads, p_.q_len, splits);
    call_.ask(allowed, "blocks", what, [&] {
      p_.batch = p_.kv.rows = int32(batch);
      fit_table(p_.kv);
      p_.num_splits = int32(splits);
      set_heads(p_, kv_heads, group, p_.q_len);
      p_.out_stride_token = int64_t{p_.num_qo_heads} * p_.head_dim;
      p_.lse_stride_token = p_.num_qo_heads;
    });
  }

  /// The plan of as many requests as there can be.
  void ask_for_plan(bool allowed, int32_t max_pages, int32_t page_size) const {
    const std::string what =
        fmt::format("batch {} of {} pages of {} tokens", kMaxRows, max_pages, page_size);
    call_.ask_for_plan(allowed, "tokens of a plan", what, [&] {
      p_.batch = p_.kv.rows = int32(kMaxRows);
      p_.num_splits = 0;
      p_.kv.max_pages = max_pages;
      p_.kv.page_size = page_size;
      set_heads(p_, 1, 1, p_.q_len);
    });
  }

  /// The largest batch of such requests, and one more.
  void most_requests(int64_t kv_heads, int64_t group, int64_t splits) const {
    const int64_t blocks = head_tiles(kv_heads, group) * std::max<int64_t>(splits, 1);
    const int64_t batch = std::min(kMaxBlocks / blocks, kMaxRows);
    ask(true, batch, kv_heads, group, splits);
    if (batch < kMaxRows) ask(false, batch + 1, kv_heads, group, splits);
  }

  assay_paged_params &p_;
  const CallTraits &traits_;
  const OversizedCall call_;
};

/// A cascade of one level, or of two of which the first has one segment.
struct CascadeSizes {
  int64_t batch, kv_heads, group, splits, segments;
  bool two_levels = false;

  /// Rows of the segments of a level share blocks of so many rows.
  int64_t blocks(int64_t rows) const {
    const auto places = [&](int64_t n) {
      const int64_t past = batch * group - n;
      return n + (past >= 0 ? past / rows : -((rows - 1 - past) / rows));
    };
    return (places(segments) + (two_levels ? places(1) : 0)) * kv_heads * splits;
  }
};

class CascadeLimits {
public:
  CascadeLimits(AbiParams &params, const CallTraits &traits, const AskLimit &ask)
      : params_(params), traits_(traits), call_(params, ask),
        rows_(params.cascade.head_dim == 256 ? 32 : 64) {}

  void all() const {
    most_segments({(rows_ << 11) - 1, 1, kMaxHeads, 1, 0}); // 2^31 - 1 blocks
    most_segments({(rows_ << 10) - 1, 1, kMaxHeads, 1, 0, true});
    if (traits_.splits) {
      most_requests({0, 2, 1, 1 << 12, 1});
      most_requests({0, 3, 16, 1 << 12, 5});
      most_requests({0, 96, 8, 7, 2, true});
    }
    ask(true, {1, kMaxHeads, 1, 1, 1});
    ask(true, {kMaxRows, 1, 1, 1, kMaxRows});
    // Chosen splits: all that may be chosen fit, or none do.
    ask(true, {255, 1, kMaxHeads, 0, 1});
    ask(false, {1 << 18, 1, kMaxHeads, 0, 1});
    const std::string what = fmt::format("num_levels is {}", ASSAY_MAX_CASCADE_LEVELS);
    call_.ask(true, "num_levels", what, [&] {
      params_.levels.assign(ASSAY_MAX_CASCADE_LEVELS, assay_cascade_level(params_.levels[0]));
      use_levels();
    });
    cache_limits(
        call_, "levels[0].kv", [&]() -> assay_paged_kv & { return params_.levels[0].kv; },
        [&] { params_.levels[0].kv.rows = std::min(params_.levels[0].kv.rows, 4); });
  }

private:
  void ask(bool allowed, const CascadeSizes &s) const {
    const std::string what = fmt::format(
        "batch {}, num_qo_heads {}, num_kv_heads {}, num_splits {}, {}a level of {} segments",
        s.batch, s.kv_heads * s.group, s.kv_heads, s.splits,
        s.two_levels ? "a level of one segment, " : "", s.segments);
    call_.ask(allowed, "blocks", what, [&] {
      params_.cascade.batch = int32(s.batch);
      params_.cascade.num_splits = int32(s.splits);
      set_heads(params_.cascade, s.kv_heads, s.group, 1);
      params_.levels.assign(s.two_levels ? 2 : 1, assay_cascade_level(params_.levels[0]));
      params_.levels.front().kv.rows = 1;
      params_.levels.back().kv.rows = int32(s.segments);
      for (assay_cascade_level &level : params_.levels)
        fit_table(level.kv);
      use_levels();
    });
  }
  void use_levels() const {
    params_.cascade.levels = params_.levels.data();
    params_.cascade.num_levels = static_cast<int32_t>(params_.levels.size());
  }

  /// Asks for as many segments as fit, and for one more.
  void most_segments(CascadeSizes s) const { limit(s, s.segments); }
  void most_requests(CascadeSizes s) const { limit(s, s.batch); }
  /// Sets `size`, a field of `s`, to the largest value that the ABI allows and asks for that call;
  /// then asks for one more, which must be refused.
  void limit(CascadeSizes &s, int64_t &size) const {
    size = largest(kMaxRows, [&](int64_t n) {
      size = n;
      return s.blocks(rows_) <= kMaxBlocks;
    });
    ask(true, s);
    ++size;
    ask(false, s);
  }

  AbiParams &params_;
  const CallTraits &traits_;
  const OversizedCall call_;
  const int64_t rows_; ///< rows of a block
};

} // namespace

void paged_limits(AbiParams &params, const CallTraits &traits, const AskLimit &ask) {
  PagedLimits(params, traits, ask).all();
}

void cascade_limits(AbiParams &params, const CallTraits &traits, const AskLimit &ask) {
  CascadeLimits(params, traits, ask).all();
}

} // namespace assay
