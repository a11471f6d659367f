// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/cells_file.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::bench {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxFileBytes = size_t{1} << 20, kMaxCells = 1000, kMaxName = 64;
/// Page sets of a cell are as many as outgrow the L2, so a tiny cell would need very many, each
/// with its page table; and two sets of the largest must fit in a device.
constexpr int64_t kMinKvBytes = int64_t{1} << 20, kMaxKvBytes = int64_t{1} << 35;
constexpr int64_t kMaxTableEntries = int64_t{1} << 22;

constexpr const char *kOptional = "layout";
constexpr const char *kFields[] = {"name",     "batch",        "seq",
                                   "lengths",  "num_qo_heads", "num_kv_heads",
                                   "head_dim", "page_size",    "kv_dtype"};

[[noreturn]] void refuse(const std::string &where, const std::string &what) {
  throw std::invalid_argument(where + ": " + what);
}

/// What stands there, short enough for one line.
std::string shown(const Json &value) {
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (value.is_object()) return "an object";
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= 40 ? text : text.substr(0, 40) + "...";
}

int integer(const std::string &where, const std::string &what, const Json &value, int low,
            int high) {
  const bool fits = value.is_number_unsigned() ? value.get<uint64_t>() <= uint64_t(high)
                                               : value.is_number_integer() && value <= high;
  if (!fits || value < low)
    refuse(where,
           fmt::format("{} is {}, expected an integer {} .. {}", what, shown(value), low, high));
  return value.get<int>();
}

std::string name(const std::string &where, const Json &value) {
  const auto printable = [](unsigned char c) { return c >= 0x20 && c < 0x7f; };
  if (value.is_string()) {
    const auto &text = value.get_ref<const std::string &>();
    if (!text.empty() && text.size() <= kMaxName &&
        std::all_of(text.begin(), text.end(), printable))
      return text;
  }
  refuse(where, fmt::format("name is {}, expected 1 .. {} printable ASCII characters", shown(value),
                            kMaxName));
}

/// The one of the first `count` enumerators whose name_of() the value is.
template <class Enum>
Enum named(const std::string &where, const char *field, const Json &value, int count) {
  std::string known;
  for (int i = 0; i < count; ++i) {
    const char *text = name_of(static_cast<Enum>(i));
    if (value.is_string() && value.get_ref<const std::string &>() == text)
      return static_cast<Enum>(i);
    known += (i == 0 ? "" : ", ") + std::string(text);
  }
  refuse(where, fmt::format("{} is {}, expected one of: {}", field, shown(value), known));
}

void read_lengths(const std::string &where, const Json &value, Cell &cell) {
  if (!value.is_array()) {
    cell.lengths = named<Lengths>(where, "lengths", value, static_cast<int>(Lengths::kGiven));
    return;
  }
  cell.lengths = Lengths::kGiven;
  if (value.size() != static_cast<size_t>(cell.batch))
    refuse(where,
           fmt::format("lengths has {} entries, expected batch {}", value.size(), cell.batch));
  for (const Json &length : value)
    cell.given.push_back(
        integer(where, fmt::format("lengths[{}]", cell.given.size()), length, 0, cell.seq));
  const int longest = *std::max_element(cell.given.begin(), cell.given.end());
  if (longest != cell.seq)
    refuse(where, fmt::format("seq is {}, expected the longest of lengths, {}", cell.seq, longest));
}

/// What single fields do not show.
void check_size(const std::string &where, const Cell &cell) {
  if (cell.num_qo_heads % cell.num_kv_heads != 0)
    refuse(where, fmt::format("num_qo_heads is {}, expected a multiple of num_kv_heads {}",
                              cell.num_qo_heads, cell.num_kv_heads));
  if (cell.head_dim != 64 && cell.head_dim != 128 && cell.head_dim != 256)
    refuse(where, fmt::format("head_dim is {}, expected 64, 128 or 256", cell.head_dim));
  const int64_t entries = int64_t{cell.batch} * ((cell.seq - 1) / cell.page_size + 1);
  if (entries > kMaxTableEntries)
    refuse(where,
           fmt::format("batch and seq are {} and {}: a page table of {} entries, expected at "
                       "most {}",
                       cell.batch, cell.seq, entries, kMaxTableEntries));
  const auto bytes = static_cast<int64_t>(kv_bytes(cell, cell_lengths(cell)));
  if (bytes < kMinKvBytes || bytes > kMaxKvBytes)
    refuse(where, fmt::format("lengths come to {} bytes of KV, expected {} .. {}", bytes,
                              kMinKvBytes, kMaxKvBytes));
}

