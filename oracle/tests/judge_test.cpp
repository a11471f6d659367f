// SPDX-License-Identifier: Apache-2.0
// Whole calls through the ABI structs: page walk, strides, cascade levels, empty rows, non-finite
// inputs, overflow.
#include <gtest/gtest.h>

#include <numeric>

#include "oracle/exact/dtype.h"
#include "oracle/judge/declared_away.h"
#include "oracle/judge/judge.h"
#include "oracle/rows/build.h"
#include "oracle/tests/campaign.h"
#include "oracle/tests/flat_order.h"

namespace assay::oracle::test {
namespace {

constexpr int kDim = 64, kPage = 16, kKvHeads = 2, kGroup = 3, kPages = 40;

std::vector<uint16_t> pool(int count, assay_dtype dtype, std::mt19937_64 &random) {
  std::normal_distribution<float> normal;
  std::vector<uint16_t> bits(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i)
    store_element(dtype, bits.data(), i, normal(random));
  return bits;
}

// A batch in a paged cache with an HND value pool, an NHD key pool and a shuffled table.
struct Paged {
  assay_dtype dtype = ASSAY_BF16;
  std::vector<int32_t> lengths{100, 0, 1, 33}, table;
  std::vector<uint16_t> q, k, v, o;
  std::vector<float> lse;
  assay_paged_params params = assay_paged_params_init();
  Emulation emulation;
  KernelModel model;

  explicit Paged(uint64_t seed = 1) {
    std::mt19937_64 random(seed);
    const int batch = static_cast<int>(lengths.size()), heads = kKvHeads * kGroup;
    const int columns = 9;
    table.resize(static_cast<size_t>(batch * columns), 1 << 28);
    std::vector<int32_t> pages(kPages);
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), random);
    int next = 0;
    for (int b = 0; b < batch; ++b) {
      for (int p = 0; p * kPage < lengths[static_cast<size_t>(b)]; ++p) {
        table[static_cast<size_t>(b * columns + p)] = pages[static_cast<size_t>(next++)];
      }
    }
    q = pool(batch * heads * kDim, dtype, random);
    k = pool(kPages * kPage * kKvHeads * kDim, dtype, random);
    v = pool(kPages * kPage * kKvHeads * kDim, dtype, random);
    o.assign(q.size(), 0x7FC0);
    lse.assign(static_cast<size_t>(batch * heads), NAN);
    emulation.tile = 16;
    emulation.states = 2;
    assay_paged_params &p = params;
    p.struct_size = sizeof p;
    p.dtype = p.kv_dtype = dtype;
    p.batch = batch;
    p.q_len = 1;
    p.num_qo_heads = heads;
    p.num_kv_heads = kKvHeads;
    p.head_dim = kDim;
    p.sm_scale = 0.125f;
    p.q = q.data();
    p.q_stride_batch = heads * kDim;
    p.q_stride_head = kDim;
    p.out_stride_batch = heads * kDim;
    p.out_stride_head = kDim;
    p.lse_stride_batch = heads;
    p.lse_stride_head = 1;
    p.kv = {k.data(),
            v.data(),
            kPage * kKvHeads * kDim,
            kKvHeads * kDim,
            kDim,
            kPage * kKvHeads * kDim,
            kDim,
            kPage * kDim,
            table.data(),
            lengths.data(),
            columns,
            nullptr,
            0,
            batch,
            columns,
            kPage,
            {}};
    model.arithmetic = declared(emulation);
    model.order = flat_order(batch, [this](int request) { return order_of(request); });
  }
  TileOrder order_of(int request) const {
    return deal_tiles(lengths[static_cast<size_t>(request)], emulation.tile, 2, emulation.states);
  }
  // The emulated kernel has its own page walk.
  KeySet read_keys(int request, int kv_head) const {
    KeySet keys;
    keys.head_dim = kDim;
    for (int t = 0; t < lengths[static_cast<size_t>(request)]; ++t) {
      const int page = table[static_cast<size_t>(request * 9 + t / kPage)];
      for (int i = 0; i < kDim; ++i) {
        const int at = ((page * kPage + t % kPage) * kKvHeads + kv_head) * kDim + i;
        keys.k.push_back(load_element(dtype, k.data(), at));
        const int va = ((page * kKvHeads + kv_head) * kPage + t % kPage) * kDim + i;
        keys.v.push_back(load_element(dtype, v.data(), va));
      }
    }
    return keys;
  }
  void run() {
    const int heads = kKvHeads * kGroup;
    for (int b = 0; b < params.batch; ++b) {
      for (int h = 0; h < heads; ++h) {
        std::vector<float> query(kDim);
        for (int i = 0; i < kDim; ++i)
          query[static_cast<size_t>(i)] = load_element(dtype, q.data(), (b * heads + h) * kDim + i);
        const RowOutput out = emulate_row(query, read_keys(b, h / kGroup), dtype, params.sm_scale,
                                          params.lse_base, order_of(b), emulation);
        for (int i = 0; i < kDim; ++i) {
          store_element(dtype, o.data(), (b * heads + h) * kDim + i, out.o[static_cast<size_t>(i)]);
        }
        lse[static_cast<size_t>(b * heads + h)] = out.lse;
      }
    }
  }
  CallOutputs outputs() const { return {o.data(), lse.data()}; }
  Report check(const CertifySample &certify = {}) const {
    return judge_call(rows_of(params), outputs(), model, certify);
  }
};

