// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/cells/cell_fields.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::bench {
namespace {

constexpr size_t kMaxName = 64;

std::string read_name(const std::string &where, const Json &value) {
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

} // namespace

void refuse(const std::string &where, const std::string &what) {
  throw std::invalid_argument(where + ": " + what);
}

std::string shown(const Json &value) {
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (value.is_object()) return "an object";
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= 40 ? text : text.substr(0, 40) + "...";
}

int read_integer(const std::string &where, const std::string &what, const Json &value, int low,
                 int high) {
  const bool fits = value.is_number_unsigned() ? value.get<uint64_t>() <= uint64_t(high)
                                               : value.is_number_integer() && value <= high;
  if (!fits || value < low)
    refuse(where,
           fmt::format("{} is {}, expected an integer {} .. {}", what, shown(value), low, high));
  return value.get<int>();
}

CellFields::CellFields(const std::string &where, const Json &object,
                       std::span<const char *const> required, std::span<const char *const> optional)
    : where_(where), object_(object) {
  if (!object.is_object()) refuse(shown(object) + " instead of an object");
  for (const char *field : required)
    if (!object.contains(field)) refuse(fmt::format("{} is missing", field));
  name_ = read_name(where_, object.at("name"));
  where_ += fmt::format(" '{}'", name_);
  const auto among = [](std::span<const char *const> fields, const std::string &key) {
    return std::find(fields.begin(), fields.end(), key) != fields.end();
  };
  for (const auto &[key, value] : object.items())
    if (!among(required, key) && !among(optional, key))
      refuse(fmt::format("unknown field {}", shown(key)));
}

void CellFields::refuse_name(const char *field, const std::string &known) const {
  refuse(fmt::format("{} is {}, expected one of: {}", field, shown(object_.at(field)), known));
}

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

} // namespace assay::bench
