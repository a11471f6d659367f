// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/cells/cells_file.h"

#include <algorithm>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/bench/cells/cell_fields.h"

namespace assay::bench {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20, kMaxCells = 1000;
/// Page sets of a cell are as many as outgrow the L2, so a tiny cell would need very many, each
/// with its page table; and two sets of the largest must fit in a device.
constexpr int64_t kMinBytes = int64_t{1} << 20, kMaxBytes = int64_t{1} << 35;
constexpr int64_t kMaxTableEntries = int64_t{1} << 22;
constexpr int kMaxHeads = 1 << 10, kMaxBatch = 1 << 12, kMaxTokens = 1 << 20, kMaxPage = 1 << 12;
constexpr size_t kMaxLevels = 8;

constexpr const char *kOptional[] = {"layout"}, *kCascadeOptional[] = {"kv_dtype"};
constexpr const char *kFields[] = {"name",     "batch",        "seq",
                                   "lengths",  "num_qo_heads", "num_kv_heads",
                                   "head_dim", "page_size",    "kv_dtype"};
constexpr const char *kCascadeFields[] = {"name",     "batch",     "num_qo_heads", "num_kv_heads",
                                          "head_dim", "page_size", "levels"};
constexpr const char *kMergeFields[] = {"name", "op", "rows", "states", "num_heads", "head_dim"};

void read_lengths(const CellFields &fields, Cell &cell) {
  const Json &value = fields["lengths"];
  if (!value.is_array()) {
    cell.lengths = fields.named<Lengths>("lengths", static_cast<int>(Lengths::kGiven));
    return;
  }
  cell.lengths = Lengths::kGiven;
  if (value.size() != static_cast<size_t>(cell.batch))
    fields.refuse(
        fmt::format("lengths has {} entries, expected batch {}", value.size(), cell.batch));
  for (const Json &length : value)
    cell.given.push_back(read_integer(fields.where(), fmt::format("lengths[{}]", cell.given.size()),
                                      length, 0, cell.seq));
  const int longest = *std::max_element(cell.given.begin(), cell.given.end());
  if (longest != cell.seq)
    fields.refuse(fmt::format("seq is {}, expected the longest of lengths, {}", cell.seq, longest));
}

template <class AttentionCell>
void check_heads(const CellFields &fields, const AttentionCell &cell) {
  if (cell.num_qo_heads % cell.num_kv_heads != 0)
    fields.refuse(fmt::format("num_qo_heads is {}, expected a multiple of num_kv_heads {}",
                              cell.num_qo_heads, cell.num_kv_heads));
  if (cell.head_dim != 64 && cell.head_dim != 128 && cell.head_dim != 256)
    fields.refuse(fmt::format("head_dim is {}, expected 64, 128 or 256", cell.head_dim));
}

void check_table(const CellFields &fields, const std::string &what, int64_t entries) {
  if (entries > kMaxTableEntries)
    fields.refuse(fmt::format("{}: a page table of {} entries, expected at most {}", what, entries,
                              kMaxTableEntries));
}

void check_bytes(const CellFields &fields, const char *what, uint64_t bytes, const char *of) {
  if (int64_t(bytes) < kMinBytes || int64_t(bytes) > kMaxBytes)
    fields.refuse(fmt::format("{} come to {} bytes{}, expected {} .. {}", what, bytes, of,
                              kMinBytes, kMaxBytes));
}

int64_t pages(int tokens, int page_size) { return (tokens - 1) / page_size + 1; }

Cell read_cell(const std::string &where, const Json &object) {
  const CellFields fields(where, object, kFields, kOptional);
  Cell cell{};
  cell.name = fields.name();
  cell.batch = fields.integer("batch", 1, kMaxBatch);
  cell.seq = fields.integer("seq", 1, kMaxTokens);
  cell.num_qo_heads = fields.integer("num_qo_heads", 1, kMaxHeads);
  cell.num_kv_heads = fields.integer("num_kv_heads", 1, kMaxHeads);
  cell.head_dim = fields.integer("head_dim", 1, 256);
  cell.page_size = fields.integer("page_size", 1, kMaxPage);
  cell.kv_dtype = fields.named<KvDtype>("kv_dtype", kKvDtypes);
  if (fields.has("layout")) cell.layout = fields.named<Layout>("layout", kLayouts);
  read_lengths(fields, cell);
  check_heads(fields, cell);
  check_table(fields, fmt::format("batch and seq are {} and {}", cell.batch, cell.seq),
              cell.batch * pages(cell.seq, cell.page_size));
  check_bytes(fields, "lengths", kv_bytes(cell, cell_lengths(cell)), " of KV");
  return cell;
}

void read_levels(const CellFields &fields, CascadeCell &cell) {
  const Json &value = fields["levels"];
  if (!value.is_array() || value.empty() || value.size() > kMaxLevels)
    fields.refuse(
        fmt::format("levels is {}, expected an array of 1 .. {}", shown(value), kMaxLevels));
  int64_t entries = 0;
  for (const Json &level : value) {
    const std::string at = fmt::format("levels[{}]", cell.levels.size());
    if (!level.is_object() || level.size() != 2 || !level.contains("segments") ||
        !level.contains("tokens"))
      fields.refuse(fmt::format("{} is {}, expected segments and tokens", at, shown(level)));
    const int segments =
        read_integer(fields.where(), at + ".segments", level["segments"], 1, cell.batch);
    if (cell.batch % segments != 0)
      fields.refuse(fmt::format("{}.segments is {}, expected a divisor of batch {}", at, segments,
                                cell.batch));
    cell.levels.push_back(
        {segments, read_integer(fields.where(), at + ".tokens", level["tokens"], 1, kMaxTokens)});
    entries += segments * pages(cell.levels.back().tokens, cell.page_size);
  }
  check_table(fields, "levels", entries);
}

/// An fp8 cell is measured with a page table a request.
void check_kernels(const CellFields &fields, const CascadeCell &cell) {
  for (size_t l = 0; cell.kv_dtype != KvDtype::kBf16 && l + 1 < cell.levels.size(); ++l)
    if (cell.levels[l].tokens % cell.page_size != 0)
      fields.refuse(fmt::format("levels[{}].tokens is {}, expected with kv_dtype {} a multiple of "
                                "page_size {}",
                                l, cell.levels[l].tokens, name_of(cell.kv_dtype), cell.page_size));
}

CascadeCell read_cascade_cell(const std::string &where, const Json &object) {
  const CellFields fields(where, object, kCascadeFields, kCascadeOptional);
  CascadeCell cell{};
  cell.name = fields.name();
  cell.batch = fields.integer("batch", 1, kMaxBatch);
  cell.num_qo_heads = fields.integer("num_qo_heads", 1, kMaxHeads);
  cell.num_kv_heads = fields.integer("num_kv_heads", 1, kMaxHeads);
  cell.head_dim = fields.integer("head_dim", 1, 256);
  cell.page_size = fields.integer("page_size", 1, kMaxPage);
  if (fields.has("kv_dtype")) cell.kv_dtype = fields.named<KvDtype>("kv_dtype", kKvDtypes);
  read_levels(fields, cell);
  check_kernels(fields, cell);
  check_heads(fields, cell);
  check_bytes(fields, "levels", kv_bytes(cell), " of KV");
  return cell;
}

MergeCell read_merge_cell(const std::string &where, const Json &object) {
  const CellFields fields(where, object, kMergeFields);
  MergeCell cell{};
  cell.name = fields.name();
  cell.op = fields.named<MergeOp>("op", kMergeOps);
  cell.rows = fields.integer("rows", 1, 1 << 20);
  cell.states = fields.integer("states", 2, cell.op == MergeOp::kState ? 2 : 1 << 16);
  cell.num_heads = fields.integer("num_heads", 1, kMaxHeads);
  cell.head_dim = fields.integer("head_dim", 8, 512);
  // Vectors of 16 bytes: 8 elements of O, 4 LSEs.
  if (cell.head_dim % 8 != 0)
    fields.refuse(fmt::format("head_dim is {}, expected a multiple of 8", cell.head_dim));
  if (cell.num_heads % 4 != 0)
    fields.refuse(fmt::format("num_heads is {}, expected a multiple of 4", cell.num_heads));
  check_bytes(fields, "states", read_bytes(cell), "");
  return cell;
}

/// The cells of one array of the document, where it is there. `names` of cells so far.
template <class AnyCell>
std::vector<AnyCell> read_list(const Json &document, const char *list, const std::string &origin,
                               AnyCell (*read)(const std::string &, const Json &),
                               std::set<std::string> &names) {
  std::vector<AnyCell> cells;
  if (!document.contains(list)) return cells;
  for (const Json &object : document[list]) {
    const std::string where = fmt::format("{}: {}[{}]", origin, list, cells.size());
    cells.push_back(read(where, object));
    if (!names.insert(cells.back().name).second)
      refuse(where, fmt::format("name '{}' is used twice", cells.back().name));
  }
  return cells;
}

/// Entries of the three arrays.
size_t count_cells(const Json &document, const std::string &origin) {
  size_t count = 0;
  bool any = false;
  for (const char *list : {"cells", "cascade", "merge"}) {
    if (!document.is_object() || !document.contains(list)) continue;
    any = true;
    if (!document[list].is_array())
      refuse(origin, fmt::format("{} is {}, expected an array", list, shown(document[list])));
    count += document[list].size();
  }
  if (!any) refuse(origin, "expected an object with an array \"cells\", \"cascade\" or \"merge\"");
  return count;
}

} // namespace