TEST(JudgePaged, AcceptsACorrectCall) {
  Paged call;
  call.run();
  Report report = call.check();
  EXPECT_EQ(report.verdict, Verdict::kInside) << reason_text(report.worst.reason);
  EXPECT_EQ(report.elements, 4u * 6u * 65u);
  EXPECT_EQ(report.claimed, report.elements);
  EXPECT_EQ(report.escalated, 0u);
  EXPECT_FALSE(std::isnan(report.worst_ratio_t1));
  call.model.order = nullptr;
  report = call.check();
  EXPECT_EQ(report.verdict, Verdict::kInside);
  EXPECT_TRUE(std::isnan(report.worst_ratio_t1));
}

TEST(JudgePaged, NamesTheWrongElement) {
  Paged call;
  call.run();
  const int at = (3 * 6 + 4) * kDim + 17;
  store_element(call.dtype, call.o.data(), at, load_element(call.dtype, call.o.data(), at) + 0.25f);
  const Report report = call.check();
  EXPECT_EQ(report.verdict, Verdict::kOutside);
  EXPECT_EQ(report.worst.request, 3);
  EXPECT_EQ(report.worst.head, 4);
  EXPECT_EQ(report.worst.dim, 17);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_GT(report.worst.ratio, 1.0);
}

TEST(JudgePaged, UntouchedOutputsAndWrongLseFail) {
  Paged call;
  EXPECT_EQ(call.check().verdict, Verdict::kOutside); // still NaN
  EXPECT_EQ(call.check().findings.size(), 16u);
  call.run();
  call.lse[20] += 1e-3f;
  const Report report = call.check();
  EXPECT_EQ(report.verdict, Verdict::kOutside);
  EXPECT_EQ(report.worst.dim, -1);
  EXPECT_EQ(report.finding_count, 1u);
}

TEST(JudgePaged, EmptyRowsAreExact) {
  Paged call;
  call.run();
  store_element(call.dtype, call.o.data(), 6 * kDim + 5, 1e-30f);
  EXPECT_EQ(call.check().verdict, Verdict::kOutside);
  call.run();
  call.lse[7] = -1e30f;
  EXPECT_EQ(call.check().verdict, Verdict::kOutside);
}

TEST(JudgePaged, WrongPageOrHeadIsCaught) {
  Paged call;
  call.run();
  std::swap(call.table[0], call.table[27]); // requests 0 and 3 swap a page
  EXPECT_EQ(call.check().verdict, Verdict::kOutside);
  Paged heads;
  heads.run();
  std::swap(heads.params.kv.k_stride_head, heads.params.kv.k_stride_token);
  EXPECT_EQ(heads.check().verdict, Verdict::kOutside);
}

TEST(JudgePaged, NonFiniteLiveInputSilencesOnlyItsRows) {
  Paged call;
  call.run();
  // A live value of request 0, kv head 1.
  const int page = call.table[2];
  store_element(call.dtype, call.v.data(), ((page * kKvHeads + 1) * kPage + 3) * kDim, INFINITY);
  for (int i = 0; i < kDim; ++i)
    store_element(call.dtype, call.o.data(), 3 * kDim + i, NAN);
  Report report = call.check();
  EXPECT_EQ(report.verdict, Verdict::kInside);
  EXPECT_EQ(report.no_claim, 3u * 65u);
  store_element(call.dtype, call.o.data(), 18 * kDim, NAN); // request 3 must stay finite
  EXPECT_EQ(call.check().verdict, Verdict::kOutside);
}

