// SPDX-License-Identifier: Apache-2.0
// First light of every decode kernel on the executor: against a plain double-precision softmax at a
// loose 2 %, enough to see a wiring mistake next to the code that made it. The verdicts that count
// are the oracle's (properties/).
#include "kernels/decode/tests/dense_call.h"

namespace assay {
namespace {

const Decode kCases[] = {
    {1, 1, 1, 64, 16, 1, 0, {16}},
    {1, 1, 1, 128, 16, 8, 0, {100}},
    {2, 2, 4, 64, 16, 10, 0, {130, 0}},
    {3, 1, 8, 128, 1, 70, 3, {70, 1, 33}},
    {1, 2, 7, 64, 64, 4, 7, {255}},
    {2, 1, 16, 64, 16, 6, 0, {80, 17}},
    {1, 1, 24, 64, 5, 20, 2, {97}},
    {3, 2, 2, 64, 16, 20, 100, {5, 0, 320}},
    // Many splits of every slot size: a lane of the merge has 4, 8 or 16 of its vectors.
    {1, 1, 7, 128, 16, 12, 40, {190}},
    {1, 1, 13, 128, 16, 9, 21, {140}},
    {1, 2, 5, 256, 16, 5, 18, {77}},
    // Half of the rows at most: two splits are merged at a time (not with head_dim 256), the last
    // one may have no pair.
    {1, 1, 4, 128, 16, 12, 40, {190}},
    {1, 2, 3, 64, 16, 9, 21, {140}},
    {1, 1, 21, 64, 5, 20, 11, {97}},
    {1, 1, 4, 256, 16, 5, 18, {77}},
};

TEST(DecodeDense, v1_and_v2_on_the_executor) {
  for (const Decode &c : kCases) {
    for (int version : {1, 2}) {
      Call call(c, 7);
      const assay_status status =
          version == 1 ? assay_paged_attention_v1(&call.p) : assay_paged_attention_v2(&call.p);
      ASSERT_EQ(status, ASSAY_OK) << assay_last_error();
      call.expect_dense(version == 1 ? "v1" : "v2");
    }
  }
}

// Weights of 1 leave nothing to a second part, and zero times infinity is no number. The oracle
// makes no claim about infinite values.
TEST(DecodeDense, an_infinite_value_makes_its_component_infinite_and_no_other) {
  for (int group : {1, 4, 7})
    for (int splits : {0, 3})
      for (int version : {1, 2}) {
        Call call({1, 1, group, 64, 16, 12, splits, {190}}, 5);
        for (int i = 0; i < group * 64; ++i)
          call.q[i] = 0;
        call.v[call.kv_index(0, 77, 0) + 3] = to_bf16(INFINITY);
        const assay_status status =
            version == 1 ? assay_paged_attention_v1(&call.p) : assay_paged_attention_v2(&call.p);
        ASSERT_EQ(status, ASSAY_OK) << assay_last_error();
        for (int i = 0; i < group * 64; ++i) {
          const float o = from_bf16(call.o[i]);
          EXPECT_TRUE(i % 64 == 3 ? o == INFINITY : std::isfinite(o))
              << "v" << version << " group " << group << " splits " << splits << " element " << i
              << ": " << o;
        }
      }
}

// Weights are relative to the largest LSE of all splits, wherever it is: relative to a smaller one,
// 2^200 overflows.
TEST(DecodeDense, the_last_of_many_splits_outweighs_the_rest) {
  Call call({1, 1, 1, 64, 16, 12, 40, {190}}, 13);
  for (int i = 0; i < call.c.d; ++i)
    call.k[call.kv_index(0, 189, 0) + i] = to_bf16(18.0f * from_bf16(call.q[i]));
  ASSERT_EQ(assay_paged_attention_v2(&call.p), ASSAY_OK) << assay_last_error();
  call.expect_dense("v2");
  EXPECT_GT(call.lse[0], 100.0f);
}

// One plan serves every layer of a decode step: the same buffer twice, then with other lengths (a
// graph replay re-plans, nothing else changes). The split counters are back at 0 after every call.
TEST(DecodeDense, a_plan_is_reused_and_replanned) {
  Call call({3, 2, 4, 64, 16, 30, 0, {470, 0, 33}}, 11);
  ASSERT_EQ(assay_paged_attention_v2_plan_size(&call.p, &call.p.plan_bytes), ASSAY_OK)
      << assay_last_error();
  char *plan = call.allocate<char>(call.p.plan_bytes, simt::Access::kReadWrite, "plan");
  call.p.plan = plan;
  for (const std::vector<int> &lens : {std::vector<int>{470, 0, 33}, {1, 480, 300}}) {
    call.c.lens = lens;
    for (int b = 0; b < 3; ++b)
      call.seq_lens[b] = lens[b];
    ASSERT_EQ(assay_paged_attention_v2_plan(&call.p), ASSAY_OK) << assay_last_error();
    const std::vector<char> planned(plan, plan + call.p.plan_bytes);
    for (int layer = 0; layer < 2; ++layer) {
      call.stream.memory.mark_undefined(call.o, size_t{3} * call.p.num_qo_heads * 64 * 2);
      ASSERT_EQ(assay_paged_attention_v2(&call.p), ASSAY_OK) << assay_last_error();
      call.expect_dense("v2 with a plan");
      EXPECT_EQ(std::memcmp(plan, planned.data(), planned.size()), 0) << "layer " << layer;
    }
  }
}

} // namespace
} // namespace assay