CellSet parse_cells(const std::string &text, const std::string &origin) {
  if (text.size() > kMaxFileBytes)
    refuse(origin, fmt::format("the file has more than {} bytes, the limit", kMaxFileBytes));
  const Json document = parse_once_each(text, origin);
  const size_t count = count_cells(document, origin);
  if (count == 0 || count > kMaxCells)
    refuse(origin, fmt::format("{} cells, expected 1 .. {}", count, kMaxCells));
  std::set<std::string> names;
  CellSet set;
  set.decode = read_list(document, "cells", origin, &read_cell, names);
  set.cascade = read_list(document, "cascade", origin, &read_cascade_cell, names);
  set.merge = read_list(document, "merge", origin, &read_merge_cell, names);
  return set;
}

CellSet read_cells(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  char block[4096];
  while (text.size() <= kMaxFileBytes && (in.read(block, sizeof block) || in.gcount() > 0))
    text.append(block, static_cast<size_t>(in.gcount()));
  if (!in.is_open() || in.bad()) refuse(path, "cannot be read");
  return parse_cells(text, path);
}

Json cells_to_json(const CellSet &cells) {
  Json document = Json::object();
  for (const Cell &c : cells.decode)
    document["cells"].push_back(
        {{"name", c.name},
         {"batch", c.batch},
         {"seq", c.seq},
         {"lengths", c.lengths == Lengths::kGiven ? Json(c.given) : Json(name_of(c.lengths))},
         {"num_qo_heads", c.num_qo_heads},
         {"num_kv_heads", c.num_kv_heads},
         {"head_dim", c.head_dim},
         {"page_size", c.page_size},
         {"kv_dtype", name_of(c.kv_dtype)},
         {"layout", name_of(c.layout)}});
  for (const CascadeCell &c : cells.cascade) {
    Json levels = Json::array();
    for (const CascadeLevel &level : c.levels)
      levels.push_back({{"segments", level.segments}, {"tokens", level.tokens}});
    document["cascade"].push_back({{"name", c.name},
                                   {"batch", c.batch},
                                   {"num_qo_heads", c.num_qo_heads},
                                   {"num_kv_heads", c.num_kv_heads},
                                   {"head_dim", c.head_dim},
                                   {"page_size", c.page_size},
                                   {"kv_dtype", name_of(c.kv_dtype)},
                                   {"levels", levels}});
  }
  for (const MergeCell &c : cells.merge)
    document["merge"].push_back({{"name", c.name},
                                 {"op", name_of(c.op)},
                                 {"rows", c.rows},
                                 {"states", c.states},
                                 {"num_heads", c.num_heads},
                                 {"head_dim", c.head_dim}});
  return document;
}

} // namespace assay::bench