// Values at the end of a format leave partials in it without a claim. That is the declaration's
// doing where the output has a wider one.
TEST(DeclaredAway, partials_and_outputs_have_the_range_of_their_format) {
  constexpr int kKeys = 8;
  const auto away = [](assay_dtype dtype, assay_format partials, assay_format outputs) {
    KeySet keys;
    keys.head_dim = kDim;
    keys.k.assign(kKeys * kDim, 0.0f);
    keys.v.assign(kKeys * kDim, 65280.0f);
    keys.finish(dtype);
    const std::vector<float> q(kDim, 0.0f);
    RowProblem problem;
    problem.q = q;
    problem.keys = &keys;
    problem.dtype = dtype;
    problem.arithmetic.exponential = ASSAY_EXP_BASE2;
    problem.arithmetic.tile_tokens = 16;
    problem.arithmetic.partial_format = partials;
    problem.arithmetic.output_format = outputs;
    problem.arithmetic.merge_stages = 1;
    problem.arithmetic.stored_merges = partials != ASSAY_FORMAT_FP32;
    problem.arithmetic.max_splits = 2;
    uint64_t no_claim = 0;
    for (const BudgetTerms &t : attention_row(problem).t0)
      no_claim += t.overflow_possible;
    EXPECT_EQ(no_claim, uint64_t{kDim});
    return declared_away(problem, nullptr, no_claim);
  };
  constexpr assay_format kCall = ASSAY_FORMAT_CALL, kFp16 = ASSAY_FORMAT_FP16;
  EXPECT_EQ(away(ASSAY_FP16, kCall, ASSAY_FORMAT_FP32), 0u);
  EXPECT_EQ(away(ASSAY_BF16, kFp16, ASSAY_FORMAT_FP32), uint64_t{kDim});
  EXPECT_EQ(away(ASSAY_FP16, ASSAY_FORMAT_FP32, kCall), 0u);
  EXPECT_EQ(away(ASSAY_BF16, ASSAY_FORMAT_FP32, kFp16), uint64_t{kDim});
}

TEST(JudgePaged, PoisonInDeadSlotsIsIgnored) {
  Paged call;
  call.run();
  for (int b : {0, 2, 3}) { // the slots past each live tail
    const int length = call.lengths[static_cast<size_t>(b)];
    const int page = call.table[static_cast<size_t>(b * 9 + length / kPage)];
    if (length % kPage == 0) continue;
    for (int slot = length % kPage; slot < kPage; ++slot) {
      const int at = (page * kPage + slot) * kKvHeads * kDim;
      for (int i = 0; i < kKvHeads * kDim; ++i)
        store_element(call.dtype, call.k.data(), at + i, NAN);
    }
  }
  const Report report = call.check();
  EXPECT_EQ(report.verdict, Verdict::kInside);
  EXPECT_EQ(report.no_claim, 0u);
}

TEST(JudgePaged, Fp16MayOverflowOnlyAtTheEdgeAndWithTheRightSign) {
  KeySet keys;
  keys.head_dim = 16;
  keys.k.assign(16 * 40, 0.0f);
  keys.v.assign(16 * 40, 65504.0f);
  for (int j = 0; j < 40; ++j)
    keys.v[static_cast<size_t>(16 * j + 1)] = 60000.0f;
  keys.finish(ASSAY_FP16);
  const std::vector<float> q(16, 1.0f);
  RowProblem problem;
  problem.q = q;
  problem.keys = &keys;
  problem.dtype = ASSAY_FP16;
  problem.arithmetic = declared({});
  const float lse = std::log(40.0f);
  std::vector<float> o(16, 65504.0f);
  o[1] = 60000.0f;
  const RowReference row = attention_row(problem);
  const auto verdict = [&] { return judge_row(problem, row, o.data(), &lse, 0, 0).verdict; };
  EXPECT_EQ(verdict(), Verdict::kInside);
  o[0] = INFINITY; // within the P term of 65504, so a correct kernel may round up to it
  EXPECT_EQ(verdict(), Verdict::kInside);
  o[0] = -INFINITY;
  EXPECT_EQ(verdict(), Verdict::kOutside);
  o[0] = 65504.0f;
  o[1] = INFINITY;
  EXPECT_EQ(verdict(), Verdict::kOutside);
}

