// SPDX-License-Identifier: Apache-2.0
#include "kernels/decode/tests/dense_call.h"

namespace assay {
namespace {

// 8 requests share a prefix of 512 keys and own suffixes of 64 (the flash-decoding lab's example):
// every prefix row of K is read once, not once per request. Saved: exactly 7 x 512 rows per head.
/// A prefix of all requests and a suffix of each, in pages that flat attention reads too.
template <int kBatch, int kPrefix>
void check_shared_prefix(const simt::Schedule &schedule, int num_splits) {
  constexpr int kSuffix = 64, kPage = 16, kD = 64, kKvHeads = 2;
  constexpr int kPages = (kPrefix + kSuffix) / kPage;
  Call call(
      {kBatch, kKvHeads, 2, kD, kPage, kPages, 0, std::vector<int>(kBatch, kPrefix + kSuffix)}, 3);
  // Every request's first pages are request 0's.
  for (int b = 1; b < kBatch; ++b)
    for (int page = 0; page < kPrefix / kPage; ++page)
      call.table[b * kPages + page] = call.table[page];
  auto *prefix_len = call.allocate<int32_t>(1, simt::Access::kReadOnly, "prefix_len");
  auto *suffix_lens = call.allocate<int32_t>(kBatch, simt::Access::kReadOnly, "suffix_lens");
  auto *prefix_indptr = call.allocate<int32_t>(2, simt::Access::kReadOnly, "prefix_indptr");
  auto *suffix_indptr =
      call.allocate<int32_t>(kBatch + 1, simt::Access::kReadOnly, "suffix_indptr");
  prefix_len[0] = kPrefix;
  prefix_indptr[0] = 0;
  prefix_indptr[1] = kBatch;
  for (int b = 0; b <= kBatch; ++b)
    suffix_indptr[b] = b;
  for (int b = 0; b < kBatch; ++b)
    suffix_lens[b] = kSuffix;
  assay_cascade_level levels[2] = {{call.p.kv, prefix_indptr, {}}, {call.p.kv, suffix_indptr, {}}};
  levels[0].kv.rows = 1;
  levels[0].kv.max_pages = kPrefix / kPage;
  levels[0].kv.seq_lens = prefix_len;
  levels[1].kv.max_pages = kSuffix / kPage;
  levels[1].kv.page_table += kPrefix / kPage;
  levels[1].kv.seq_lens = suffix_lens;
  assay_cascade_params p = {};
  p.struct_size = sizeof p;
  p.dtype = ASSAY_BF16;
  p.batch = kBatch;
  p.num_qo_heads = call.p.num_qo_heads;
  p.num_kv_heads = kKvHeads;
  p.head_dim = kD;
  p.sm_scale = call.p.sm_scale;
  p.num_levels = 2;
  p.num_splits = num_splits;
  p.q = call.q;
  p.q_stride_batch = call.p.q_stride_batch;
  p.q_stride_head = kD;
  p.out = call.o;
  p.out_stride_batch = call.p.out_stride_batch;
  p.out_stride_head = kD;
  p.lse = call.lse;
  p.lse_stride_batch = call.p.lse_stride_batch;
  p.lse_stride_head = 1;
  p.levels = levels;
  p.stream = &call.stream;
  uint64_t bytes = 0;
  ASSERT_EQ(assay_cascade_attention_workspace_size(&p, &bytes), ASSAY_OK) << assay_last_error();
  p.workspace = call.allocate<char>(bytes, simt::Access::kReadWrite, "workspace");
  p.workspace_bytes = bytes;

  const auto key_rows_per_head = [&] {
    const uint64_t read = call.stream.memory.info(call.stream.memory.id_of(call.k)).bytes_read;
    return read / (kD * sizeof(uint16_t)) / kKvHeads;
  };
  ASSERT_EQ(assay_paged_attention_v1(&call.p), ASSAY_OK) << assay_last_error();
  const uint64_t flat = key_rows_per_head();
  EXPECT_EQ(flat, uint64_t{kBatch} * (kPrefix + kSuffix)) << "v1 reads each key row once";
  call.stream.memory.reset_counters();
  call.stream.schedule = schedule;
  call.stream.memory.mark_undefined(call.o, kBatch * call.p.num_qo_heads * kD * 2);
  ASSERT_EQ(assay_cascade_attention(&p), ASSAY_OK) << assay_last_error();
  call.expect_dense("cascade");
  EXPECT_EQ(flat - key_rows_per_head(), uint64_t{kBatch - 1} * kPrefix);
}

TEST(CascadeDense, reads_a_shared_prefix_once) { check_shared_prefix<8, 512>({}, 0); }

/// 64 rows: warpgroups. Eight tiles of 128 keys a block go round the ring of their slots, whatever
/// runs first and whenever copies and products land.
TEST(CascadeDense, tiles_go_round_the_ring_of_slots) {
  for (const simt::Order order :
       {simt::Order::kAscending, simt::Order::kDescending, simt::Order::kSeeded})
    for (const auto copies : {simt::CopyCompletion::kAtWait, simt::CopyCompletion::kAtIssue,
                              simt::CopyCompletion::kSeeded})
      check_shared_prefix<32, 944>({order, copies, 5}, 1);
}

} // namespace
} // namespace assay
