// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/report/merge.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/tools/report/document.h"
#include "properties/tools/report/merge_parts.h"

namespace assay::report {
namespace {

[[noreturn]] void refuse(const Shard &shard, const std::string &why) {
  throw BadReport(shard.file + ": " + why);
}

std::vector<std::string> sorted_names(const json &document) {
  std::vector<std::string> out;
  for (const json &kernel : document.at("kernels"))
    out.push_back(text_of(kernel, "name"));
  std::sort(out.begin(), out.end());
  return out;
}

/// The library that a document names: "my_kernels 0123456789abcdef".
std::string library_id(const json &document) {
  const json library = document.value("library", json::object());
  const std::string id = library.is_object() ? text_of(library, "id") : "";
  return id.empty() || id == "unknown" ? "" : text_of(library, "name") + " " + id;
}

json assumed(const json &document) { return document.value("assumed", json::array()); }

void require_together(const Shard &first, const Shard &other) {
  for (const char *key : {"version", "target"})
    if (first.document.at(key) != other.document.at(key))
      refuse(other, fmt::format("{} is '{}', that of {} is '{}'", key, text_of(other.document, key),
                                first.file, text_of(first.document, key)));
  if (const json ours = assumed(first.document), its = assumed(other.document); ours != its)
    refuse(other,
           fmt::format("assumed is {}, that of {} is {}", its.dump(), first.file, ours.dump()));
  // One name, and other code behind it: what one was proved of, the other was not.
  const std::string id = library_id(first.document), its_id = library_id(other.document);
  if (!id.empty() && !its_id.empty() && id != its_id)
    refuse(other, fmt::format("its library is {}, that of {} is {}", its_id, first.file, id));
  const auto ours = sorted_names(first.document), theirs = sorted_names(other.document);
  if (ours != theirs)
    refuse(other, fmt::format("kernels are '{}', those of {} are '{}'", joined(theirs), first.file,
                              joined(ours)));
}

/// Seeds that a document's cases were drawn with: its own, or those of what it was merged from.
std::vector<uint64_t> seeds_of(const Shard &shard) {
  const Field report(shard.document, "");
  std::vector<uint64_t> out;
  if (!report.has("seeds")) return {report.at("seed").value().get<uint64_t>()};
  for (const Field &seed : report.at("seeds").list()) {
    if (!seed.value().is_number_unsigned()) seed.refuse("an integer that is not negative");
    out.push_back(seed.value().get<uint64_t>());
  }
  return out;
}

/// What was drawn in two shards was drawn twice, not twice as much.
void require_disjoint(const std::vector<Shard> &shards) {
  std::map<std::tuple<uint64_t, std::string, std::string>, const Shard *> drawn;
  for (const Shard &shard : shards)
    for (uint64_t seed : seeds_of(shard))
      for (const json &run : shard.document.at("runs")) {
        const std::string kernel = text_of(run, "kernel"), property = text_of(run, "property");
        const auto [at, fresh] = drawn.insert({{seed, kernel, property}, &shard});
        if (!fresh)
          refuse(shard, fmt::format("seed {}: {} was checked on {} with it in {} too", seed,
                                    property, kernel, at->second->file));
      }
}

json seeds_json(const std::vector<Shard> &shards) {
  std::set<uint64_t> seeds;
  for (const Shard &shard : shards)
    for (uint64_t seed : seeds_of(shard))
      seeds.insert(seed);
  return json(seeds);
}

uint64_t sum(const std::vector<Shard> &shards, const char *key) {
  uint64_t out = 0;
  for (const Shard &shard : shards)
    out += shard.document.at(key).get<uint64_t>();
  return out;
}

/// Kept findings count once, however many shards replayed them.
uint64_t drawn_of(const std::vector<Shard> &shards, const char *key, const char *kept) {
  uint64_t out = 0;
  for (const Shard &shard : shards) {
    const uint64_t all = shard.document.at(key).get<uint64_t>();
    out += all - std::min(all, shard.document.at("replayed").at(kept).get<uint64_t>());
  }
  return out;
}

/// A shard that proved nothing for a reason that its document does not give.
bool unexplained(const json &document) {
  return document.at("exit").get<int>() >= 2 && gaps(document).empty() &&
         document.at("undecided").get<uint64_t>() == 0;
}

int exit_of(const std::vector<Shard> &shards, const json &document) {
  if (!document.at("groups").empty() || !kept_troubles(document).empty()) return 1;
  const bool bad = std::any_of(shards.begin(), shards.end(),
                               [](const Shard &shard) { return unexplained(shard.document); });
  return bad || !gaps(document).empty() || document.at("undecided").get<uint64_t>() > 0 ? 4 : 0;
}

json shards_json(const std::vector<Shard> &shards) {
  json out = json::array();
  for (const Shard &shard : shards)
    out.push_back({{"file", shard.file},
                   {"seed", shard.document.at("seed")},
                   {"cases", shard.document.at("cases")},
                   {"exit", shard.document.at("exit")}});
  return out;
}

} // namespace

json merged(const std::vector<Shard> &shards) {
  if (shards.empty()) throw BadReport("no report to merge");
  for (const Shard &shard : shards)
    try {
      require_report(shard.document);
      seeds_of(shard);
    } catch (const BadReport &e) {
      refuse(shard, e.what());
    }
  for (const Shard &shard : shards)
    require_together(shards[0], shard);
  require_disjoint(shards);
  json out = {{"library", shards[0].document.value("library", json::object())},
              {"commit", text_of(shards[0].document, "commit")},
              {"version", shards[0].document.at("version")},
              {"target", shards[0].document.at("target")},
              {"assumed", assumed(shards[0].document)},
              {"complete", true},
              {"merged", shards_json(shards)},
              {"cases", sum(shards, "cases")},
              {"replayed", merged_replayed(shards)},
              {"runs", merged_runs(shards)},
              {"properties", merged_properties(shards)}};
  out["seeds"] = seeds_json(shards);
  out["seed"] = out["seeds"].empty() ? shards[0].document.at("seed") : out["seeds"][0];
  double seconds = 0;
  for (const Shard &shard : shards)
    seconds += shard.document.at("seconds").get<double>();
  out["seconds"] = seconds;
  const json &kept = out["replayed"];
  out["findings"] = drawn_of(shards, "findings", "fail") + kept.at("fail").get<uint64_t>();
  out["undecided"] =
      drawn_of(shards, "undecided", "undecided") + kept.at("undecided").get<uint64_t>();
  out["kernels"] = merged_kernels(shards, out["runs"]);
  merge_findings(shards, out);
  out["exit"] = exit_of(shards, out);
  return out;
}

} // namespace assay::report
