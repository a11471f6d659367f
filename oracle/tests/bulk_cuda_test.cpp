// SPDX-License-Identifier: Apache-2.0
// The GPU's enclosures and budgets against the host's, element by element, and mistakes of one
// element that only a whole judgement sees.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "oracle/bulk/bulk.h"
#include "oracle/exact/dtype.h"
#include "oracle/judge/judge.h"
#include "oracle/rows/build.h"

namespace assay::oracle {
namespace {

/// Memory that host and device reach.
class Shared {
public:
  Shared() = default;
  Shared(const Shared &) = delete;
  Shared &operator=(const Shared &) = delete;
  ~Shared() {
    for (void *p : all_)
      cudaFree(p);
  }
  template <class T>
  T *make(size_t count) {
    void *p = nullptr;
    if (cudaMallocManaged(&p, std::max<size_t>(count * sizeof(T), 16)) != cudaSuccess)
      throw std::runtime_error("managed memory");
    all_.push_back(p);
    return static_cast<T *>(p);
  }

private:
  std::vector<void *> all_;
};

struct Options {
  assay_dtype dtype = ASSAY_BF16, kv_dtype = ASSAY_BF16;
  int head_dim = 128, group = 4, kv_heads = 2, q_len = 1, page = 16;
  std::vector<int> lengths = {300, 0, 1, 64, 129};
  int window = 0;
  float softcap = 0.0f, size = 1.0f;
  bool alibi = false, sinks = false, scales = false, specials = false, base2 = false;
  int64_t tile = 0; ///< of a declared order; 0: none
};

assay_arithmetic arithmetic_of(const Options &o) {
  assay_arithmetic a{};
  a.mma_block = 8;
  a.mma_fraction_bits = 24;
  a.p_format = ASSAY_FORMAT_CALL;
  a.exp2_rel_error = 0x1p-22f;
  a.log2_abs_error = 0x1p-22f;
  a.q_abs_error = 0x1p-39;
  a.rcp_rel_error = 0x1p-23f;
  a.tanh_abs_error = 0x1p-20f;
  a.sum_depth = 32;
  a.tile_tokens = 64;
  a.max_parallel_states = 4;
  a.max_splits = 8;
  a.merge_stages = 1;
  a.exponential = o.base2 ? ASSAY_EXP_NATURAL : ASSAY_EXP_BASE2;
  return a;
}

/// A call with random contents. Outputs are the exact ones, rounded.
class RandomCall {
public:
  RandomCall(const Options &o, unsigned seed) : options(o), random_(seed) {
    const int batch = static_cast<int>(o.lengths.size()), heads = o.group * o.kv_heads;
    const int longest = *std::max_element(o.lengths.begin(), o.lengths.end());
    const int columns = (longest + o.page - 1) / o.page + 1, pages = batch * columns;
    assay_paged_params &p = params;
    p.struct_size = sizeof p;
    p.dtype = o.dtype;
    p.kv_dtype = o.kv_dtype;
    p.lse_base = o.base2 ? ASSAY_LSE_BASE2 : ASSAY_LSE_NATURAL;
    p.batch = p.kv.rows = batch;
    p.q_len = o.q_len;
    p.num_qo_heads = heads;
    p.num_kv_heads = o.kv_heads;
    p.head_dim = o.head_dim;
    p.sm_scale = 1.0f / std::sqrt(static_cast<float>(o.head_dim));
    p.logits_softcap = o.softcap;
    p.window = o.window;
    const int64_t d = o.head_dim, row = heads * d;
    p.q_stride_head = p.o_stride_head = d;
    p.q_stride_token = p.o_stride_token = row;
    p.q_stride_batch = p.o_stride_batch = row * o.q_len;
    p.lse_stride_head = 1;
    p.lse_stride_token = heads;
    p.lse_stride_batch = heads * o.q_len;
    const size_t outputs = static_cast<size_t>(batch * o.q_len * row);
    p.q = elements(o.dtype, outputs, o.size);
    p.o = memory_.make<unsigned char>(outputs * 2);
    p.lse = memory_.make<float>(outputs / static_cast<size_t>(d));
    assay_paged_kv &kv = p.kv;
    kv.page_size = o.page;
    kv.max_pages = columns;
    kv.page_table_stride = columns;
    kv.k_stride_head = kv.v_stride_head = d;
    kv.k_stride_token = kv.v_stride_token = d * o.kv_heads;
    kv.k_stride_page = kv.v_stride_page = d * o.kv_heads * o.page;
    const auto cache = static_cast<size_t>(pages * kv.k_stride_page);
    kv.k = elements(o.kv_dtype, cache, o.size);
    kv.v = elements(o.kv_dtype, cache, 1.0f);
    auto *table = memory_.make<int32_t>(static_cast<size_t>(pages));
    for (int i = 0; i < pages; ++i)
      table[i] = i;
    std::shuffle(table, table + pages, random_);
    kv.page_table = table;
    auto *lengths = memory_.make<int32_t>(o.lengths.size());
    std::copy(o.lengths.begin(), o.lengths.end(), lengths);
    kv.seq_lens = lengths;
    if (o.alibi) p.alibi_slopes = floats(heads, 0.01f, 0.3f);
    if (o.sinks) {
      float *sinks = floats(heads, -2.0f, 4.0f);
      sinks[0] = -INFINITY;
      p.sinks = sinks;
    }
    if (o.scales) {
      p.k_scale = floats(o.kv_heads, 0.3f, 2.0f);
      p.v_scale = floats(o.kv_heads, 0.3f, 2.0f);
      p.k_scale_stride = p.v_scale_stride = 1;
    }
    rows = std::get<AttentionRows>(rows_of(params));
    model.arithmetic = arithmetic_of(o);
    fill();
  }