TEST(JudgePaged, Fp32RangeIsNotClaimedBeyondItsLimit) {
  KeySet keys;
  keys.head_dim = 16;
  keys.k.assign(16 * 40, 0.0f);
  keys.v.assign(16 * 40, 0x1p126f);
  keys.finish(ASSAY_BF16);
  const std::vector<float> q(16, 1.0f), o(16, INFINITY);
  RowProblem problem;
  problem.q = q;
  problem.keys = &keys;
  problem.arithmetic = declared({});
  const Report report = judge_row(problem, attention_row(problem), o.data(), nullptr, 0, 0);
  EXPECT_EQ(report.verdict, Verdict::kInside);
  EXPECT_EQ(report.no_claim, 16u);
}

TEST(JudgePaged, LogitsBeyondFp32SoftmaxAreNotClaimed) {
  KeySet keys;
  keys.head_dim = 16;
  keys.k.assign(16 * 3, 1.0f);
  keys.v.assign(16 * 3, 1.0f);
  keys.finish(ASSAY_BF16);
  const std::vector<float> o(16, NAN);
  const auto claimed = [&](float size) {
    const std::vector<float> q(16, size);
    RowProblem problem;
    problem.q = q;
    problem.keys = &keys;
    problem.arithmetic = declared({});
    return judge_row(problem, attention_row(problem), o.data(), nullptr, 0, 0).claimed;
  };
  EXPECT_EQ(claimed(0x1p20f), 16u);
  EXPECT_EQ(claimed(0x1p30f), 0u);
  EXPECT_EQ(claimed(0x1p125f), 0u);
}

TEST(JudgeCascade, LevelsAreConcatenated) {
  Paged suffix(3), prefix(4);
  // Requests 0..2 share segment 0 of the prefix pool (100 keys); request 3 is covered by segment 1.
  const std::vector<int32_t> indptr{0, 3, 4}, identity{0, 1, 2, 3, 4};
  prefix.params.kv.rows = 2;
  prefix.lengths[1] = 0;
  const assay_cascade_level levels[] = {{prefix.params.kv, indptr.data(), {}},
                                        {suffix.params.kv, identity.data(), {}}};
  assay_cascade_params params{};
  params.dtype = suffix.dtype;
  params.batch = 4;
  params.num_qo_heads = kKvHeads * kGroup;
  params.num_kv_heads = kKvHeads;
  params.head_dim = kDim;
  params.sm_scale = 0.125f;
  params.num_levels = 2;
  params.q = suffix.params.q;
  params.q_stride_batch = suffix.params.q_stride_batch;
  params.q_stride_head = suffix.params.q_stride_head;
  params.out_stride_batch = suffix.params.out_stride_batch;
  params.out_stride_head = suffix.params.out_stride_head;
  params.lse_stride_batch = 6;
  params.lse_stride_head = 1;
  params.levels = levels;
  const auto rows = [&] { return std::get<AttentionRows>(rows_of(params)); };
  EXPECT_EQ(rows().keys(1), 100);
  EXPECT_EQ(rows().keys(0), 200);
  EXPECT_EQ(rows().keys(3), 33);
  // Tiles of 16 keys that no level shares with the next, each level a split.
  auto order = std::make_shared<KeyOrder>();
  order->first.push_back(0);
  for (int request = 0; request < 4; ++request) {
    const int lengths[] = {request < 3 ? 100 : 0, suffix.lengths[static_cast<size_t>(request)]};
    for (int level : {0, 1})
      for (int begin = 0; begin < lengths[level]; begin += 16)
        order->tiles.push_back({level, 0, 0, begin, std::min(begin + 16, lengths[level]), 1});
    order->first.push_back(static_cast<int64_t>(order->tiles.size()));
  }
  for (int b = 0; b < 4; ++b) {
    for (int h = 0; h < 6; ++h) {
      KeySet keys = b < 3 ? prefix.read_keys(0, h / kGroup) : KeySet{};
      const KeySet own = suffix.read_keys(b, h / kGroup);
      keys.head_dim = kDim;
      keys.k.insert(keys.k.end(), own.k.begin(), own.k.end());
      keys.v.insert(keys.v.end(), own.v.begin(), own.v.end());
      const std::vector<float> query = read_query(rows(), {}, b, h);
      const TileOrder tiles = declared_order(*order, rows(), b);
      const RowOutput out =
          emulate_row(query, keys, suffix.dtype, 0.125f, params.lse_base, tiles, suffix.emulation);
      for (int i = 0; i < kDim; ++i) {
        store_element(suffix.dtype, suffix.o.data(), (b * 6 + h) * kDim + i,
                      out.o[static_cast<size_t>(i)]);
      }
      suffix.lse[static_cast<size_t>(b * 6 + h)] = out.lse;
    }
  }
  KernelModel model{.arithmetic = declared(suffix.emulation)};
  const auto judged = [&] { return judge_call(rows_of(params), suffix.outputs(), model); };
  EXPECT_EQ(judged().verdict, Verdict::kInside);
  model.order = order;
  const Report report = judged();
  EXPECT_EQ(report.verdict, Verdict::kInside);
  EXPECT_FALSE(std::isnan(report.worst_ratio_t1));
  model.order = nullptr;
  prefix.lengths[0] = 99; // one shared key less than the kernel saw
  EXPECT_EQ(judged().verdict, Verdict::kOutside);
}

