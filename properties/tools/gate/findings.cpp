// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/gate/findings.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "properties/tools/report/document.h"

namespace assay::gate {
namespace {

namespace fs = std::filesystem;
using State = Classed::State;

std::string keep(const std::string &folder, const Classed &c) {
  fs::create_directories(folder);
  const fs::path file =
      fs::path(folder) / fmt::format("{}-{}-{}.case", c.kernel, c.property, c.fingerprint);
  std::ofstream(file, std::ios::binary) << c.case_text;
  return fs::absolute(file).string();
}

Classed described(const json &document, const json &group) {
  const json &found = report::sharpest(document, group);
  Classed out;
  out.kernel = report::text_of(found, "kernel");
  out.property = report::text_of(found, "property");
  out.message = report::text_of(found, "message");
  out.how_far = report::text_of(found, "how_far");
  out.cause = report::text_of(found.at("cause"), "text");
  out.fingerprint = report::text_of(group, "fingerprint");
  out.case_text = report::text_of(found, "case");
  out.properties = group.at("properties").get<std::vector<std::string>>();
  return out;
}

/// The value of a line "key = value" of a case; empty where there is none.
std::string value_of(const std::string &text, const std::string &key) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key + " = ")) return line.substr(key.size() + 3);
  return "";
}

std::set<std::string> fingerprints(const json &document) {
  std::set<std::string> out;
  for (const json &group : document.at("groups"))
    out.insert(report::text_of(group, "fingerprint"));
  return out;
}

struct KeptKey {
  std::string file, kernel, property;
  auto operator<=>(const KeptKey &) const = default;
};

/// Paths of two revisions differ, names do not.
KeptKey key_of(const report::KeptTrouble &t) {
  return {fs::path(t.file).filename().string(), t.kernel, t.property};
}

} // namespace

const char *name_of(State state) {
  static constexpr const char *kNames[] = {"new", "known", "fixed", "flaky"};
  return kNames[static_cast<int>(state)];
}

State state_of(const Replays &base, const Replays &head, Seen seen) {
  if (head.fails == 0) return !seen.head && base.fails > 0 ? State::kFixed : State::kFlaky;
  if (head.fails < head.runs) return State::kFlaky;
  if (base.runs > 0 && base.alike == base.runs) return State::kKnown;
  return base.alike > 0 ? State::kFlaky : State::kNew;
}

bool is_red(State state, const Replays &base, Seen seen) {
  if (state == State::kNew) return true;
  // One that base shows as well, now and then, is none of the change.
  return state == State::kFlaky && base.fails == 0 && !seen.base;
}

std::vector<Classed> classify(const RevisionPair &revisions, const json &base, const json &head,
                              const std::string &out, const Progress &progress) {
  std::vector<Classed> classed;
  const std::set<std::string> of_base = fingerprints(base), of_head = fingerprints(head);
  const auto judge = [&](Classed c, Seen seen) {
    c.file = keep(out, c);
    progress.step(fmt::format("replay on both revisions: {} {}", c.kernel, c.property));
    c.head = replay(revisions.head, c.file, c.fingerprint, progress);
    c.base = replay(revisions.base, c.file, c.fingerprint, progress);
    c.state = state_of(c.base, c.head, seen);
    c.red = is_red(c.state, c.base, seen);
    c.reproduce = replay_line(c.state == State::kFixed ? revisions.base : revisions.head, c.file);
    classed.push_back(std::move(c));
  };
  for (const json &group : head.at("groups")) {
    const Classed c = described(head, group);
    judge(c, {.base = of_base.count(c.fingerprint) > 0, .head = true});
  }
  for (const json &group : base.at("groups"))
    if (of_head.count(report::text_of(group, "fingerprint")) == 0)
      judge(described(base, group), {.base = true, .head = false});
  return classed;
}

std::vector<Classed> classify_added(const RevisionPair &revisions, const std::string &path,
                                    const std::string &text, const std::string &out,
                                    const Progress &progress) {
  Classed c;
  c.kernel = value_of(text, "kernel");
  c.property = value_of(text, "property");
  c.properties = {c.property};
  c.fingerprint = fs::path(path).stem().string();
  c.case_text = text;
  c.file = keep(out, c);
  progress.step("replay on both revisions: " + path);
  c.head = replay(revisions.head, c.file, "", progress);
  c.base = replay(revisions.base, c.file, "", progress);
  const std::string status = value_of(text, "status");
  const bool must_pass = status.empty() || status == "fixed";
  if (c.head.fails > 0 && !must_pass) return {};
  if (c.head.fails == 0 && c.base.fails == 0) return {};
  c.state = c.head.fails > 0 ? State::kNew : State::kFixed;
  c.red = c.head.fails > 0;
  const Replays &shown = c.head.fails > 0 ? c.head : c.base;
  c.message = fmt::format("{}: {}", path, shown.message);
  c.reproduce = replay_line(c.red ? revisions.head : revisions.base, c.file);
  return {c};
}

RedLines kept_red_lines(const json &base, const json &head, std::vector<std::string> &notes) {
  std::set<KeptKey> before;
  for (const report::KeptTrouble &t : report::kept_troubles(base, true))
    before.insert(key_of(t));
  RedLines out;
  for (const report::KeptTrouble &t : report::kept_troubles(head, true)) {
    const std::string text = fmt::format("{}: {}{}", key_of(t).file,
                                         t.property.empty() ? "" : t.property + ": ", t.message);
    if (before.count(key_of(t)) > 0)
      notes.push_back("on both revisions: " + text);
    else
      out.push_back(red_line(t.kernel.empty() ? "ledger" : "kept-finding", t.kernel, text));
  }
  return out;
}

RedLines proof_red_lines(const json &base, const json &head, std::vector<std::string> &notes) {
  std::set<std::pair<std::string, std::string>> before;
  for (const report::Gap &gap : report::gaps(base))
    before.emplace(gap.kernel, gap.property);
  RedLines out;
  for (const report::Gap &gap : report::gaps(head)) {
    const std::string text =
        fmt::format("{}{}", gap.property.empty() ? "" : gap.property + ": ", gap.text);
    if (before.count({gap.kernel, gap.property}) > 0)
      notes.push_back(fmt::format("not proved on either revision: {} {}", gap.kernel, text));
    else
      out.push_back(red_line("not-proved", gap.kernel, text));
  }
  return out;
}

} // namespace assay::gate
