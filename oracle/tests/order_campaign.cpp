// SPDX-License-Identifier: Apache-2.0
// Right kernels in orders of every kind, known and unknown, judged with orders that are found by
// themselves: none may be accused. By hand: oracle_order_campaign OUTPUTS SEED.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "oracle/judge/arrays.h"
#include "oracle/judge/order_search.h"
#include "oracle/tests/ordered_call.h"

namespace assay::oracle::test {
namespace {

class Draw {
public:
  explicit Draw(uint64_t seed) : random(seed) {}
  int pick(int limit) { return static_cast<int>(random() % static_cast<uint64_t>(limit)); }
  std::mt19937_64 random;
};

using Kind = std::function<TileOrder(Draw &draw, int length, int tile)>;

/// Tiles of [begin, end) in one split, counted from `begin`.
void append(TileOrder &order, int split, int begin, int end, int tile, bool backwards) {
  const auto first = static_cast<std::ptrdiff_t>(order.size());
  for (int at = begin; at < end; at += tile)
    order.push_back({split, 0, at, std::min(at + tile, end)});
  if (backwards) std::reverse(order.begin() + first, order.end());
}

/// Ranges between sorted cuts, a split each.
TileOrder cut_at(std::vector<int> cuts, int length, int tile, bool backwards, bool one_split) {
  cuts.push_back(0);
  cuts.push_back(length);
  std::sort(cuts.begin(), cuts.end());
  TileOrder order;
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    if (cuts[i] < cuts[i + 1])
      append(order, one_split ? 0 : static_cast<int>(i), cuts[i], cuts[i + 1], tile, backwards);
  return order;
}

const std::vector<std::pair<const char *, Kind>> kKinds = {
    {"a known order",
     [](Draw &d, int n, int tile) {
       return order_of({.tile = tile, .backwards = d.pick(2) != 0, .parts = 1 + d.pick(6)},
                       {n, 0, n});
     }},
    {"odd tiles",
     [](Draw &d, int n, int) {
       const int tile = 16 + d.pick(280);
       return order_of({.tile = tile, .backwards = d.pick(2) != 0, .parts = 1 + d.pick(4)},
                       {n, 0, n});
     }},
    {"uneven splits",
     [](Draw &d, int n, int tile) {
       std::vector<int> cuts;
       for (int i = 1 + d.pick(4); i > 0; --i)
         cuts.push_back(d.pick(n + 1));
       return cut_at(cuts, n, tile, d.pick(2) != 0, false);
     }},
    {"tiles that begin anew",
     [](Draw &d, int n, int tile) {
       return cut_at({d.pick(2) ? n - 1 - d.pick(std::min(n, 4)) : d.pick(n + 1)}, n, tile, false,
                     true);
     }},
    {"tiles counted from the end",
     [](Draw &d, int n, int tile) { return cut_at({n % tile}, n, tile, d.pick(2) != 0, true); }},
    {"a small first tile",
     [](Draw &d, int n, int tile) {
       return cut_at({std::min(n, 1 + d.pick(16))}, n, tile, false, true);
     }},
    {"uneven tiles",
     [](Draw &d, int n, int tile) {
       TileOrder order;
       for (int at = 0; at < n;) {
         const int end = std::min(n, at + tile / 2 + 8 + d.pick(tile));
         order.push_back({0, 0, at, end});
         at = end;
       }
       if (d.pick(2)) std::reverse(order.begin(), order.end());
       return order;
     }},
    {"shuffled tiles",
     [](Draw &d, int n, int tile) {
       TileOrder order = deal_tiles(n, tile, 1, 1);
       std::shuffle(order.begin(), order.end(), d.random);
       return order;
     }},
    {"two tiles exchanged",
     [](Draw &d, int n, int tile) {
       TileOrder order = deal_tiles(n, tile, 1, 1);
       const auto at = static_cast<size_t>(d.pick(static_cast<int>(order.size())));
       std::swap(order[at], order[(at + 1) % order.size()]);
       return order;
     }},
    {"from both ends",
     [](Draw &, int n, int tile) {
       TileOrder order = deal_tiles(n, tile, 1, 1), mixed;
       for (size_t i = 0; i < order.size(); ++i)
         mixed.push_back(i % 2 ? order[order.size() - 1 - i / 2] : order[i / 2]);
       return mixed;
     }},
    {"states",
     [](Draw &d, int n, int tile) { return deal_tiles(n, tile, 1 + d.pick(3), 1 + d.pick(4)); }},
};

/// To what an order belongs in a kernel.
enum class Per { kCall, kLength, kRequest, kKvHead, kSomeRequests, kSomeKvHeads, kCount };
constexpr const char *kPer[] = {"call",    "length",        "request",
                                "kv head", "some requests", "some kv heads"};

struct Tally {
  uint64_t unexplained = 0; ///< pairs outside T1 by the order that they were made in
  uint64_t calls = 0, outputs = 0, found = 0, explained = 0, pairs = 0, accused = 0, outside = 0;
};

OrderedCall draw_call(Draw &d) {
  OrderedCall call;
  call.dtype = d.pick(2) ? ASSAY_BF16 : ASSAY_FP16;
  call.dim = 16 << d.pick(4);
  const int group = 1 << d.pick(4);
  call.kv_heads = std::max(1, 8 / group) << d.pick(2);
  call.heads = call.kv_heads * group;
  call.queries = d.pick(3) ? 1 : 1 + d.pick(4);
  call.lengths.clear();
  const int longest = d.pick(3) ? 40 + d.pick(600) : 20 + d.pick(100);
  for (int i = 1 + d.pick(5); i > 0; --i)
    call.lengths.push_back(std::max(call.queries, d.pick(3) ? longest : 1 + d.pick(longest)));
  call.emulation.tile = 16;
  call.emulation.states = 4;
  if (d.pick(2)) call.emulation.block = 8, call.emulation.fraction_bits = 24;
  call.emulation.noise = static_cast<Noise>(d.pick(5));
  call.emulation.maxima = static_cast<Maxima>(d.pick(4));
  call.emulation.natural = d.pick(2) != 0;
  if (d.pick(4) == 0) call.emulation.sum_format = ASSAY_FORMAT_CALL;
  if (d.pick(4) == 0) call.emulation.partial_format = ASSAY_FORMAT_CALL;
  call.emulation.seed = d.random();
  call.with_lse = d.pick(2) != 0;
  if (d.pick(4) == 0)
    for (int head = 0; head < call.heads; ++head)
      call.sinks.push_back(0.1f * static_cast<float>(d.pick(40) - 20));
  return call;
}

/// One call; its key in the tally.
std::string one_call(uint64_t seed, Tally &tally) {
  Draw d(seed);
  OrderedCall call = draw_call(d);
  const size_t kind = static_cast<size_t>(d.pick(static_cast<int>(kKinds.size())));
  const auto per = static_cast<Per>(d.pick(static_cast<int>(Per::kCount)));
  const int tiles[] = {16, 32, 64, 128};
  const int tile = tiles[d.pick(4)];
  const uint64_t base = d.random();
  call.order = [&, base, kind, per, tile](int request, int head, const ListRange &range) {
    const int kv_head = head / (call.heads / call.kv_heads);
    const auto r = static_cast<uint64_t>(request), h = static_cast<uint64_t>(kv_head);
    uint64_t own = base;
    if (per == Per::kLength) own += static_cast<uint64_t>(range.length);
    if (per == Per::kRequest) own += r;
    if (per == Per::kKvHead) own += 64 * r + h;
    const bool odd = (per == Per::kSomeRequests && request == 1) ||
                     (per == Per::kSomeKvHeads && kv_head == static_cast<int>(base % 8));
    Draw order(own * 0x9e3779b97f4a7c15u);
    if (!odd && (per == Per::kSomeRequests || per == Per::kSomeKvHeads))
      return order_of({.tile = tile, .backwards = base % 2 != 0}, range);
    return kKinds[kind].second(order, range.length, tile);
  };
  call.draw(d.random);
  if (d.pick(4) == 0) // few keys take most of the weight
    for (size_t i = 0; i < call.q.size(); ++i)
      store_element(call.dtype, call.q.data(), static_cast<int64_t>(i),
                    3.0f * load_element(call.dtype, call.q.data(), static_cast<int64_t>(i)));
  call.arithmetic.sum_depth = 320;
  if (d.pick(2)) call.arithmetic.tile_tokens = 2;
  // Weights that are not rounded are as right as those that are.
  const bool exact = d.pick(5) == 0;
  if (exact) {
    call.emulation.p_format = ASSAY_FORMAT_FP32;
    call.emulation.sum_format = ASSAY_FORMAT_FP32;
  }
  call.run();
  const KernelModel model{.arithmetic = call.arithmetic};
  const CallRows rows = rows_of(call.params());
  OrderSearch search(std::get<AttentionRows>(rows), {call.o.data(), nullptr}, model, {});
  for (int row = 0; row < call.rows() && !exact; ++row)
    for (int head = 0; head < call.heads; ++head) {
      const TileOrder order =
          clip_order(call.order(row / call.queries, head, call.range_of(row)), 0, call.end_of(row));
      const PairByOrder pair = search.by_order(row, head, order);
      tally.unexplained += pair.applies && !pair.explained;
    }
  const assay_judge_report report = call.judge(1);
  ++tally.calls;
  tally.outputs += report.claimed;
  tally.found += report.order.state == ASSAY_JUDGE_ORDER_FOUND;
  tally.explained += report.order.explained;
  tally.pairs += report.order.pairs;
  tally.accused += report.order.doubts;
  tally.outside += report.verdict != ASSAY_JUDGE_INSIDE;
  return std::string(kKinds[kind].first) + " per " + kPer[static_cast<size_t>(per)];
}

int campaign(uint64_t outputs, uint64_t seed) {
  std::map<std::string, Tally> tallies;
  uint64_t done = 0, violations = 0;
  while (done < outputs) {
    Tally one;
    const std::string key = one_call(seed, one);
    const uint64_t wrong = one.accused + one.outside + one.unexplained;
    if (wrong > 0)
      printf("VIOLATION: seed %llu: %s: %llu accused, %llu outside T1 by their own order\n",
             static_cast<unsigned long long>(seed), key.c_str(),
             static_cast<unsigned long long>(one.accused),
             static_cast<unsigned long long>(one.unexplained));
    fflush(stdout);
    ++seed;
    done += one.outputs;
    violations += wrong;
    Tally &all = tallies[key];
    all.calls += one.calls, all.found += one.found, all.outputs += one.outputs;
    all.explained += one.explained, all.pairs += one.pairs;
  }
  for (const auto &[key, t] : tallies)
    printf("%s: %llu outputs, an order found in %llu of %llu calls, %.3f of heads explained\n",
           key.c_str(), static_cast<unsigned long long>(t.outputs),
           static_cast<unsigned long long>(t.found), static_cast<unsigned long long>(t.calls),
           static_cast<double>(t.explained) / static_cast<double>(std::max<uint64_t>(t.pairs, 1)));
  printf("%llu outputs, %llu violations\n", static_cast<unsigned long long>(done),
         static_cast<unsigned long long>(violations));
  return violations > 0 ? 1 : 0;
}

} // namespace
} // namespace assay::oracle::test

int main(int argc, char **argv) {
  return assay::oracle::test::campaign(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20000,
                                       argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
}