TEST(JudgePaged, CertifiesTheSampleAndTheFirstFinding) {
  Paged call;
  call.run();
  EXPECT_EQ(call.check().certified_rows, 0u);
  CertifySample sample;
  sample.row = [](int row, int head, size_t keys) { return row == 3 && head == 5 && keys == 33; };
  sample.dims = [](int, int) { return std::vector<int>{0, 9}; };
  EXPECT_EQ(call.check(sample).certified_rows, 1u);
  call.lse[7] = call.lse[20] = 99.0f; // two rows with a finding: one more is certified
  EXPECT_EQ(call.check(sample).certified_rows, 2u);
}

// A declaration with tiles in any order of levels, one of them empty.
assay_status order_of_levels(const void *params, assay_key_tile *tiles, int64_t capacity,
                             int64_t *first) {
  const auto &p = *static_cast<const assay_cascade_params *>(params);
  const assay_key_tile all[] = {{2, 0, 0, 0, 8, 1}, {0, 0, 0, 0, 5, 1}, {2, 1, 0, 8, 9, 2}};
  first[0] = 0;
  first[1] = p.target == ASSAY_TARGET_CUDA ? 3 : -1;
  for (int64_t i = 0; i < std::min<int64_t>(capacity, 3); ++i)
    tiles[i] = all[i];
  return p.batch == 1 ? ASSAY_OK : ASSAY_INVALID_ARGUMENT;
}

TEST(DeclaredOrder, NumbersKeysAndSplitsThroughTheLevels) {
  const std::vector<int32_t> lengths{5, 7, 9}, indptr{0, 1}, nobody{0, 0}, table{0, 1, 2};
  assay_cascade_level levels[3] = {};
  for (int l = 0; l < 3; ++l) {
    levels[l].kv.seq_lens = &lengths[static_cast<size_t>(l)];
    levels[l].kv.page_table = table.data();
    levels[l].kv.rows = 1;
    levels[l].kv.max_pages = levels[l].kv.page_size = 4;
    levels[l].segment_indptr = l == 1 ? nobody.data() : indptr.data();
  }
  assay_cascade_params params{};
  params.batch = params.num_qo_heads = params.num_kv_heads = 1;
  params.num_levels = 3;
  params.levels = levels;
  assay_kernel kernel{};
  kernel.name = "levels";
  kernel.target = ASSAY_TARGET_CUDA; // asked as itself, whatever the parameters say
  kernel.family = ASSAY_FAMILY_CASCADE;
  kernel.key_order = &order_of_levels;
  const auto declared = [&] {
    return declared_order(*ask_key_order(kernel, &params), std::get<AttentionRows>(rows_of(params)),
                          0);
  };
  const TileOrder order = declared();
  ASSERT_EQ(order.size(), 3u);
  EXPECT_EQ(order[0].begin, 5); // level 1 serves nobody
  EXPECT_EQ(order[0].end, 13);
  EXPECT_EQ(order[1].begin, 0);
  EXPECT_EQ(order[2].end, 14);
  EXPECT_EQ(order[2].p_parts, 2);
  EXPECT_NE(order[0].split, order[1].split);
  EXPECT_NE(order[0].split, order[2].split);
  params.num_levels = 2;
  EXPECT_THROW(declared(), std::invalid_argument);
  params.num_levels = 3;
  params.batch = 2; // it refuses
  EXPECT_THROW(ask_key_order(kernel, &params), std::logic_error);
}

