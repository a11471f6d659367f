// SPDX-License-Identifier: Apache-2.0
// Decode cells, their lengths, and the reader of cells files: exact errors, and no input that
// breaks it.
#include "kernels/bench/cells/cells_file.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace assay::bench {
namespace {

using Json = nlohmann::json;

Json one_cell() {
  return {{"name", "a"},        {"batch", 3},     {"seq", 4096},     {"lengths", {4096, 0, 7}},
          {"num_qo_heads", 32}, {"head_dim", 64}, {"page_size", 16}, {"num_kv_heads", 8},
          {"kv_dtype", "e4m3"}, {"layout", "hnd"}};
}
std::string file_of(const Json &cell) { return Json{{"cells", {cell}}}.dump(); }

/// The error of a text; empty when it is read.
std::string error_of(const std::string &text) {
  try {
    parse_cells(text, "f.json");
  } catch (const std::invalid_argument &e) {
    return e.what();
  }
  return "";
}

/// The error of one_cell() with one field changed.
std::string error_with(const char *field, const Json &value) {
  Json cell = one_cell();
  cell[field] = value;
  return error_of(file_of(cell));
}

TEST(CellsFile, ReadsEveryField) {
  const std::vector<Cell> cells = parse_cells(file_of(one_cell()), "f.json").decode;
  ASSERT_EQ(cells.size(), 1u);
  const Cell &c = cells[0];
  EXPECT_EQ(c.name, "a");
  EXPECT_EQ(c.num_qo_heads, 32);
  EXPECT_EQ(c.num_kv_heads, 8);
  EXPECT_EQ(c.head_dim, 64);
  EXPECT_EQ(c.page_size, 16);
  EXPECT_EQ(c.seq, 4096);
  EXPECT_EQ(c.kv_dtype, KvDtype::kE4m3);
  EXPECT_EQ(c.layout, Layout::kHnd);
  EXPECT_EQ(cell_lengths(c), (std::vector<int32_t>{4096, 0, 7}));
}

TEST(CellsFile, LayoutMayBeAbsent) {
  Json cell = one_cell();
  cell.erase("layout");
  EXPECT_EQ(parse_cells(file_of(cell), "f.json").decode[0].layout, Layout::kNhd);
}

TEST(CellsFile, WritesWhatItReads) {
  const Json written = cells_to_json(standard_cell_set());
  EXPECT_EQ(cells_to_json(parse_cells(written.dump(), "f.json")), written);
  const Json given = {{"cells", {one_cell()}}};
  EXPECT_EQ(cells_to_json(parse_cells(given.dump(), "f.json")), given);
}

TEST(CellsFile, ErrorsNameFileCellFieldAndLimit) {
  EXPECT_EQ(error_of(""), "f.json: not JSON: error at byte 1");
  EXPECT_EQ(error_of("{\"cells\": [\xff]}"), "f.json: not JSON: error at byte 12");
  EXPECT_EQ(error_of(std::string(100000, '[')), "f.json: not JSON: error at byte 100001");
  EXPECT_EQ(error_of("{\"cells\": [1e400]}"), "f.json: a number is too large");
  EXPECT_EQ(error_of("{\"cells\": [{\"batch\": 8, \"seq\": 1, \"batch\": 9}]}"),
            "f.json: \"batch\" is given twice in one object");
  EXPECT_EQ(error_of(std::string((1 << 20) + 1, ' ')),
            "f.json: the file has more than 1048576 bytes, the limit");
  EXPECT_EQ(error_of("[1]"),
            "f.json: expected an object with an array \"cells\", \"cascade\" or \"merge\"");
  EXPECT_EQ(error_of("{\"cells\": []}"), "f.json: 0 cells, expected 1 .. 1000");
  EXPECT_EQ(error_of("{\"cells\": {}}"), "f.json: cells is an object, expected an array");
  EXPECT_EQ(error_of("{\"cells\": [7]}"), "f.json: cells[0]: 7 instead of an object");
  EXPECT_EQ(error_of(Json{{"cells", {one_cell(), one_cell()}}}.dump()),
            "f.json: cells[1]: name 'a' is used twice");
  Json cell = one_cell();
  cell.erase("seq");
  EXPECT_EQ(error_of(file_of(cell)), "f.json: cells[0]: seq is missing");
}

TEST(CellsFile, EveryFieldIsChecked) {
  const std::string at = "f.json: cells[0] 'a': ";
  EXPECT_EQ(
      error_with("name", "two\nlines"),
      "f.json: cells[0]: name is \"two\\nlines\", expected 1 .. 64 printable ASCII characters");
  EXPECT_EQ(error_with("name", Json::object()),
            "f.json: cells[0]: name is an object, expected 1 .. 64 printable ASCII characters");
  EXPECT_EQ(error_with("batch", -1), at + "batch is -1, expected an integer 1 .. 4096");
  EXPECT_EQ(error_with("batch", 3.0), at + "batch is 3.0, expected an integer 1 .. 4096");
  EXPECT_EQ(error_with("seq", ~uint64_t{0}),
            at + "seq is 18446744073709551615, expected an integer 1 .. 1048576");
  EXPECT_EQ(error_with("seq", std::numeric_limits<int64_t>::min()),
            at + "seq is -9223372036854775808, expected an integer 1 .. 1048576");
  EXPECT_EQ(error_with("seq", 5000), at + "seq is 5000, expected the longest of lengths, 4096");
  EXPECT_EQ(error_with("batch", 2), at + "lengths has 3 entries, expected batch 2");
  EXPECT_EQ(error_with("lengths", {4096, 0, -1}),
            at + "lengths[2] is -1, expected an integer 0 .. 4096");
  EXPECT_EQ(error_with("lengths", "given"),
            at + "lengths is \"given\", expected one of: uniform, random, heavy tail, one giant, "
                 "ramp, many zeros, zipf");
  EXPECT_EQ(error_with("layout", "ndh"), at + "layout is \"ndh\", expected one of: nhd, hnd");
  EXPECT_EQ(error_with("num_kv_heads", 5),
            at + "num_qo_heads is 32, expected a multiple of num_kv_heads 5");
  EXPECT_EQ(error_with("num_kv_heads", 0), at + "num_kv_heads is 0, expected an integer 1 .. 1024");
  EXPECT_EQ(error_with("head_dim", 96), at + "head_dim is 96, expected 64, 128 or 256");
  EXPECT_EQ(error_with("page_size", nullptr),
            at + "page_size is null, expected an integer 1 .. 4096");
  EXPECT_EQ(error_with("kv_dtype", "fp4"),
            at + "kv_dtype is \"fp4\", expected one of: bf16, e4m3, e5m2");
  EXPECT_EQ(error_with("colour", 1), at + "unknown field \"colour\"");
}

TEST(CellsFile, SizesAreBounded) {
  const std::string at = "f.json: cells[0] 'a': ";
  Json cell = one_cell();
  cell["lengths"] = "uniform";
  cell["seq"] = 1;
  EXPECT_EQ(error_of(file_of(cell)),
            at + "lengths come to 3072 bytes of KV, expected 1048576 .. 34359738368");
  cell["batch"] = 4096;
  cell["seq"] = 1 << 20;
  EXPECT_EQ(error_of(file_of(cell)),
            at + "batch and seq are 4096 and 1048576: a page table of 268435456 entries, expected "
                 "at most 4194304");
  cell["page_size"] = 4096;
  EXPECT_EQ(error_of(file_of(cell)),
            at + "lengths come to 4398046511104 bytes of KV, expected 1048576 .. 34359738368");
}

// Any bytes: an error or cells, no crash, one line.
TEST(CellsFile, MutatedFilesAreReadOrRefused) {
  const std::string good = file_of(one_cell());
  std::mt19937 rng(11);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (unsigned edits = 1 + rng() % 3; edits > 0; --edits) {
      const size_t at = rng() % text.size();
      if (rng() % 3 == 0)
        text.erase(at, 1 + rng() % 8);
      else
        text[at] = static_cast<char>(rng() % 2 ? rng() : "0123456789[]{},:\"-e"[rng() % 19]);
      if (text.empty()) text = "x";
    }
    const std::string error = error_of(text);
    refused += !error.empty();
    ASSERT_EQ(std::count(error.begin(), error.end(), '\n'), 0) << error;
    ASSERT_LT(error.size(), 300u) << error;
  }
  EXPECT_GT(refused, 10000);
  EXPECT_LT(refused, 20000);
}

