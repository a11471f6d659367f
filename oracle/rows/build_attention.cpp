// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "oracle/rows/build.h"

namespace assay::oracle {
namespace {

/// Lengths and page tables of a paged cache, read once.
class PageWalk {
public:
  PageWalk(const assay_paged_kv &kv, const Memory &memory)
      : kv_(kv), lengths_(memory.array(kv.seq_lens, size_t(kv.rows))) {
    int32_t longest = 0;
    for (int32_t length : lengths_) {
      if (length < 0 || length > int64_t{kv.max_pages} * kv.page_size)
        throw std::invalid_argument("oracle: seq_lens entry outside its page table");
      longest = std::max(longest, length);
    }
    if (kv.page_table_stride_head != 0)
      throw std::invalid_argument("oracle: a page list for each kv head is not judged");
    if (longest > 0 && kv.page_indptr != nullptr) read_lists(memory);
    // At once: a call of its own for each row costs more than the rows where they lie on a device.
    if (longest > 0 && kv.page_indptr == nullptr)
      table_ = memory.rows(kv.page_table, pages(longest) * sizeof(int32_t),
                           static_cast<size_t>(kv.page_table_stride) * sizeof(int32_t),
                           lengths_.size(), table_copy_);
  }
  PageWalk(PageWalk &&) = default; // the copy stays where it is
  PageWalk(const PageWalk &) = delete;
  PageWalk &operator=(const PageWalk &) = delete;

  int32_t length(int row) const { return lengths_[static_cast<size_t>(row)]; }

  KeyPool pool() const {
    return {
        kv_.k, kv_.v, kv_.k_stride_token, kv_.k_stride_head, kv_.v_stride_token, kv_.v_stride_head};
  }

  /// Appends the keys of `row` behind `position`; only live entries of its table are read.
  void append(int row, int pool, int32_t position, std::vector<KeyRun> &runs) const {
    const int32_t keys = length(row);
    const std::byte *entries = starts_.empty()
                                   ? table_.data + static_cast<size_t>(row) * table_.pitch
                                   : reinterpret_cast<const std::byte *>(
                                         lists_.data() + starts_[static_cast<size_t>(row)]);
    for (size_t i = 0; i < pages(keys); ++i) {
      const auto first = static_cast<int32_t>(i) * kv_.page_size;
      int32_t page;
      std::memcpy(&page, entries + i * sizeof page, sizeof page);
      runs.push_back({position + first, std::min(kv_.page_size, keys - first), pool,
                      int64_t{page} * kv_.k_stride_page, int64_t{page} * kv_.v_stride_page});
    }
  }

private:
  void read_lists(const Memory &memory) {
    starts_ = memory.array(kv_.page_indptr, size_t(kv_.rows) + 1);
    for (size_t row = 0; row < lengths_.size(); ++row)
      if (starts_[row] < 0 ||
          starts_[row + 1] - int64_t{starts_[row]} < static_cast<int64_t>(pages(lengths_[row])))
        throw std::invalid_argument(
            "oracle: a list of page_indptr is shorter than its seq_lens entry");
    lists_ = memory.array(kv_.page_table, static_cast<size_t>(starts_.back()));
  }
  size_t pages(int32_t keys) const {
    return static_cast<size_t>((int64_t{keys} + kv_.page_size - 1) / kv_.page_size);
  }

  const assay_paged_kv &kv_;
  std::vector<int32_t> lengths_, starts_, lists_; ///< the last two of page lists
  std::vector<std::byte> table_copy_;
  Memory::Rows table_{nullptr, 0}; ///< entries of live pages
};

/// Where the query tokens of a paged call lie. Those of a ragged one are found by their number.
class QueryPlaces {
public:
  QueryPlaces(const assay_paged_params &p, const Memory &memory) : q_len_(p.q_len) {
    if (p.qo_indptr == nullptr) return;
    start_ = memory.array(p.qo_indptr, size_t(p.batch) + 1);
    for (int request = 0; request < p.batch; ++request)
      if (start_[0] < 0 || tokens(request) < 0 || tokens(request) > p.q_len)
        throw std::invalid_argument("oracle: qo_indptr is not ascending by 0 to q_len");
  }