// A kernel must count up from 0, and as much the second time as the first.
TEST(DeclaredOrder, NonsensicalCountsAreRefused) {
  static std::vector<int64_t> said;
  static int asked;
  assay_kernel kernel{};
  kernel.key_order = [](const void *, assay_key_tile *, int64_t, int64_t *first) {
    std::copy(said.begin(), said.end(), first);
    first[2] += 1000 * asked++;
    return assay_status{ASSAY_OK};
  };
  assay_paged_params params{};
  params.batch = 2;
  for (const auto &counts : std::vector<std::vector<int64_t>>{
           {1, 1, 1}, {0, 2, 1}, {0, -1, 0}, {0, 0, int64_t{1} << 40}, {0, 0, 2000}}) {
    said = counts;
    asked = 0;
    EXPECT_THROW(ask_key_order(kernel, &params), OrderError) << counts[1] << " " << counts[2];
  }
  said = {0, 1, 3};
  asked = 0;
  EXPECT_EQ(ask_key_order(kernel, &params)->of(1).size(), 2u);
}

// Splits are counted in keys: a kernel that cuts as it likes may cut between any two.
TEST(RowSplits, AsDeclaredOrAtMost) {
  Paged call;
  const auto splits = [&](int row) {
    const CallRows rows = rows_of(call.params);
    return AttentionReader(std::get<AttentionRows>(rows), call.model).splits(row);
  };
  EXPECT_EQ(splits(0), 2);
  call.model.order = nullptr;
  EXPECT_EQ(splits(0), 100);
  EXPECT_EQ(splits(1), 1);
  call.params.num_splits = 7;
  EXPECT_EQ(splits(0), 7);
  EXPECT_EQ(splits(2), 1);
  call.model.arithmetic.max_splits = 3;
  EXPECT_EQ(splits(0), 3);
  call.params.num_splits = 0;
  EXPECT_EQ(splits(0), 3);
  call.model.arithmetic.max_splits = 0;
  EXPECT_EQ(splits(0), 1);
}

TEST(TileOrder, MustVisitEveryKeyOnce) {
  EXPECT_NO_THROW(require_partition(deal_tiles(100, 16, 3, 2), 100));
  EXPECT_THROW(require_partition({{0, 0, 0, 50}, {0, 0, 49, 100}}, 100), std::invalid_argument);
  EXPECT_THROW(require_partition({{0, 0, 0, 50}, {0, 0, 51, 100}}, 100), std::invalid_argument);
  EXPECT_THROW(require_partition({{0, 0, 0, 101}}, 100), std::invalid_argument);
}

TEST(Dtype, RoundTripsAndRounds) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    for (assay_dtype dtype : {ASSAY_FP16, ASSAY_BF16}) {
      uint16_t in = static_cast<uint16_t>(bits), out = 0;
      const float x = load_element(dtype, &in, 0);
      if (std::isnan(x)) continue;
      store_element(dtype, &out, 0, x);
      ASSERT_EQ(in, out) << dtype;
    }
  }
  const Format &half = format_of(ASSAY_FP16);
  EXPECT_EQ(round_to(half, 1.0 + 0x1p-11), 1.0);
  EXPECT_EQ(round_to(half, 1.0 + 0x1.8p-10), 1.0 + 0x1p-9);
  EXPECT_EQ(round_to(half, 65519.9), 65504.0);
  EXPECT_TRUE(std::isinf(round_to(half, 65520.0)));
  EXPECT_EQ(round_to(half, 0x1p-25), 0.0);
  EXPECT_EQ(round_to(half, 0x1.1p-25), 0x1p-24);
  EXPECT_EQ(half_ulp(half, 1.0), 0x1p-11);
  EXPECT_EQ(half_ulp(half, 0.0), 0x1p-25);
}

// A bound that anything satisfies is no claim; what needs no bound stays a finding.
TEST(Verdict, AnInfiniteBoundIsNoClaim) {
  std::mt19937_64 random(5);
  Case c;
  do
    c = draw_case(random, 50);
  while (!attention_row(c.problem(false)).claim || c.row.keys.size() == 0);
  const RowProblem problem = c.problem(false);
  RowReference row = attention_row(problem);
  const RowOutput out = c.run();
  const auto judged = [&](float lse) { return judge_row(problem, row, out.o.data(), &lse, 0, 0); };
  const uint64_t claimed = judged(out.lse).claimed;
  row.lse_budget = INFINITY;
  const Report report = judged(out.lse + 1e30f);
  EXPECT_EQ(report.verdict, Verdict::kInside);
  EXPECT_EQ(report.claimed, claimed - 1);
  EXPECT_EQ(report.no_claim + report.claimed, report.elements);
  EXPECT_EQ(judged(NAN).verdict, Verdict::kOutside);
  EXPECT_EQ(judged(INFINITY).verdict, Verdict::kOutside);
}

} // namespace
} // namespace assay::oracle::test