TEST(Cells, ZipfLengthsFallAsOneOverTheRank) {
  Cell cell{"z", 5, 1000, Lengths::kZipf, 8, 8, 64, 16};
  std::vector<int32_t> lens = cell_lengths(cell);
  EXPECT_EQ(lens, cell_lengths(cell));
  std::sort(lens.rbegin(), lens.rend());
  EXPECT_EQ(lens, (std::vector<int32_t>{1000, 500, 333, 250, 200}));
  cell.batch = 4;
  cell.seq = 2;
  EXPECT_EQ(std::ranges::min(cell_lengths(cell)), 1);
}

// Fractions of a sweep compare because its cells read the same bytes.
TEST(Cells, SweepsReadHalfAGigabyteEach) {
  const CellSet sweeps = read_cells(ASSAY_SWEEPS);
  for (const Cell &cell : sweeps.decode)
    EXPECT_NEAR(kv_bytes(cell, cell_lengths(cell)), 0x1p29, 0x1p29 * 0.001) << cell.name;
  for (const char *sweep : {"page", "group", "d", "batch", "lengths"})
    EXPECT_GE(select_cells(sweeps, "sweep " + std::string(sweep) + " ").decode.size(), 3u) << sweep;
}

TEST(Cells, RaggedBatchesAreSmallAndUneven) {
  const auto path = std::filesystem::path(ASSAY_SWEEPS).replace_filename("ragged.json");
  for (const Cell &cell : read_cells(path.string()).decode) {
    const std::vector<int32_t> lens = cell_lengths(cell);
    EXPECT_LT(kv_bytes(cell, lens), 0x1p28) << cell.name;
    EXPECT_LT(std::ranges::min(lens), std::ranges::max(lens) / 2) << cell.name;
  }
}

} // namespace
} // namespace assay::bench
