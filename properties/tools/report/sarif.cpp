// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/report/sarif.h"

#include <nlohmann/json.hpp>

#include "properties/tools/report/document.h"
#include "properties/tools/report/escape.h"

namespace assay::report {
namespace {

constexpr const char *kLedgerRule = "open_findings_fail";

json message(const std::string &text) { return {{"text", text}}; }

json rules(const json &document) {
  json out = json::array();
  for (const json &property : document.at("properties"))
    out.push_back({{"id", text_of(property, "name")},
                   {"shortDescription", message(text_of(property, "statement"))}});
  out.push_back({{"id", kLedgerRule},
                 {"shortDescription", message("a finding whose status is open still fails")}});
  return out;
}

json location(const std::string &file, int line, const std::string &kernel) {
  json out = {
      {"physicalLocation",
       {{"artifactLocation", {{"uri", file_uri(file)}}}, {"region", {{"startLine", line}}}}}};
  if (!kernel.empty()) out["logicalLocations"] = {{{"name", kernel}, {"kind", "function"}}};
  return out;
}

/// The kernel's own line where a hazard has one, else the file of the case.
json locations(const json &found) {
  const std::string kernel = text_of(found, "kernel");
  const json &cause = found.at("cause");
  json out = json::array();
  if (cause.contains("source"))
    out.push_back(location(text_of(cause.at("source"), "file"),
                           cause.at("source").at("line").get<int>(), kernel));
  else // code scanning takes no result without a file, and a finding may have none
    out.push_back(
        location(found.contains("file") ? text_of(found, "file") : "findings", 1, kernel));
  return out;
}

json result(const json &document, const json &group) {
  const json &found = sharpest(document, group);
  std::string text = text_of(found, "kernel") + " " + text_of(found, "property") + ": " +
                     text_of(found, "message");
  if (const std::string far = text_of(found, "how_far"); !far.empty()) text += "; " + far;
  return {{"ruleId", text_of(found, "property")},
          {"level", "error"},
          {"message", message(text)},
          {"locations", locations(found)},
          {"partialFingerprints", {{"assayCause/v1", text_of(group, "fingerprint")}}},
          {"properties",
           {{"kernel", text_of(found, "kernel")},
            {"cause", text_of(found.at("cause"), "text")},
            {"alsoSeenBy", also_seen_by(group)},
            {"reproduce", text_of(found, "reproduce")},
            {"case", text_of(found, "case")}}}};
}

json result(const KeptTrouble &t) {
  const std::string who = t.kernel.empty() ? "" : t.kernel + " " + t.property + ": ";
  return {{"ruleId", t.kernel.empty() ? kLedgerRule : t.property},
          {"level", "error"},
          {"message", message(t.file + ": " + who + t.message)},
          {"locations", json::array({location(t.file, 1, t.kernel)})}};
}

json invocation(const json &document) {
  const int exit = document.at("exit").get<int>();
  json out = {{"executionSuccessful", exit == 0 || exit == 1},
              {"exitCode", exit},
              {"toolExecutionNotifications", json::array()}};
  for (const Gap &gap : gaps(document)) {
    const std::string who = gap.kernel + (gap.property.empty() ? "" : " " + gap.property);
    out["toolExecutionNotifications"].push_back(
        {{"level", "error"}, {"message", message(who + ": " + gap.text)}});
  }
  return out;
}

} // namespace

std::string sarif(const json &document) {
  json results = json::array();
  for (const json &group : document.at("groups"))
    results.push_back(result(document, group));
  for (const KeptTrouble &t : kept_troubles(document))
    results.push_back(result(t));
  const json log = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                    {"version", "2.1.0"},
                    {"runs", json::array({{{"tool",
                                            {{"driver",
                                              {{"name", "assay"},
                                               {"version", text_of(document, "version")},
                                               {"rules", rules(document)}}}}},
                                           {"invocations", json::array({invocation(document)})},
                                           {"results", results}}})}};
  return log.dump(2) + "\n";
}

} // namespace assay::report
