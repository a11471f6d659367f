// SPDX-License-Identifier: Apache-2.0
// Fields of one cell of a file: each read with its limits, or refused in one line that names cell,
// field and limit.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

namespace assay::bench {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string &where, const std::string &what);

/// What stands there, short enough for one line.
std::string shown(const Json &value);

int read_integer(const std::string &where, const std::string &what, const Json &value, int low,
                 int high);

/// An object whose fields are asked for by name; none but these may be there.
class CellFields {
public:
  /// Refuses what is no object, a field that is missing or unknown, and a bad name.
  CellFields(const std::string &where, const Json &object, std::span<const char *const> required,
             std::span<const char *const> optional = {});

  const std::string &name() const { return name_; }
  const std::string &where() const { return where_; } ///< with the name
  bool has(const char *field) const { return object_.contains(field); }
  const Json &operator[](const char *field) const { return object_.at(field); }
  int integer(const char *field, int low, int high) const {
    return read_integer(where_, field, object_.at(field), low, high);
  }
  /// The one of the first `count` enumerators whose name_of() the value is.
  template <class Enum>
  Enum named(const char *field, int count) const {
    std::string known;
    for (int i = 0; i < count; ++i) {
      const char *text = name_of(static_cast<Enum>(i));
      if (object_.at(field) == text) return static_cast<Enum>(i);
      known += (i == 0 ? "" : ", ") + std::string(text);
    }
    refuse_name(field, known);
  }
  [[noreturn]] void refuse(const std::string &what) const { bench::refuse(where_, what); }

private:
  [[noreturn]] void refuse_name(const char *field, const std::string &known) const;

  std::string where_, name_;
  const Json &object_;
};

/// A document in which no object names a field twice: which of the two was meant?
Json parse_once_each(const std::string &text, const std::string &origin);

} // namespace assay::bench