  int tokens(int request) const {
    const auto r = static_cast<size_t>(request);
    return start_.empty() ? q_len_ : start_[r + 1] - start_[r];
  }
  int64_t at(int request, int token, int64_t batch_stride, int64_t token_stride) const {
    if (start_.empty()) return request * batch_stride + token * token_stride;
    return (start_[static_cast<size_t>(request)] + int64_t{token}) * token_stride;
  }

private:
  int q_len_;
  std::vector<int32_t> start_; ///< empty: q_len tokens a request
};

/// Which keys a query token sees, of a cache that may be a shard.
class Sight {
public:
  Sight(const assay_paged_params &p, const PageWalk &walk, const Memory &memory)
      : window_(p.window_left + 1), walk_(walk) {
    if (p.dcp_world_size == 0) return;
    if (p.dcp_rank < 0 || p.dcp_rank >= p.dcp_world_size || p.dcp_interleave < 1)
      throw std::invalid_argument("oracle: rank or interleave outside its range");
    shard_ = {p.dcp_world_size, p.dcp_rank, p.dcp_interleave};
    global_ = memory.array(p.global_lens, size_t(p.batch));
    for (int request = 0; request < p.batch; ++request)
      if (tokens(request) < 0 || walk.length(request) != shard_.keys(tokens(request)))
        throw std::invalid_argument("oracle: seq_lens is not what the rank has of global_lens");
  }

  struct Keys {
    int32_t begin, end; ///< indices in the cache
    int32_t behind;     ///< the last of them, behind the query token
  };
  /// The keys of the query token `back` tokens in front of the end of its request.
  Keys of(int request, int back) const {
    const int64_t position = tokens(request) - back;
    if (position < 0) return {0, 0, 0};
    const int64_t oldest = window_ > 0 ? std::max<int64_t>(0, position - window_ + 1) : 0;
    Keys keys{static_cast<int32_t>(shard_.keys(oldest)),
              static_cast<int32_t>(shard_.keys(position + 1)), 0};
    if (keys.begin < keys.end)
      keys.behind = static_cast<int32_t>(shard_.position(keys.end - 1) - position);
    return keys;
  }
  const Shard &shard() const { return shard_; }

private:
  int64_t tokens(int request) const {
    return global_.empty() ? walk_.length(request) : global_[static_cast<size_t>(request)];
  }

