// SPDX-License-Identifier: Apache-2.0
#include "corpus/calls/wrong_calls.h"

#include <cstring>
#include <vector>

#include "kernels/abi/plugin.h"

namespace assay::wrong_calls {
namespace {

/// What our kernel of this name declares for a call.
template <class Params>
assay_status order_of(const char *name, const Params &p, const Order &out) {
  const assay_plugin *own = assay_plugin_entry(ASSAY_ABI_MAJOR);
  for (int i = 0; i < own->num_kernels; ++i)
    if (std::strcmp(own->kernels[i].name, name) == 0 && own->kernels[i].target == ASSAY_TARGET_SIMT)
      return own->kernels[i].key_order(&p, out.tiles, out.capacity, out.first);
  return ASSAY_INTERNAL;
}

/// Fills an order request by request: `of` returns the tiles of one.
template <class Of>
assay_status request_by_request(int batch, const Order &out, Of of) {
  int64_t count = 0;
  for (int request = 0; request < batch; ++request) {
    out.first[request] = count;
    for (const assay_key_tile &tile : of(request)) {
      if (count < out.capacity) out.tiles[count] = tile;
      ++count;
    }
  }
  out.first[batch] = count;
  return ASSAY_OK;
}

/// A whole order, however many tiles it has.
struct WholeOrder {
  std::vector<assay_key_tile> tiles;
  std::vector<int64_t> first;

  WholeOrder(const char *name, const assay_paged_params &p)
      : first(static_cast<size_t>(p.batch) + 1) {
    order_of(name, p, {nullptr, 0, first.data()});
    tiles.resize(static_cast<size_t>(first.back()));
    order_of(name, p, {tiles.data(), first.back(), first.data()});
  }
  std::vector<assay_key_tile> of(int request) const {
    return {tiles.begin() + first[request], tiles.begin() + first[request + 1]};
  }
};

} // namespace

assay_status order_of_other_teams(assay_paged_params p, const Order &out) {
  p.even_lengths = 1 - p.even_lengths;
  return order_of("paged_attention_v1", p, out);
}
assay_status order_of_one_split_more(assay_paged_params p, const Order &out) {
  if (p.num_splits > 0) ++p.num_splits;
  return order_of("paged_attention_v2", p, out);
}
assay_status order_of_reversed_batch(assay_paged_params p, const Order &out) {
  const std::vector<int32_t> lengths(std::make_reverse_iterator(p.kv.seq_lens + p.batch),
                                     std::make_reverse_iterator(p.kv.seq_lens));
  p.kv.seq_lens = lengths.data();
  const WholeOrder reversed("paged_attention_v2", p);
  return request_by_request(p.batch, out,
                            [&](int request) { return reversed.of(p.batch - 1 - request); });
}
assay_status order_of_requests_alone(assay_paged_params p, const Order &out) {
  const int batch = p.batch;
  p.batch = p.kv.rows = 1;
  return request_by_request(batch, out, [&](int request) {
    assay_paged_params alone = p;
    alone.kv.seq_lens += request;
    return WholeOrder("paged_attention_v2", alone).of(0);
  });
}
assay_status order_of_nothing_shared(assay_paged_params p, const Order &out) {
  p.num_splits = 0;
  return order_of("paged_attention_v2", p, out);
}
assay_status order_of_whole_segments(assay_cascade_params p, const Order &out) {
  p.num_splits = 1;
  return order_of("cascade_attention", p, out);
}
assay_status order_of_segments_in_one_more(assay_cascade_params p, const Order &out) {
  if (p.num_splits > 0) ++p.num_splits;
  return order_of("cascade_attention", p, out);
}
assay_status order_of_single_heads(assay_cascade_params p, const Order &out) {
  p.num_qo_heads = p.num_kv_heads;
  return order_of("cascade_attention", p, out);
}

} // namespace assay::wrong_calls