Cell read_cell(std::string where, const Json &object) {
  if (!object.is_object()) refuse(where, shown(object) + " instead of an object");
  for (const char *field : kFields)
    if (!object.contains(field)) refuse(where, fmt::format("{} is missing", field));
  Cell cell{};
  cell.name = name(where, object["name"]);
  where += fmt::format(" '{}'", cell.name);
  for (const auto &[key, value] : object.items())
    if (key != kOptional &&
        std::find(std::begin(kFields), std::end(kFields), key) == std::end(kFields))
      refuse(where, fmt::format("unknown field {}", shown(key)));
  const auto number = [&](const char *field, int high) {
    return integer(where, field, object[field], 1, high);
  };
  cell.batch = number("batch", 1 << 12);
  cell.seq = number("seq", 1 << 20);
  cell.num_qo_heads = number("num_qo_heads", 1 << 10);
  cell.num_kv_heads = number("num_kv_heads", 1 << 10);
  cell.head_dim = number("head_dim", 256);
  cell.page_size = number("page_size", 1 << 12);
  cell.kv_dtype = named<KvDtype>(where, "kv_dtype", object["kv_dtype"], kKvDtypes);
  if (object.contains(kOptional))
    cell.layout = named<Layout>(where, kOptional, object[kOptional], kLayouts);
  read_lengths(where, object["lengths"], cell);
  check_size(where, cell);
  return cell;
}

/// A document in which no object names a field twice: which of the two was meant?
Json parse_once_each(const std::string &text, const std::string &origin) {
  std::vector<std::set<std::string>> open;
  const auto watch = [&](int, Json::parse_event_t event, Json &value) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second)
      refuse(origin, fmt::format("{} is given twice in one object", shown(value)));
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::parse_error &e) {
    refuse(origin, fmt::format("not JSON: error at byte {}", e.byte));
  } catch (const Json::exception &) {
    refuse(origin, "a number is too large");
  }
}

} // namespace

std::vector<Cell> parse_cells(const std::string &text, const std::string &origin) {
  if (text.size() > kMaxFileBytes)
    refuse(origin, fmt::format("the file has more than {} bytes, the limit", kMaxFileBytes));
  const Json document = parse_once_each(text, origin);
  if (!document.is_object() || !document.contains("cells") || !document["cells"].is_array())
    refuse(origin, "expected an object with an array \"cells\"");
  const Json &list = document["cells"];
  if (list.empty() || list.size() > kMaxCells)
    refuse(origin, fmt::format("cells has {} entries, expected 1 .. {}", list.size(), kMaxCells));
  std::vector<Cell> cells;
  std::set<std::string> names;
  for (const Json &object : list) {
    const std::string where = fmt::format("{}: cells[{}]", origin, cells.size());
    cells.push_back(read_cell(where, object));
    if (!names.insert(cells.back().name).second)
      refuse(where, fmt::format("name '{}' is used twice", cells.back().name));
  }
  return cells;
}

std::vector<Cell> read_cells(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  char block[4096];
  while (text.size() <= kMaxFileBytes && (in.read(block, sizeof block) || in.gcount() > 0))
    text.append(block, static_cast<size_t>(in.gcount()));
  if (!in.is_open() || in.bad()) refuse(path, "cannot be read");
  return parse_cells(text, path);
}

Json cells_to_json(const std::vector<Cell> &cells) {
  Json list = Json::array();
  for (const Cell &c : cells)
    list.push_back(
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
  return {{"cells", list}};
}

} // namespace assay::bench