  int32_t window_;
  const PageWalk &walk_;
  Shard shard_;
  std::vector<int32_t> global_; ///< empty: the cache has all
};

/// What the parameter structs of attention name alike.
template <class Params>
AttentionRows query_side(const Params &p) {
  if (p.num_kv_heads <= 0 || p.num_qo_heads % p.num_kv_heads != 0)
    throw std::invalid_argument("oracle: num_qo_heads is not a multiple of num_kv_heads");
  AttentionRows rows;
  rows.out.dtype = rows.q_dtype = rows.kv_dtype = p.dtype;
  rows.out.lse_base = p.lse_base;
  rows.out.dims = rows.head_dim = p.head_dim;
  rows.out.heads = p.num_qo_heads;
  rows.out.out_stride_head = p.out_stride_head;
  rows.out.lse_stride_head = p.lse_stride_head;
  rows.sm_scale = p.sm_scale;
  rows.q = p.q;
  rows.q_stride_head = p.q_stride_head;
  rows.num_splits = p.num_splits;
  rows.heads.resize(static_cast<size_t>(p.num_qo_heads));
  for (int head = 0; head < p.num_qo_heads; ++head)
    rows.heads[static_cast<size_t>(head)].kv_head = head / (p.num_qo_heads / p.num_kv_heads);
  rows.first_run.push_back(0);
  return rows;
}

void add_row(AttentionRows &rows, int list, int32_t begin, int32_t end, int64_t q_at, int64_t o_at,
             int64_t lse_at) {
  rows.list.push_back(list);
  rows.begin.push_back(begin);
  rows.end.push_back(end);
  rows.q_at.push_back(q_at);
  rows.out.o_at.push_back(o_at);
  rows.out.lse_at.push_back(lse_at);
}

void close_list(AttentionRows &rows) {
  rows.first_run.push_back(static_cast<int64_t>(rows.runs.size()));
}

/// A value a query head, from an array of `count` of which head h takes `index(h)`.
template <class Index>
void fill_heads(AttentionRows &rows, const Memory &memory, const float *from, size_t count,
                float HeadInput::*field, Index index) {
  if (from == nullptr) return;
  const std::vector<float> values = memory.array(from, count);
  for (size_t head = 0; head < rows.heads.size(); ++head)
    rows.heads[head].*field = values[index(head)];
}

void fill_features(AttentionRows &rows, const assay_paged_params &p, const Memory &memory) {
  const auto own = [](size_t head) { return head; };
  const auto scale = [&](const float *from, int32_t stride, float HeadInput::*field) {
    fill_heads(rows, memory, from, static_cast<size_t>((p.num_kv_heads - 1) * stride + 1), field,
               [&](size_t head) { return static_cast<size_t>(rows.heads[head].kv_head * stride); });
  };
  if (rows.fp8()) {
    scale(p.k_scale, p.k_scale_stride, &HeadInput::k_scale);
    scale(p.v_scale, p.v_scale_stride, &HeadInput::v_scale);
  }
  rows.softcap = p.logits_soft_cap;
  rows.alibi = p.alibi_slopes != nullptr;
  rows.sinks = p.sinks != nullptr;
  fill_heads(rows, memory, p.alibi_slopes, rows.heads.size(), &HeadInput::slope, own);
  fill_heads(rows, memory, p.sinks, rows.heads.size(), &HeadInput::sink, own);
}

/// The segment of a level that serves a request, or -1. Offsets ascend.
int segment_of(const std::vector<int32_t> &indptr, int request) {
  const auto next = std::upper_bound(indptr.begin(), indptr.end(), request);
  return next == indptr.end() ? -1 : static_cast<int>(next - indptr.begin()) - 1;
}

} // namespace

CallRows rows_of(const assay_paged_params &p, const Memory &memory) {
  AttentionRows rows = query_side(p);
  rows.kv_dtype = p.kv_dtype;
  fill_features(rows, p, memory);
  const PageWalk walk(p.kv, memory);
  rows.pools = {walk.pool()};
  const QueryPlaces places(p, memory);
  const Sight sight(p, walk, memory);
  rows.shard = sight.shard();
  rows.level_position.assign(static_cast<size_t>(p.batch), 0);
  for (int request = 0; request < p.batch; ++request) {
    walk.append(request, 0, 0, rows.runs);
    close_list(rows);
    const int tokens = places.tokens(request);
    for (int token = 0; token < tokens; ++token) {
      const Sight::Keys keys = sight.of(request, tokens - token);
      if (p.dcp_world_size > 0) rows.behind.push_back(keys.behind);
      add_row(rows, request, keys.begin, keys.end,
              places.at(request, token, p.q_stride_batch, p.q_stride_token),
              places.at(request, token, p.out_stride_batch, p.out_stride_token),
              places.at(request, token, p.lse_stride_batch, p.lse_stride_token));
    }
  }
  return rows;
}

CallRows rows_of(const assay_cascade_params &p, const Memory &memory) {
  AttentionRows rows = query_side(p);
  rows.levels = p.num_levels;
  std::vector<PageWalk> walks;
  std::vector<std::vector<int32_t>> indptrs;
  for (int l = 0; l < p.num_levels; ++l) {
    walks.emplace_back(p.levels[l].kv, memory);
    rows.pools.push_back(walks.back().pool());
    indptrs.push_back(memory.array(p.levels[l].segment_indptr, size_t(p.levels[l].kv.rows) + 1));
  }
  for (int64_t request = 0; request < p.batch; ++request) {
    int32_t keys = 0;
    for (int l = 0; l < p.num_levels; ++l) {
      const auto level = static_cast<size_t>(l);
      rows.level_position.push_back(keys);
      const int segment = segment_of(indptrs[level], static_cast<int>(request));
      if (segment < 0) continue;
      walks[level].append(segment, l, keys, rows.runs);
      keys += walks[level].length(segment);
    }
    close_list(rows);
    add_row(rows, static_cast<int>(request), 0, keys, request * p.q_stride_batch,
            request * p.out_stride_batch, request * p.lse_stride_batch);
  }
  return rows;
}

} // namespace assay::oracle
