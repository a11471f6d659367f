// SPDX-License-Identifier: Apache-2.0
// Which share of mistakes the judge of tensors sees as like="fa2", without an order of keys and
// with the one that it finds. oracle_discrimination ROWS writes a table of ten mistakes, four
// lengths and two types as CSV: shares of so many rows, one head each, in which the mistake is.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "oracle/judge/arrays.h"
#include "oracle/judge/judge_entry.h"
#include "oracle/judge/order_search.h"
#include "oracle/tests/ordered_call.h"

namespace assay::oracle::test {
namespace {

constexpr int kTile = 128, kDim = 128;

/** assay/arithmetics/fa2.json. */
assay_arithmetic fa2() {
  assay_arithmetic a{};
  a.mma_block = 8;
  a.mma_fraction_bits = 24;
  a.p_format = ASSAY_FORMAT_CALL;
  a.exponential = ASSAY_EXP_BASE2;
  a.sum_depth = 68;
  a.exp2_rel_error = 0x1p-22;
  a.log2_abs_error = 0x1p-21;
  a.rcp_rel_error = 0x1p-17;
  a.tanh_abs_error = 0x1.004p-11;
  a.tile_tokens = 64;
  a.max_splits = 128;
  a.merge_stages = 1;
  return a;
}

/** Into how many splits FlashAttention-2 cuts one request of 8 kv heads on 108 processors
    (num_splits_heuristic of csrc/flash_attn/flash_api.cpp). */
int fa2_splits(int keys) {
  constexpr double kBlocks = 8, kPlaces = 2 * 108;
  const int tiles = (keys + kTile - 1) / kTile;
  const auto per_split = [&](int splits) { return (tiles + splits - 1) / splits; };
  const auto used = [&](int splits) {
    const double waves = kBlocks * splits / kPlaces;
    return waves / std::ceil(waves);
  };
  const auto eligible = [&](int splits) {
    return splits == 1 || per_split(splits) != per_split(splits - 1);
  };
  double most = 0.0;
  for (int splits = 1; splits <= std::min(tiles, 128); ++splits)
    if (eligible(splits)) most = std::max(most, used(splits));
  for (int splits = 1; splits <= std::min(tiles, 128); ++splits)
    if (eligible(splits) && used(splits) >= 0.85 * most) return splits;
  return 1;
}

struct Named {
  const char *name;
  std::function<Mistake(int keys, std::mt19937_64 &random)> make;
};

int one_of(int keys, std::mt19937_64 &random) {
  return 1 + static_cast<int>(random() % static_cast<uint64_t>(keys - 2));
}

Mistake one_more_key(std::mt19937_64 &random, assay_dtype dtype) {
  const uint64_t seed = random();
  return {.input = [seed, dtype](KeySet &keys, TileOrder &order) {
    std::mt19937_64 own(seed);
    std::normal_distribution<float> normal;
    for (auto *values : {&keys.k, &keys.v})
      for (int i = 0; i < keys.head_dim; ++i)
        values->push_back(static_cast<float>(round_to(format_of(dtype), normal(own))));
    const auto last = std::max_element(order.begin(), order.end(),
                                       [](auto &a, auto &b) { return a.end < b.end; });
    ++last->end;
  }};
}

std::vector<Named> mistakes(assay_dtype dtype) {
  const auto mutant = [](Mutant m) {
    return [m](int, std::mt19937_64 &) { return Mistake{.mutant = m}; };
  };
  return {
      {"one key lost",
       [](int n, auto &random) { return Mistake{.input = lost(one_of(n, random), 1)}; }},
      {"last 16 keys lost", [](int n, auto &) { return Mistake{.input = lost(n - 16, 16)}; }},
      {"one key past the end", [=](int, auto &random) { return one_more_key(random, dtype); }},
      {"K row of a neighbour",
       [](int n, auto &random) { return Mistake{.input = neighbour(one_of(n, random), true)}; }},
      {"V row of a neighbour",
       [](int n, auto &random) { return Mistake{.input = neighbour(one_of(n, random))}; }},
      {"output times 1.002", [](int, auto &) { return Mistake{.factor = 1.002f}; }},
      {"softmax scale times 1.002", [](int, auto &) { return Mistake{.scale = 1.002f}; }},
      {"P of one tile kept to 4 bits", mutant(Mutant::kTilePFourBits)},
      {"row sum misses a lane in one tile", mutant(Mutant::kSumMissesLane)},
      {"output truncated", mutant(Mutant::kOutputTruncated)},
  };
}

struct Share {
  int rows = 0, without = 0, with = 0;
};

OrderedCall right_call(int keys, assay_dtype dtype, std::mt19937_64 &random) {
  OrderedCall call;
  call.dim = kDim;
  call.dtype = dtype;
  call.lengths = {keys};
  call.emulation = {.block = 8, .fraction_bits = 24, .tile = kTile};
  call.emulation.seed = random();
  const OrderRule rule{.tile = kTile, .backwards = true, .parts = fa2_splits(keys)};
  call.order = [rule](int, int, const ListRange &range) { return order_of(rule, range); };
  call.draw(random);
  call.arithmetic = fa2();
  call.run();
  return call;
}

/// Every mistake in every head of one call, one at a time: the others are right and know the order.
void add_call(int keys, assay_dtype dtype, uint64_t seed, std::map<std::string, Share> &shares) {
  std::mt19937_64 random(seed);
  OrderedCall call = right_call(keys, dtype, random);
  const CallRows rows = rows_of(call.params());
  const CallOutputs outputs{call.o.data(), nullptr};
  const KernelModel model{.arithmetic = call.arithmetic};
  OrderSearch search(std::get<AttentionRows>(rows), outputs, model, {});
  const RowByOrder right = search.by_search(0);
  const bool known = right.rule && right.explained() == call.heads;
  for (const Named &mistake : mistakes(dtype))
    for (int head = 0; head < call.heads; ++head) {
      const std::vector<uint16_t> before = call.o;
      call.run_head(0, head, mistake.make(keys, random));
      const bool without = judge_one(rows, outputs, model, 0, head).verdict == Verdict::kOutside;
      const auto by_order = [&] {
        const TileOrder order = order_of(*right.rule, search.range_of(0));
        return !search.by_order(0, head, order).explained &&
               !search.any_explains(0, head, *right.rule);
      };
      Share &share = shares[mistake.name];
      ++share.rows;
      share.without += without ? 1 : 0;
      share.with += without || (known && by_order()) ? 1 : 0;
      std::copy(before.begin(), before.end(), call.o.begin());
    }
}

void table(int rows) {
  printf("mistake,keys,type,rows,without,with\n");
  for (assay_dtype dtype : {ASSAY_BF16, ASSAY_FP16})
    for (int keys : {256, 1024, 4096, 8192}) {
      std::map<std::string, Share> shares;
      std::mutex guard;
      on_threads(static_cast<size_t>((rows + 7) / 8), 0, [&](size_t task) {
        std::map<std::string, Share> own;
        add_call(keys, dtype, task * 977 + static_cast<uint64_t>(keys), own);
        const std::lock_guard lock(guard);
        for (const auto &[name, share] : own) {
          shares[name].rows += share.rows;
          shares[name].without += share.without;
          shares[name].with += share.with;
        }
      });
      for (const Named &mistake : mistakes(dtype)) {
        const Share &share = shares[mistake.name];
        const double all = std::max(share.rows, 1);
        printf("%s,%d,%s,%d,%.3f,%.3f\n", mistake.name, keys, dtype == ASSAY_BF16 ? "bf16" : "fp16",
               share.rows, share.without / all, share.with / all);
      }
      fflush(stdout);
    }
}

} // namespace
} // namespace assay::oracle::test

int main(int argc, char **argv) {
  assay::oracle::test::table(argc > 1 ? std::atoi(argv[1]) : 100);
  return 0;
}
