// SPDX-License-Identifier: Apache-2.0
// Where tensors lie: bases of every alignment, heads inside rows and outermost.
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "properties/call/materialise.h"
#include "properties/call/tensors.h"
#include "properties/case/codec.h"
#include "properties/case/problem_gen.h"

namespace assay {
namespace {

constexpr Family kFamilies[] = {Family::kPaged, Family::kCascade, Family::kMergeState,
                                Family::kMergeStates};

/// The power of two, up to 256, that divides an offset.
size_t alignment_of(size_t offset) {
  size_t alignment = 256;
  while (offset % alignment != 0)
    alignment /= 2;
  return alignment;
}

TEST(Layout, BasesHaveEveryPromisedAlignment) {
  std::map<std::string, std::set<size_t>> seen;
  for (uint32_t seed = 0; seed < 200; ++seed)
    for (Family family : kFamilies) {
      Problem p = draw_problem(fuzz_limits(), family, seed);
      p.base_seed = seed;
      for (const Buffer &b : materialise(p).buffers) {
        const size_t alignment = alignment_of(b.offset);
        EXPECT_LT(b.offset, 256u);
        EXPECT_TRUE(seed > 0 || alignment == 256) << b.name;
        seen[b.name].insert(alignment);
      }
    }
  const std::set<size_t> matrices = {16, 32, 64, 128, 256}, arrays = {4, 8, 16, 32, 64, 128, 256};
  for (const char *name : {"q", "k", "v", "out", "o_a", "o_b", "o_in", "k.0", "v.0"})
    EXPECT_EQ(seen.at(name), matrices) << name;
  for (const char *name : {"page_table", "seq_lens", "lse", "lse_a", "lse_in", "segment_indptr.0"})
    EXPECT_EQ(seen.at(name), arrays) << name;
}

// The stride of a lone request may be 0: its last token then ends behind the first of a second one.
TEST(Layout, BuffersForMoreRowsHoldEveryRow) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Problem p = draw_problem(fuzz_limits(), Family::kPaged, seed);
    MaterialiseOptions options;
    options.least_rows = static_cast<int>(seed % 23);
    const Tensors t = materialise(p, options);
    for (const View *view : {&t.q, &t.o})
      for (int row = 0; row < t.rows(); ++row)
        for (int head = 0; head < t.heads(); ++head)
          ASSERT_LE((view->at(row, head, p.head_dim - 1) + 1) * view->size,
                    static_cast<int64_t>(t.buffers[view->buffer].bytes.size()))
              << seed << " row " << row;
  }
}

TEST(Layout, HeadsMayBeOutermost) {
  Problem p = decode_family({}, fuzz_limits(), Family::kPaged);
  p.batch = 3;
  p.seq_lens = {4, 5, 6};
  p.num_kv_heads = 2;
  p.q_len = 2;
  p.v.seed = 1;
  p.q_pad = 1;
  p.q_heads_outermost = p.lse_heads_outermost = true;
  const Tensors t = materialise(p);
  EXPECT_EQ(t.q.token_stride, 72);
  EXPECT_EQ(t.q.row_stride, 2 * 72 + 8);
  EXPECT_EQ(t.q.head_stride, 3 * t.q.row_stride + 8);
  EXPECT_EQ(t.lse.head_stride, 6);
  EXPECT_LT(t.o.head_stride, t.o.token_stride);
  // Elements of different rows and heads lie apart.
  std::set<int64_t> places;
  for (int row = 0; row < 6; ++row)
    for (int head = 0; head < 2; ++head)
      EXPECT_TRUE(places.insert(t.lse.at(row, head)).second);
}

} // namespace
} // namespace assay
