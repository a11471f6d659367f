// SPDX-License-Identifier: Apache-2.0
// A document of `check --json` that somebody hands in, field by field: what is not as `check`
// writes it is refused by the name of its field.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace assay::report {

using nlohmann::json;

/// "runs[3].cases is \"x\", expected an integer in 0 .. 2^53".
struct BadReport : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A value and the path to it. Reads throw BadReport.
class Field {
public:
  Field(const json &value, std::string path) : value_(&value), path_(std::move(path)) {}

  const json &value() const { return *value_; }
  bool has(const char *key) const { return value_->is_object() && value_->contains(key); }
  Field at(const char *key) const;
  std::vector<Field> list() const;
  std::vector<std::string> texts() const;
  std::map<std::string, uint64_t> counts() const; ///< counts of an object
  std::string text() const;
  uint64_t count() const; ///< 0 .. 2^53
  double number() const;  ///< finite and not negative
  bool flag() const;
  [[noreturn]] void refuse(const std::string &expected) const;

private:
  const json *value_;
  std::string path_;
};

/// Throws BadReport where a document is not one of a run of `check` that ended.
void require_report(const json &document);

} // namespace assay::report
