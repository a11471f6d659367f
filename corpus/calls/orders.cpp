// SPDX-License-Identifier: Apache-2.0
#include "corpus/calls/wrong_calls.h"

namespace assay::wrong_calls {
namespace {

/// Where a kernel writes the order of keys that it declares.
struct Order {
  assay_key_tile *tiles;
  int64_t capacity;
  int64_t *first;
};

/// What our kernel of this name declares for a call.
template <class Params>
assay_status order_of(const char *name, const Params &p, const Order &out) {
  return own_kernel(name).key_order(&p, out.tiles, out.capacity, out.first);
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

/// A right kernel that declares what `order` says, which has no captures.
template <class Params, class Declare>
assay_kernel declared(const char *name, const char *right, Declare) {
  assay_kernel kernel = own_kernel(right);
  kernel.name = name;
  kernel.key_order = [](const void *params, assay_key_tile *tiles, int64_t capacity,
                        int64_t *first) -> assay_status {
    return Declare{}(*static_cast<const Params *>(params), Order{tiles, capacity, first});
  };
  return kernel;
}
constexpr auto paged_order = [](const char *name, const char *right, auto order) {
  return declared<assay_paged_params>(name, right, order);
};
constexpr auto cascade_order = [](const char *name, auto order) {
  return declared<assay_cascade_params>(name, "cascade_attention", order);
};

} // namespace

std::vector<assay_kernel> wrong_orders() {
  return {
      paged_order("order_of_other_teams", "paged_attention_v1",
                  [](auto p, const Order &out) {
                    p.even_lengths = 1 - p.even_lengths;
                    return order_of("paged_attention_v1", p, out);
                  }),
      paged_order("order_of_one_split_more", "paged_attention_v2",
                  [](auto p, const Order &out) {
                    if (p.num_splits > 0) ++p.num_splits;
                    return order_of("paged_attention_v2", p, out);
                  }),
      paged_order("order_of_reversed_batch", "paged_attention_v2",
                  [](auto p, const Order &out) {
                    const std::vector<int32_t> lengths(
                        std::make_reverse_iterator(p.kv.seq_lens + p.batch),
                        std::make_reverse_iterator(p.kv.seq_lens));
                    p.kv.seq_lens = lengths.data();
                    const WholeOrder reversed("paged_attention_v2", p);
                    return request_by_request(p.batch, out, [&](int request) {
                      return reversed.of(p.batch - 1 - request);
                    });
                  }),
      paged_order("order_of_requests_alone", "paged_attention_v2",
                  [](auto p, const Order &out) {
                    const int batch = p.batch;
                    p.batch = p.kv.rows = 1;
                    return request_by_request(batch, out, [&](int request) {
                      assay_paged_params alone = p;
                      alone.kv.seq_lens += request;
                      return WholeOrder("paged_attention_v2", alone).of(0);
                    });
                  }),
      paged_order("order_of_nothing_shared", "tree_attention",
                  [](auto p, const Order &out) {
                    p.num_splits = 0;
                    return order_of("paged_attention_v2", p, out);
                  }),
      cascade_order("order_of_whole_segments",
                    [](auto p, const Order &out) {
                      p.num_splits = 1;
                      return order_of("cascade_attention", p, out);
                    }),
      cascade_order("order_of_segments_in_one_more",
                    [](auto p, const Order &out) {
                      if (p.num_splits > 0) ++p.num_splits;
                      return order_of("cascade_attention", p, out);
                    }),
      cascade_order("order_of_single_heads",
                    [](auto p, const Order &out) {
                      p.num_qo_heads = p.num_kv_heads;
                      return order_of("cascade_attention", p, out);
                    }),
  };
}

} // namespace assay::wrong_calls
