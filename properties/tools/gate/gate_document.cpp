// SPDX-License-Identifier: Apache-2.0
// What a gate knows as the document of --json.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "properties/tools/gate/declarations.h"
#include "properties/tools/gate/error.h"
#include "properties/tools/gate/gate.h"

namespace assay::gate {
namespace {

json to_json(const RedLine &line) {
  return {{"id", line.id},         {"text", line.text},
          {"kernel", line.kernel}, {"acceptable", line.acceptable},
          {"file", line.file},     {"reproduce", line.reproduce}};
}

json to_json(const Replays &r) { return {{"runs", r.runs}, {"fails", r.fails}}; }

json to_json(const Classed &c) {
  return {{"state", name_of(c.state)},
          {"red", c.red},
          {"kernel", c.kernel},
          {"property", c.property},
          {"properties", c.properties},
          {"message", c.message},
          {"how_far", c.how_far},
          {"cause", c.cause},
          {"fingerprint", c.fingerprint},
          {"case", c.case_text},
          {"file", c.file},
          {"reproduce", c.reproduce},
          {"base", to_json(c.base)},
          {"head", to_json(c.head)}};
}

json to_json(const ErrorShift &s) {
  return {{"kernel", s.kernel}, {"output", s.output}, {"base", s.base},
          {"head", s.head},     {"more", s.more},     {"less", s.less},
          {"median", s.median}, {"p", s.p},           {"grew", s.grew}};
}

int cases_of(const json &document, const std::string &kernel) {
  const json *entry = named(document.at("kernels"), kernel);
  return entry == nullptr ? 0 : entry->at("cases").get<int>();
}

} // namespace

json Gate::kernel_row(const JudgedChange &judged, const std::string &name) const {
  json row = {{"name", name}, {"touched", judged.all_touched || judged.touched.count(name) > 0},
              {"cases", 0},   {"base_cases", 0},
              {"new", 0},     {"known", 0},
              {"fixed", 0},   {"flaky", 0}};
  for (const Round &round : rounds_) {
    row["cases"] = row.at("cases").get<int>() + cases_of(round.head, name);
    row["base_cases"] = row.at("base_cases").get<int>() + cases_of(round.base, name);
  }
  for (const Classed &c : findings_)
    if (c.kernel == name) row[name_of(c.state)] = row.at(name_of(c.state)).get<int>() + 1;
  for (const char *output : {"o", "lse"}) {
    double base = 0, head = 0;
    for (const ErrorShift &shift : shifts_)
      if (shift.kernel == name && shift.output == output) {
        base = std::max(base, shift.base);
        head = std::max(head, shift.head);
      }
    row[std::string("error_") + output] = {{"base", base}, {"head", head}};
  }
  return row;
}

json Gate::document() const {
  json out = document_;
  out["version"] = options_.version;
  out["target"] = options_.target;
  out["seed"] = options_.seed;
  out["assumed"] = options_.assumed;
  out["seconds"] = seconds();
  out["complete"] = true;
  out["exit"] = red() ? kFinding : failures_.empty() ? kPass : kHarness;
  for (const char *key : {"red", "accepted", "findings", "errors", "kernels"})
    if (!out.contains(key)) out[key] = json::array();
  for (const RedLine &line : red_) {
    const bool accepted =
        line.acceptable && std::count(options_.accept.begin(), options_.accept.end(), line.id) > 0;
    out[accepted ? "accepted" : "red"].push_back(to_json(line));
  }
  out["notes"] = notes_;
  out["failures"] = failures_;
  for (const Classed &c : findings_)
    out["findings"].push_back(to_json(c));
  for (const ErrorShift &shift : shifts_)
    out["errors"].push_back(to_json(shift));
  out["checks"] = json::array();
  for (const Round &round : rounds_)
    out["checks"].push_back({{"base", round.base}, {"head", round.head}});
  return out;
}

} // namespace assay::gate