  CallOutputs outputs() const { return {params.o, params.lse}; }
  void *o_of(int row, int head, int dim) {
    return static_cast<unsigned char *>(params.o) +
           2 * (rows.out.o_at[static_cast<size_t>(row)] + head * rows.out.o_stride_head + dim);
  }
  float *lse_of(int row, int head) {
    return params.lse + rows.out.lse_at[static_cast<size_t>(row)] + head;
  }

  Options options;
  assay_paged_params params{};
  AttentionRows rows;
  KernelModel model;

private:
  void *elements(assay_dtype dtype, size_t count, float size) {
    auto *to = memory_.make<unsigned char>(count * static_cast<size_t>(element_size(dtype)));
    std::normal_distribution<float> normal(0.0f, size);
    for (size_t i = 0; i < count; ++i) {
      float x = normal(random_);
      if (options.specials && random_() % 50 == 0)
        x = random_() % 2 ? 0x1p-15f * static_cast<float>(random_() % 2) : x * 40.0f;
      if (options.specials && random_() % 4000 == 0) x = INFINITY;
      const double rounded = round_to(format_of(dtype), x);
      store_element(dtype, to, static_cast<int64_t>(i),
                    static_cast<float>(is_fp8(dtype) && std::isinf(rounded) ? 0.0 : rounded));
    }
    return to;
  }
  float *floats(int count, float low, float high) {
    auto *to = memory_.make<float>(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i)
      to[i] = std::uniform_real_distribution<float>(low, high)(random_);
    return to;
  }
  void fill() {
    AttentionReader reader(rows, model);
    for (int row = 0; row < rows.out.rows(); ++row)
      for (int head = 0; head < rows.out.heads; ++head) {
        const RowReference exact = attention_row(reader.problem(row, head));
        for (int dim = 0; dim < rows.out.dims; ++dim)
          store_element(rows.out.dtype, o_of(row, head, dim), 0,
                        static_cast<float>(round_to(format_of(rows.out.dtype),
                                                    exact.o[static_cast<size_t>(dim)].mid)));
        *lse_of(row, head) =
            exact.empty && !exact.sunken ? -INFINITY : static_cast<float>(exact.lse.mid);
      }
  }

