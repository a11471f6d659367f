// SPDX-License-Identifier: Apache-2.0
// What a paged call is told, and what earlier calls left: graphs, plans that are not made again.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "corpus/bugs/bug.h"
#include "corpus/bugs/paged.h"

namespace assay::bugs {
namespace {

/// What the first call with these lengths' address and these shapes had: a captured graph, or a
/// plan that is not made again.
struct FirstCall {
  int batch, window, max_pages;
  std::vector<int32_t> lens, table;
};

/// The scratch of the first call of these shapes, bound once.
void *first_workspace_like(const assay_paged_params &p) {
  static std::map<std::array<int, 7>, void *> bound;
  const std::array<int, 7> key{p.batch,
                               p.num_qo_heads,
                               p.num_kv_heads,
                               p.q_len,
                               p.head_dim,
                               p.num_splits,
                               p.kv.max_pages * p.kv.page_size};
  return bound.try_emplace(key, p.workspace).first->second;
}

const FirstCall &first_call_like(const assay_paged_params &p) {
  using Key = std::tuple<const void *, int, int, int, int, int>;
  static std::map<Key, FirstCall> calls;
  const Key key{p.kv.seq_lens, p.num_qo_heads, p.num_kv_heads, p.q_len, p.head_dim, p.kv.page_size};
  const auto [at, is_new] = calls.try_emplace(key);
  FirstCall &call = at->second;
  if (!is_new) return call;
  call = {p.batch, window_keys(p), p.kv.max_pages, {p.kv.seq_lens, p.kv.seq_lens + p.batch}, {}};
  for (int request = 0; request < p.batch; ++request)
    for (int i = 0; i < p.kv.max_pages; ++i) {
      const bool live = i * p.kv.page_size < p.kv.seq_lens[request];
      call.table.push_back(live ? p.kv.page_table[request * p.kv.page_table_stride + i] : 0);
    }
  return call;
}

/// The call with something of the first one like it.
assay_paged_params with_what_was_kept(assay_paged_params p) {
  const bool keeps = is(Bug::lengths_of_the_first_call) || is(Bug::window_of_the_first_call) ||
                     is(Bug::table_of_the_first_call) || is(Bug::requests_of_the_first_call) ||
                     is(Bug::window_regime_of_the_first_call);
  if (!keeps || p.batch == 0) return p;
  const FirstCall &first = first_call_like(p);
  if (is(Bug::window_of_the_first_call) && window_keys(p) > 0 && first.window > 0)
    p.window_left = first.window - 1;
  // Whether rows are longer than the window was found out when the graph was captured.
  const int longest = *std::max_element(first.lens.begin(), first.lens.end());
  if (is(Bug::window_regime_of_the_first_call) && first.window > 0 && longest <= first.window)
    p.window_left = -1;
  if (is(Bug::requests_of_the_first_call)) p.batch = std::min(p.batch, first.batch);
  if (p.batch > first.batch) return p;
  if (is(Bug::lengths_of_the_first_call)) p.kv.seq_lens = first.lens.data();
  if (is(Bug::table_of_the_first_call) &&
      first.table.size() == static_cast<size_t>(first.batch) * p.kv.max_pages) {
    p.kv.page_table = first.table.data();
    p.kv.page_table_stride = p.kv.max_pages;
  }
  return p;
}

} // namespace

void keep_plan(PagedCall &call) {
  const assay_paged_params &p = *call.p;
  const bool keeps = is(Bug::plan_of_the_first_call) || is(Bug::chunk_count_of_the_first_call);
  if (!keeps) return;
  const FirstCall &first = first_call_like(p);
  if (first.batch != p.batch || first.max_pages != p.kv.max_pages) return;
  if (is(Bug::plan_of_the_first_call)) call.planned = first.lens.data();
  const int longest = *std::max_element(first.lens.begin(), first.lens.end());
  if (is(Bug::chunk_count_of_the_first_call)) call.most_merged = chunks_of(p, {0, longest});
}

assay_paged_params as_told(assay_paged_params p) {
  if (is(Bug::decode_without_window) && p.q_len == 1) p.window_left = -1;
  if (is(Bug::window_one_too_long) && window_keys(p) > 0) ++p.window_left;
  if (is(Bug::workspace_of_the_first_call)) p.workspace = first_workspace_like(p);
  return with_what_was_kept(p);
}

} // namespace assay::bugs
