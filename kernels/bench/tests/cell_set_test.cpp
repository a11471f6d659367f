// SPDX-License-Identifier: Apache-2.0
// Cascade and merge cells: what they read and compute, where it lies, and their files.
#include "kernels/bench/cells/cells_file.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/bench/cells/cascade_layout.h"
#include "kernels/bench/cells/merge_layout.h"

namespace assay::bench {
namespace {

using Json = nlohmann::json;

CascadeCell cascade_cell(const std::string &name) {
  for (const CascadeCell &cell : standard_cascade_cells())
    if (cell.name == name) return cell;
  throw std::logic_error("no cell " + name);
}
MergeCell merge_cell(const std::string &name) {
  for (const MergeCell &cell : standard_merge_cells())
    if (cell.name == name) return cell;
  throw std::logic_error("no cell " + name);
}

TEST(CellSet, OnlySelectsByName) {
  const CellSet all = standard_cell_set();
  EXPECT_EQ(select_cells(all, "").size(), all.size());
  EXPECT_EQ(all.size(), all.decode.size() + all.cascade.size() + all.merge.size());
  for (const Cell &cell : select_cells(all, "page").decode)
    EXPECT_NE(cell.name.find("page"), std::string::npos);
  EXPECT_EQ(select_cells(all, "cascade").cascade.size(), 16u);
  EXPECT_EQ(select_cells(all, "cascade").size(), 16u);
  EXPECT_EQ(select_cells(all, "prefix").size(), 9u);
  EXPECT_EQ(select_cells(all, "tree").size(), 4u);
  EXPECT_EQ(select_cells(all, "merge").size(), 10u);
  EXPECT_EQ(select_cells(all, "merge_states ").size(), 6u);
  EXPECT_EQ(select_cells(all, "nothing").size(), 0u);
}

TEST(CellSet, NamesAreUnique) {
  std::set<std::string> names;
  const CellSet all = standard_cell_set();
  const auto insert = [&](const auto &cells) {
    for (const auto &cell : cells)
      EXPECT_TRUE(names.insert(cell.name).second) << cell.name;
  };
  insert(all.decode);
  insert(all.cascade);
  insert(all.merge);
}

// 8 kv heads of 128 with K and V in bf16: 4 KB a token.
TEST(CascadeCells, BytesAreOfEverySegmentOnce) {
  EXPECT_EQ(kv_bytes(cascade_cell("prefix b512 p2048")), 2048u * 4096);
  EXPECT_EQ(kv_bytes(cascade_cell("cascade b16 p8192 u128")), (8192u + 16 * 128) * 4096);
  EXPECT_EQ(kv_bytes(cascade_cell("tree d3 f4")), (2048u + 4 * 512 + 16 * 512 + 64 * 128) * 4096);
  EXPECT_EQ(kv_bytes(cascade_cell("tree d3 f16")), (2048u + 16 * 512 + 256 * 128) * 4096);
  EXPECT_EQ(kv_bytes(cascade_cell("groups 32x8 p4096")), (32u * 4096 + 256 * 128) * 4096);
  EXPECT_EQ(kv_bytes(cascade_cell("beams b128 p2048")), (2048u + 128 * 64) * 4096);
}

// 4 * query rows * keys * head_dim; the published figures of the prefix passes follow from it.
TEST(CascadeCells, FlopsAreOfEveryRequestsKeys) {
  EXPECT_EQ(flops(cascade_cell("prefix b256 p32768")), 4ull * 256 * 32 * 32768 * 128);
  EXPECT_NEAR(flops(cascade_cell("prefix b256 p32768")) / 379.6e-6 * 1e-12, 362, 0.5);
  EXPECT_NEAR(flops(cascade_cell("prefix b512 p2048")) / 30.8e-6 * 1e-12, 557, 1.0);
  EXPECT_EQ(flops(cascade_cell("cascade b16 p8192 u128")), 4ull * 16 * 32 * (8192 + 128) * 128);
  EXPECT_EQ(flops(cascade_cell("tree d3 f4")), 4ull * 64 * 32 * (2048 + 512 + 512 + 128) * 128);
}

/// Never read.
const void *some_pool() { return reinterpret_cast<const void *>(uintptr_t{256}); }

TEST(CascadeLayout, EveryPageOnceAndEveryRequestOnEveryLevel) {
  for (const CascadeCell &cell : standard_cascade_cells()) {
    const CascadeLayout layout(cell, 3);
    EXPECT_EQ(layout.pool_bytes(), 3 * kv_bytes(cell)) << cell.name;
    std::vector<int32_t> pages;
    for (int set = 0; set < 3; ++set)
      for (const assay_cascade_level &level :
           layout.levels(set, some_pool(), layout.integers().data())) {
        const assay_paged_kv &kv = level.kv;
        EXPECT_EQ(level.segment_indptr[0], 0);
        EXPECT_EQ(level.segment_indptr[kv.rows], cell.batch);
        for (int s = 0; s < kv.rows; ++s) {
          EXPECT_EQ(level.segment_indptr[s + 1] - level.segment_indptr[s], cell.batch / kv.rows);
          EXPECT_EQ(kv.seq_lens[s], kv.max_pages * kv.page_size);
          const int32_t *row = kv.page_table + s * kv.page_table_stride;
          pages.insert(pages.end(), row, row + kv.max_pages);
        }
      }
    EXPECT_FALSE(std::is_sorted(pages.begin(), pages.end())) << "as after some serving";
    const size_t per_set = pages.size() / 3; // the sets one after the other in the pool
    for (int set = 0; set < 3; ++set)
      std::sort(pages.begin() + set * per_set, pages.begin() + (set + 1) * per_set);
    std::vector<int32_t> all(pages.size());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(pages, all) << cell.name;
  }
}

TEST(CascadeLayout, LastPagesMayBePartlyFilled) {
  const CascadeLayout layout({"", 4, 8, 2, 64, 16, {{1, 33}, {2, 16}}, KvDtype::kBf16}, 1);
  const auto levels = layout.levels(0, some_pool(), layout.integers().data());
  EXPECT_EQ(levels[0].kv.max_pages, 3);
  EXPECT_EQ(levels[0].kv.seq_lens[0], 33);
  EXPECT_EQ(levels[1].kv.max_pages, 1);
  EXPECT_EQ(layout.pool_bytes(), 2u * 5 * 16 * 2 * 64 * 2);
}

TEST(MergeCells, BytesAreOfEveryState) {
  const MergeCell pairs = merge_cell("merge_state 1024x2"),
                  many = merge_cell("merge_states 4x1024");
  EXPECT_EQ(written_bytes(pairs), 1024u * 32 * (128 * 2 + 4));
  EXPECT_EQ(read_bytes(pairs), 2 * written_bytes(pairs));
  EXPECT_EQ(read_bytes(many), 4u * 1024 * 32 * (128 * 2 + 4));
  for (const MergeCell &cell : standard_merge_cells()) {
    EXPECT_EQ(written_bytes(cell) % (16 * cell.rows), 0u) << "a row is whole vectors of the floor";
    EXPECT_EQ(cell.op == MergeOp::kState, cell.name.starts_with("merge_state "));
  }
}

TEST(MergeLayout, StatesFillTheInputAndOutputsLieBetweenBands) {
  for (const MergeOp op : {MergeOp::kState, MergeOp::kStates}) {
    const MergeCell cell{"", op, 3, 2, 4, 8};
    const MergeLayout layout(cell);
    std::vector<std::byte> in(layout.in_bytes()), out(layout.out_bytes());
    const TimedMerge call = layout.call(ASSAY_TARGET_SIMT, in.data(), out.data());
    std::vector<int> used(in.size());
    const auto use = [&](const void *at, size_t bytes) {
      const auto offset = static_cast<const std::byte *>(at) - in.data();
      for (size_t i = 0; i < bytes; ++i)
        ++used.at(offset + i);
    };
    for (int row = 0; row < cell.rows; ++row)
      for (int state = 0; state < cell.states; ++state) {
        use(static_cast<const uint16_t *>(call.o_in) + row * call.o_in_stride_row +
                state * call.o_in_stride_state,
            4 * 8 * 2);
        use(call.lse_in + row * call.lse_in_stride_row + state * call.lse_in_stride_state, 4 * 4);
      }
    EXPECT_TRUE(std::ranges::all_of(used, [](int n) { return n == 1; })) << name_of(op);
    const auto o = static_cast<std::byte *>(call.o) - out.data();
    const auto lse = reinterpret_cast<std::byte *>(call.lse) - out.data();
    EXPECT_GE(o, int64_t{kBandBytes});
    EXPECT_GE(lse - (o + 3 * 4 * 8 * 2), int64_t{2 * kBandBytes}); // one of each
    EXPECT_GE(int64_t(out.size()) - (lse + 3 * 4 * 4), int64_t{kBandBytes});
  }
}

Json cascade_json() {
  return {{"name", "c"},
          {"batch", 8},
          {"num_qo_heads", 8},
          {"head_dim", 64},
          {"num_kv_heads", 2},
          {"page_size", 16},
          {"kv_dtype", "bf16"},
          {"levels", {{{"segments", 1}, {"tokens", 4096}}, {{"segments", 8}, {"tokens", 7}}}}};
}
Json merge_json() {
  return {{"name", "m"},   {"op", "merge_states"}, {"rows", 4},
          {"states", 512}, {"num_heads", 8},       {"head_dim", 64}};
}

std::string error_of(const char *list, Json cell, const char *field, const Json &value) {
  cell[field] = value;
  try {
    parse_cells(Json{{list, {cell}}}.dump(), "f");
  } catch (const std::invalid_argument &e) {
    return e.what();
  }
  return "";
}

TEST(CellSetFile, ReadsEveryKind) {
  const Json document = {{"cascade", {cascade_json()}}, {"merge", {merge_json()}}};
  const CellSet cells = parse_cells(document.dump(), "f");
  EXPECT_EQ(cells.size(), 2u);
  EXPECT_EQ(cells.cascade.at(0).levels.at(1).segments, 8);
  EXPECT_EQ(cells.cascade.at(0).levels.at(1).tokens, 7);
  EXPECT_EQ(cells.merge.at(0).op, MergeOp::kStates);
  EXPECT_EQ(cells.merge.at(0).states, 512);
  EXPECT_EQ(cells_to_json(cells), document);
}

TEST(CellSetFile, CascadesHaveBf16CachesUnlessTheySay) {
  Json cell = cascade_json();
  cell.erase("kv_dtype");
  const auto read = [&] {
    return parse_cells(Json{{"cascade", {cell}}}.dump(), "f").cascade.at(0);
  };
  EXPECT_EQ(read().kv_dtype, KvDtype::kBf16);
  EXPECT_EQ(kv_bytes(read()), (4096u + 8 * 7) * 2 * 64 * 2 * 2);
  cell["kv_dtype"] = "e5m2";
  EXPECT_EQ(read().kv_dtype, KvDtype::kE5m2);
  EXPECT_EQ(kv_bytes(read()), (4096u + 8 * 7) * 2 * 64 * 2);
}

TEST(CascadeLayout, CallsOnFlatPagesNameTheCache) {
  for (const KvDtype dtype : {KvDtype::kBf16, KvDtype::kE4m3}) {
    const CascadeLayout layout({"", 4, 8, 2, 64, 16, {{1, 32}, {4, 16}}, dtype}, 1);
    ASSERT_TRUE(layout.has_flat());
    const assay_paged_params p =
        layout.flat_params(ASSAY_TARGET_CUDA, 0, some_pool(), layout.integers().data());
    EXPECT_EQ(p.dtype, ASSAY_BF16);
    EXPECT_EQ(p.kv_dtype, dtype == KvDtype::kBf16 ? ASSAY_BF16 : ASSAY_E4M3);
    EXPECT_EQ(static_cast<const char *>(p.kv.v) - static_cast<const char *>(p.kv.k),
              6 * 16 * 2 * 64 * bytes_of(dtype));
  }
}

TEST(CellSetFile, ErrorsNameCellFieldAndLimit) {
  const auto cascade = [](const char *field, const Json &value) {
    return error_of("cascade", cascade_json(), field, value);
  };
  const auto merge = [](const char *field, const Json &value) {
    return error_of("merge", merge_json(), field, value);
  };
  const std::string c = "f: cascade[0] 'c': ", m = "f: merge[0] 'm': ";
  EXPECT_EQ(cascade("levels", Json::array()),
            c + "levels is an array of 0, expected an array of 1 .. 8");
  EXPECT_EQ(cascade("levels", {1}), c + "levels[0] is 1, expected segments and tokens");
  EXPECT_EQ(cascade("levels", {{{"segments", 3}, {"tokens", 4096}}}),
            c + "levels[0].segments is 3, expected a divisor of batch 8");
  EXPECT_EQ(cascade("levels", {{{"segments", 1}, {"tokens", 0}}}),
            c + "levels[0].tokens is 0, expected an integer 1 .. 1048576");
  EXPECT_EQ(cascade("levels", {{{"segments", 1}, {"tokens", 16}}}),
            c + "levels come to 8192 bytes of KV, expected 1048576 .. 34359738368");
  EXPECT_EQ(cascade("head_dim", 96), c + "head_dim is 96, expected 64, 128 or 256");
  EXPECT_EQ(cascade("kv_dtype", "fp4"),
            c + "kv_dtype is \"fp4\", expected one of: bf16, e4m3, e5m2");
  Json partial = cascade_json();
  partial["kv_dtype"] = "e4m3";
  EXPECT_EQ(error_of("cascade", partial, "page_size", 48),
            c + "levels[0].tokens is 4096, expected with kv_dtype e4m3 a multiple of page_size 48");
  EXPECT_EQ(cascade("seq", 1), c + "unknown field \"seq\"");
  EXPECT_EQ(merge("op", "merge"),
            m + "op is \"merge\", expected one of: merge_state, merge_states");
  EXPECT_EQ(merge("op", "merge_state"), m + "states is 512, expected an integer 2 .. 2");
  EXPECT_EQ(merge("num_heads", 6), m + "num_heads is 6, expected a multiple of 4");
  EXPECT_EQ(merge("head_dim", 12), m + "head_dim is 12, expected a multiple of 8");
  EXPECT_EQ(merge("rows", 1), m + "states come to 540672 bytes, expected 1048576 .. 34359738368");
  EXPECT_EQ(merge("rows", nullptr), m + "rows is null, expected an integer 1 .. 1048576");
  EXPECT_EQ(error_of("merge", merge_json(), "name", ""),
            "f: merge[0]: name is \"\", expected 1 .. 64 printable ASCII characters");
  Json twice = {{"cascade", {cascade_json()}}, {"merge", {merge_json()}}};
  twice["merge"][0]["name"] = "c";
  try {
    parse_cells(twice.dump(), "f");
    ADD_FAILURE() << "a name of two kinds";
  } catch (const std::invalid_argument &e) {
    EXPECT_STREQ(e.what(), "f: merge[0]: name 'c' is used twice");
  }
}

} // namespace
} // namespace assay::bench