  std::mt19937 random_;
  Shared memory_;
};

struct Compared {
  uint64_t elements = 0, claims_apart = 0, disjoint = 0;
  double least = INFINITY, most = 0.0; ///< budget of the device over the host's
  double least_radius = INFINITY;
};

void compare(const BulkElement &device, bool claim, const Enclosure &exact, double bound,
             Compared &out) {
  ++out.elements;
  const bool has = !std::isnan(device.bound);
  if (has != claim) {
    ++out.claims_apart;
    return;
  }
  if (!claim || !std::isfinite(bound) || !std::isfinite(device.bound)) return;
  if (!(std::fabs(device.mid - exact.mid) <= device.rad + exact.rad)) ++out.disjoint;
  if (exact.rad > 0.0) out.least_radius = std::min(out.least_radius, device.rad / exact.rad);
  out.least = std::min(out.least, device.bound / bound);
  out.most = std::max(out.most, device.bound / bound);
}

Compared compare(RandomCall &call, const std::vector<BulkElement> &elements) {
  Compared out;
  AttentionReader reader(call.rows, call.model);
  const auto dims = static_cast<size_t>(call.rows.out.dims);
  for (int row = 0; row < call.rows.out.rows(); ++row)
    for (int head = 0; head < call.rows.out.heads; ++head) {
      const RowReference exact = attention_row(reader.problem(row, head));
      if (exact.empty) continue;
      const BulkElement *device =
          &elements[static_cast<size_t>(row * call.rows.out.heads + head) * (dims + 1)];
      for (size_t i = 0; i < dims; ++i)
        compare(device[i], exact.claim && !exact.t0[i].overflow_possible, exact.o[i],
                exact.t0[i].total, out);
      compare(device[dims], exact.claim, exact.lse, exact.lse_budget, out);
    }
  return out;
}

Options random_options(std::mt19937 &random) {
  const auto among = [&](std::initializer_list<int> values) {
    return *(values.begin() + random() % values.size());
  };
  Options o;
  o.dtype = among({ASSAY_BF16, ASSAY_FP16});
  o.kv_dtype = random() % 3 ? o.dtype : among({ASSAY_E4M3, ASSAY_E5M2});
  o.head_dim = among({64, 128, 256, 96, 40});
  o.group = among({1, 2, 4, 5, 8});
  o.kv_heads = among({1, 2, 3});
  o.q_len = among({1, 1, 2, 4});
  o.page = among({1, 7, 16, 128});
  o.lengths.clear();
  for (int i = 0; i < 4; ++i)
    o.lengths.push_back(among({0, 1, 3, 63, 64, 65, 200, 513, 700, 1100}));
  o.lengths.push_back(10);
  o.window = among({0, 0, 1, 50, 128});
  o.softcap = among({0, 0, 0, 30});
  o.size = static_cast<float>(among({1, 1, 3, 12}));
  o.alibi = random() % 4 == 0;
  o.sinks = random() % 4 == 0;
  o.scales = is_fp8(o.kv_dtype) && random() % 2;
  o.specials = random() % 3 == 0;
  o.base2 = random() % 2;
  return o;
}

class Bulk : public testing::Test {
protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU";
  }
  BulkJudge judge_;
};

TEST_F(Bulk, SaysWhatTheHostSays) {
  std::mt19937 random(7);
  Compared all;
  for (int i = 0; i < 120; ++i) {
    const Options options = random_options(random);
    RandomCall call(options, random());
    ASSERT_EQ(bulk_refuses(call.rows, call.model), "");
    std::vector<BulkElement> elements;
    const BulkReport report =
        judge_.judge(call.rows, call.outputs(), call.model, nullptr, &elements);
    const Compared one = compare(call, elements);
    EXPECT_EQ(one.claims_apart, 0u) << "call " << i;
    EXPECT_EQ(one.disjoint, 0u) << "call " << i;
    EXPECT_LE(one.most, 1.001) << "call " << i;
    EXPECT_GE(one.least, 1.0 - 1e-6) << "call " << i;
    EXPECT_GE(one.least_radius, 1.0 - 1e-6) << "call " << i;
    const auto outputs = static_cast<uint64_t>(call.rows.out.rows()) *
                         static_cast<uint64_t>(call.rows.out.heads * (call.rows.out.dims + 1));
    EXPECT_EQ(report.elements, outputs);
    EXPECT_EQ(report.claimed + report.no_claim, outputs);
    all.elements += one.elements;
    all.least = std::min(all.least, one.least);
    all.most = std::max(all.most, one.most);
  }
  RecordProperty("elements", std::to_string(all.elements));
  std::printf("%llu elements, budgets %.9f to %.9f of the host's\n",
              static_cast<unsigned long long>(all.elements), all.least, all.most);
}

TEST_F(Bulk, NamesTheOneRowThatIsWrong) {
  Options options;
  options.lengths = {300, 700, 64, 129};
  RandomCall call(options, 3);
  const auto open = [&] { return judge_.judge(call.rows, call.outputs(), call.model).open; };
  ASSERT_TRUE(open().empty());
  auto *o = static_cast<uint16_t *>(call.o_of(2, 5, 77));
  const uint16_t right = *o;
  for (const uint16_t wrong :
       {uint16_t(right + 4), uint16_t(right ^ 0x8000), uint16_t(0x7FC0), uint16_t(0x7F80)}) {
    *o = wrong;
    const std::vector<RowHead> rows = open();
    ASSERT_EQ(rows.size(), 1u) << wrong;
    EXPECT_EQ(rows[0].row, 2);
    EXPECT_EQ(rows[0].head, 5);
    EXPECT_EQ(judge_one(call.rows, call.outputs(), call.model, 2, 5).verdict, Verdict::kOutside);
  }
  *o = right;
  float *lse = call.lse_of(1, 3);
  *lse *= 1.442695f;
  ASSERT_EQ(open().size(), 1u);
  EXPECT_EQ(open()[0].head, 3);
}

} // namespace
} // namespace assay::oracle
