// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/report/field.h"

#include <cmath>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::report {
namespace {

constexpr uint64_t kMaxCount = uint64_t{1} << 53;

std::string shown(const json &value) {
  constexpr size_t kMax = 40;
  if (value.is_structured()) return value.is_object() ? "an object" : "a list";
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= kMax ? text : text.substr(0, kMax) + "...";
}

void require_worst(const Field &worst) {
  for (const char *ratio : {"ratio_t0", "ratio_t1", "ratio_t2", "ratio_lse"})
    worst.at(ratio).number();
}

void require_sizes(const Field &reached) {
  if (!reached.value().is_object()) reached.refuse("an object");
  for (const auto &[name, size] : reached.value().items()) {
    const Field field = reached.at(name.c_str());
    field.at("ten").count();
    field.at("most").count();
    field.at("end").text();
  }
}

void require_kernel(const Field &kernel) {
  kernel.at("name").text();
  for (const char *key : {"cases", "findings", "undecided", "discarded", "outputs", "no_claim",
                          "declared_away", "certified_rows"})
    kernel.at(key).count();
  kernel.at("seconds").number();
  kernel.at("median_budget").number();
  for (const char *key : {"nan_contract", "classes", "not_covered", "gaps"})
    kernel.at(key).texts();
  if (!kernel.at("envelope").value().is_object()) kernel.at("envelope").refuse("an object");
  require_worst(kernel.at("worst"));
  if (kernel.has("reached")) require_sizes(kernel.at("reached"));
}

void require_run(const Field &run) {
  for (const char *key : {"kernel", "property", "last_discard", "error"})
    run.at(key).text();
  for (const char *key : {"cases", "findings", "undecided", "discarded", "unsupported",
                          "nothing_compared", "outputs", "no_claim"})
    run.at(key).count();
  for (const char *key : {"started", "hollow"})
    run.at(key).flag();
  run.at("seconds").number();
  run.at("classes").counts();
  run.at("missing").texts();
  run.at("outside").texts();
  require_worst(run.at("worst"));
}

void require_property(const Field &property) {
  property.at("name").text();
  property.at("statement").text();
  property.at("cases").count();
  property.at("findings").count();
  property.at("classes").counts();
}

void require_cause(const Field &cause) {
  cause.at("error").text();
  cause.at("text").text();
  if (!cause.has("source")) return;
  constexpr uint64_t kMaxLines = 1 << 30;
  cause.at("source").at("file").text();
  const Field line = cause.at("source").at("line");
  if (line.count() > kMaxLines) line.refuse("a line");
}

void require_finding(const Field &found, size_t groups) {
  for (const char *key :
       {"kernel", "property", "message", "detail", "how_far", "fingerprint", "case"})
    found.at(key).text();
  for (const char *key : {"file", "reproduce"})
    if (found.has(key)) found.at(key).text();
  for (const char *key : {"failing_cases", "cases", "draw"})
    found.at(key).count();
  require_cause(found.at("cause"));
  if (found.at("group").count() >= groups) found.at("group").refuse("the number of a group");
}

void require_group(const Field &group, size_t findings) {
  group.at("kernel").text();
  group.at("fingerprint").text();
  if (group.at("properties").texts().empty()) group.at("properties").refuse("a property");
  if (group.at("found").count() >= findings) group.at("found").refuse("the number of a finding");
}

void require_replayed(const Field &replayed) {
  replayed.at("folders").texts();
  for (const char *key : {"files", "skipped", "fail", "open", "quarantined", "undecided"})
    replayed.at(key).count();
  for (const Field &result : replayed.at("results").list())
    for (const char *key : {"file", "kernel", "property", "verdict", "message"})
      result.at(key).text();
  for (const Field &entry : replayed.at("ledger").list()) {
    for (const char *key : {"file", "status", "issue"})
      entry.at(key).text();
    entry.at("findings").count();
    entry.at("unexpected_pass").flag();
  }
}

/// Two entries of one name would be counted twice.
void require_unlike(const std::vector<Field> &entries, std::initializer_list<const char *> keys) {
  std::set<std::vector<std::string>> seen;
  for (const Field &entry : entries) {
    std::vector<std::string> name;
    for (const char *key : keys)
      name.push_back(entry.at(key).text());
    if (!seen.insert(name).second)
      entry.refuse(fmt::format("no second '{}'", fmt::join(name, " ")));
  }
}

} // namespace

void Field::refuse(const std::string &expected) const {
  throw BadReport(fmt::format("{} is {}, expected {}", path_.empty() ? "the document" : path_,
                              shown(*value_), expected));
}

Field Field::at(const char *key) const {
  if (!value_->is_object()) refuse("an object");
  const std::string path = path_.empty() ? key : path_ + "." + key;
  const auto found = value_->find(key);
  if (found == value_->end()) throw BadReport(path + " is missing");
  return {*found, path};
}

std::vector<Field> Field::list() const {
  if (!value_->is_array()) refuse("a list");
  std::vector<Field> out;
  for (size_t i = 0; i < value_->size(); ++i)
    out.emplace_back((*value_)[i], fmt::format("{}[{}]", path_, i));
  return out;
}

std::vector<std::string> Field::texts() const {
  std::vector<std::string> out;
  for (const Field &field : list())
    out.push_back(field.text());
  return out;
}

std::map<std::string, uint64_t> Field::counts() const {
  if (!value_->is_object()) refuse("an object of counts");
  std::map<std::string, uint64_t> out;
  for (const auto &[key, value] : value_->items())
    out[key] = Field(value, path_ + "." + key).count();
  return out;
}

std::string Field::text() const {
  if (!value_->is_string()) refuse("a text");
  return value_->get<std::string>();
}

uint64_t Field::count() const {
  if (!value_->is_number_unsigned() || value_->get<uint64_t>() > kMaxCount)
    refuse("an integer in 0 .. 2^53");
  return value_->get<uint64_t>();
}

double Field::number() const {
  if (!value_->is_number() || !(value_->get<double>() >= 0) || std::isinf(value_->get<double>()))
    refuse("a number that is not negative");
  return value_->get<double>();
}

bool Field::flag() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

void require_report(const json &document) {
  const Field report(document, "");
  if (!report.at("complete").flag())
    throw BadReport("complete is false: the run was ended before it could say anything");
  for (const char *key : {"version", "target"})
    report.at(key).text();
  if (!report.at("seed").value().is_number_unsigned())
    report.at("seed").refuse("an integer that is not negative");
  report.at("seconds").number();
  for (const char *key : {"cases", "findings", "undecided"})
    report.at(key).count();
  if (report.at("exit").count() > 4) report.at("exit").refuse("an exit code, 0 .. 4");
  if (report.has("assumed")) report.at("assumed").texts();
  require_replayed(report.at("replayed"));
  const std::vector<Field> kernels = report.at("kernels").list(), runs = report.at("runs").list(),
                           properties = report.at("properties").list(),
                           found = report.at("found").list(), groups = report.at("groups").list();
  for (const Field &kernel : kernels)
    require_kernel(kernel);
  for (const Field &run : runs)
    require_run(run);
  for (const Field &property : properties)
    require_property(property);
  for (const Field &finding : found)
    require_finding(finding, groups.size());
  for (const Field &group : groups)
    require_group(group, found.size());
  require_unlike(kernels, {"name"});
  require_unlike(properties, {"name"});
  require_unlike(runs, {"kernel", "property"});
}

} // namespace assay::report
