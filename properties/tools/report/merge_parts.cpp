// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/report/merge_parts.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/tools/report/document.h"

namespace assay::report {
namespace {

constexpr uint64_t kCasesOfClass = 2; ///< cases that an important class needs, as in check

void add(json &to, const json &from, std::initializer_list<const char *> keys) {
  for (const char *key : keys)
    to[key] = to.at(key).get<uint64_t>() + from.at(key).get<uint64_t>();
}

void add_seconds(json &to, const json &from) {
  to["seconds"] = to.at("seconds").get<double>() + from.at("seconds").get<double>();
}

void keep_worst(json &to, const json &from) {
  for (const char *key : {"ratio_t0", "ratio_t1", "ratio_t2", "ratio_lse"})
    to["worst"][key] =
        std::max(to.at("worst").at(key).get<double>(), from.at("worst").at(key).get<double>());
}

void add_classes(json &to, const json &from) {
  for (const auto &[name, count] : from.at("classes").items()) {
    json &sum = to["classes"][name];
    sum = (sum.is_null() ? 0 : sum.get<uint64_t>()) + count.get<uint64_t>();
  }
}

void unite(json &to, const json &from) {
  for (const json &name : from)
    if (std::find(to.begin(), to.end(), name) == to.end()) to.push_back(name);
}

template <class Wanted>
json only(const json &names, Wanted wanted) {
  json out = json::array();
  for (const json &name : names)
    if (wanted(name.get<std::string>())) out.push_back(name);
  return out;
}

/// Calls fold(to, from) for entries of one name, and keeps the first of each.
template <class Key, class Fold>
json united(const std::vector<Shard> &shards, const json::json_pointer &list, Key key, Fold fold) {
  json out = json::array();
  std::map<std::string, size_t> places;
  for (const Shard &shard : shards)
    for (const json &entry : shard.document.at(list)) {
      const auto [at, fresh] = places.insert({key(entry), out.size()});
      if (fresh)
        out.push_back(entry);
      else
        fold(shard, out[at->second], entry);
    }
  return out;
}

std::string pair_of(const json &run) {
  return text_of(run, "kernel") + '\n' + text_of(run, "property");
}

void add_run(json &to, const json &from) {
  add(to, from,
      {"cases", "findings", "undecided", "discarded", "unsupported", "nothing_compared", "outputs",
       "no_claim"});
  add_seconds(to, from);
  keep_worst(to, from);
  add_classes(to, from);
  unite(to["missing"], from.at("missing"));
  unite(to["outside"], from.at("outside"));
  for (const char *key : {"last_discard", "error"})
    if (text_of(to, key).empty()) to[key] = from.at(key);
  to["hollow"] = to.at("hollow").get<bool>() && from.at("hollow").get<bool>();
  // What one shard left out the others' seeds do not draw.
  to["started"] = to.at("started").get<bool>() && from.at("started").get<bool>();
}

/// A class that a shard alone saw too little of.
void settle_classes(json &run) {
  const json &classes = run.at("classes");
  run["missing"] = only(run.at("missing"), [&](const std::string &name) {
    return classes.value(name, uint64_t{0}) < kCasesOfClass;
  });
  run["outside"] =
      only(run.at("outside"), [&](const std::string &name) { return !classes.contains(name); });
}

void require_same(const Shard &shard, const json &to, const json &from, const char *key) {
  if (to.at(key) == from.at(key)) return;
  throw BadReport(fmt::format("{}: {} of {} is not that of {}", shard.file, key,
                              text_of(from, "name"), "the reports before"));
}

/// Ten draws of one shard are ten draws of all.
void keep_largest_sizes(json &to, const json &from) {
  const json sizes = from.value("reached", json::object());
  for (const auto &[field, size] : sizes.items()) {
    json &largest = to["reached"][field];
    const json ten =
        largest.is_null() ? size.at("ten") : std::max(largest.at("ten"), size.at("ten"));
    if (largest.is_null() || largest.at("most") < size.at("most")) largest = size;
    largest["ten"] = ten;
  }
}

void add_kernel(const Shard &shard, json &to, const json &from) {
  for (const char *key : {"nan_contract", "classes", "envelope"})
    require_same(shard, to, from, key);
  add(to, from,
      {"cases", "findings", "undecided", "discarded", "outputs", "no_claim", "declared_away",
       "certified_rows"});
  add_seconds(to, from);
  keep_worst(to, from);
  // The median of all is in none of them: what a pass is worth at least.
  to["median_budget"] =
      std::max(to.at("median_budget").get<double>(), from.at("median_budget").get<double>());
  unite(to["gaps"], from.at("gaps"));
  unite(to["not_covered"], from.at("not_covered"));
  keep_largest_sizes(to, from);
}

/// Severity of a verdict on a kept finding.
int rank(const json &result) {
  const std::string verdict = text_of(result, "verdict");
  return verdict == "FAIL" ? 2 : verdict == "UNDECIDED" ? 1 : 0;
}

uint64_t largest(const std::vector<Shard> &shards, const char *key) {
  uint64_t out = 0;
  for (const Shard &shard : shards)
    out = std::max(out, shard.document.at("replayed").at(key).get<uint64_t>());
  return out;
}

} // namespace

json merged_runs(const std::vector<Shard> &shards) {
  json out = united(shards, json::json_pointer("/runs"), pair_of,
                    [](const Shard &, json &to, const json &from) { add_run(to, from); });
  for (json &run : out)
    settle_classes(run);
  return out;
}

json merged_kernels(const std::vector<Shard> &shards, const json &runs) {
  const auto name = [](const json &kernel) { return text_of(kernel, "name"); };
  json out = united(shards, json::json_pointer("/kernels"), name, add_kernel);
  for (json &kernel : out) {
    std::set<std::string> seen;
    bool decided = false;
    for (const json &run : runs) {
      if (text_of(run, "kernel") != name(kernel)) continue;
      decided = decided || run.at("cases").get<uint64_t>() > 0;
      for (const auto &[word, count] : run.at("classes").items())
        seen.insert(word);
    }
    kernel["not_covered"] = only(kernel.at("not_covered"),
                                 [&](const std::string &word) { return !seen.contains(word); });
    // "No property decided a case" and "no property says anything about it" are of a shard.
    kernel["gaps"] = only(kernel.at("gaps"), [&](const std::string &gap) {
      return !decided || gap.rfind("no property", 0) != 0;
    });
  }
  return out;
}

json merged_properties(const std::vector<Shard> &shards) {
  const auto name = [](const json &property) { return text_of(property, "name"); };
  return united(shards, json::json_pointer("/properties"), name,
                [](const Shard &shard, json &to, const json &from) {
                  require_same(shard, to, from, "statement");
                  add(to, from, {"cases", "findings"});
                  add_classes(to, from);
                });
}

json merged_replayed(const std::vector<Shard> &shards) {
  const auto result_key = [](const json &r) { return pair_of(r) + '\n' + text_of(r, "file"); };
  const auto file = [](const json &entry) { return text_of(entry, "file"); };
  json folders = json::array();
  for (const Shard &shard : shards)
    unite(folders, shard.document.at("replayed").at("folders"));
  const json results = united(shards, json::json_pointer("/replayed/results"), result_key,
                              [](const Shard &, json &to, const json &from) {
                                if (rank(from) > rank(to)) to = from;
                              });
  const json ledger = united(shards, json::json_pointer("/replayed/ledger"), file,
                             [](const Shard &, json &to, const json &from) {
                               to["findings"] = std::max(to.at("findings").get<uint64_t>(),
                                                         from.at("findings").get<uint64_t>());
                               to["unexpected_pass"] = to.at("unexpected_pass").get<bool>() ||
                                                       from.at("unexpected_pass").get<bool>();
                             });
  uint64_t fail = 0;
  for (const json &entry : ledger)
    fail += entry.at("findings").get<uint64_t>();
  return {{"folders", folders},
          {"files", ledger.size()},
          {"skipped", largest(shards, "skipped")},
          {"fail", fail},
          {"open", largest(shards, "open")},
          {"quarantined", largest(shards, "quarantined")},
          {"undecided", largest(shards, "undecided")},
          {"ledger", ledger},
          {"results", results}};
}

void merge_findings(const std::vector<Shard> &shards, json &document) {
  std::map<std::pair<std::string, std::string>, size_t> places;
  json groups = json::array();
  std::vector<json> members; // members of each group
  for (const Shard &shard : shards) {
    const json &theirs = shard.document.at("groups"), &found = shard.document.at("found");
    for (size_t i = 0; i < theirs.size(); ++i) {
      const auto key = std::pair(text_of(theirs[i], "kernel"), text_of(theirs[i], "fingerprint"));
      const auto [at, fresh] = places.insert({key, groups.size()});
      if (fresh) {
        groups.push_back(theirs[i]);
        members.push_back(json::array({sharpest(shard.document, theirs[i])}));
      } else {
        unite(groups[at->second]["properties"], theirs[i].at("properties"));
      }
      const size_t first = theirs[i].at("found").get<size_t>();
      for (size_t f = 0; f < found.size(); ++f)
        if (found[f].at("group").get<size_t>() == i && !(fresh && f == first))
          members[at->second].push_back(found[f]);
    }
  }
  json all = json::array();
  for (size_t i = 0; i < groups.size(); ++i) {
    groups[i]["found"] = all.size();
    for (json &member : members[i]) {
      member["group"] = i;
      all.push_back(std::move(member));
    }
  }
  document["found"] = std::move(all);
  document["groups"] = std::move(groups);
}

} // namespace assay::report
