// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/report/document.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::report {
namespace {

std::string counted(size_t n, const char *word) {
  return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s");
}

bool listed(const json &names, const std::string &name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Cell cell_of(const json &run, const std::string &name) {
  if (listed(run.at("missing"), name)) return Cell::kMissing;
  if (run.at("classes").contains(name)) return Cell::kCovered;
  return listed(run.at("outside"), name) ? Cell::kOutside : Cell::kNothing;
}

Cell of_all(const std::vector<Cell> &cells) {
  for (Cell cell : {Cell::kMissing, Cell::kCovered, Cell::kOutside})
    if (std::find(cells.begin(), cells.end(), cell) != cells.end()) return cell;
  return Cell::kNothing;
}

/// Why a run of one property proves less than it should; empty: it does not.
std::string gap_text(const json &run) {
  if (const std::string error = text_of(run, "error"); !error.empty()) return error;
  if (run.at("hollow").get<bool>()) {
    const std::string why = text_of(run, "last_discard");
    return fmt::format("no case was decided ({} discarded{}{})", run.at("discarded").get<int>(),
                       why.empty() ? "" : "; the last: ", why);
  }
  if (!run.at("missing").empty())
    return "fewer than two cases of class " +
           joined(run.at("missing").get<std::vector<std::string>>());
  return "";
}

/// That this run decided no case is all that the gap says.
bool only_refused(const json &document, const Gap &gap) {
  for (const json &run : document.at("runs"))
    if (text_of(run, "kernel") == gap.kernel && text_of(run, "property") == gap.property)
      return run.at("hollow").get<bool>() && text_of(run, "error").empty() && !gap.undecided;
  return false;
}

/// Why most properties had no case of a kernel.
std::string refusals(const json &document, const std::string &kernel) {
  std::map<std::string, int> count;
  for (const json &run : document.at("runs"))
    if (text_of(run, "kernel") == kernel && !text_of(run, "last_discard").empty())
      ++count[text_of(run, "last_discard")];
  const auto most = std::max_element(
      count.begin(), count.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
  if (most == count.end()) return "";
  return fmt::format("; the last call of {} of them: {} (--only names a shape that it takes)",
                     most->second, most->first);
}

std::string unstarted_text(const json &document, const std::string &kernel) {
  size_t all = 0, unstarted = 0;
  for (const json &run : document.at("runs")) {
    if (text_of(run, "kernel") != kernel) continue;
    ++all;
    unstarted += !run.at("started").get<bool>();
  }
  return unstarted == 0 ? "" : fmt::format("{} of {} properties not run", unstarted, all);
}

} // namespace

std::string text_of(const json &object, const char *key) {
  const auto at = object.find(key);
  if (at == object.end() || at->is_null()) return "";
  return at->is_string() ? at->get<std::string>() : at->dump();
}

std::string joined(const std::vector<std::string> &words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string ratio_text(double ratio) {
  if (!(ratio > 0)) return "-";
  if (ratio >= 1e300) return "inf";
  return ratio < 100 ? fmt::format("{:.3f}", ratio) : fmt::format("{:.1e}", ratio);
}

std::string verdict_word(const json &document) {
  const int exit = document.at("exit").get<int>();
  return exit == 0 ? "PASS" : exit == 1 ? "FAIL" : "INCOMPLETE";
}

/// "seed 1", or of a merged document "seeds 1, 2, 5".
static std::string seed_text(const json &document) {
  const auto seeds = document.find("seeds");
  if (seeds == document.end() || seeds->size() < 2) return "seed " + text_of(document, "seed");
  constexpr size_t kMax = 4;
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min(kMax, seeds->size()); ++i)
    words.push_back((*seeds)[i].dump());
  if (seeds->size() > kMax) words.push_back(fmt::format("and {} more", seeds->size() - kMax));
  return "seeds " + joined(words);
}

std::string assumed_text(const json &document) {
  const auto words = document.value("assumed", std::vector<std::string>{});
  return words.empty() ? "" : ", assumed: " + joined(words);
}

std::string summary_line(const json &document) {
  const size_t findings = document.at("groups").size() + kept_troubles(document).size();
  return fmt::format("{} in {} of {}: target {}, {}{}, {:.1f} s", counted(findings, "finding"),
                     counted(document.at("cases").get<size_t>(), "case"),
                     counted(document.at("kernels").size(), "kernel"), text_of(document, "target"),
                     seed_text(document), assumed_text(document),
                     document.at("seconds").get<double>());
}

std::string identity_line(const json &document) {
  if (!document.contains("library") || !document.at("library").is_object()) return "";
  const json &library = document.at("library");
  const std::string file = text_of(library, "file"), name = text_of(library, "name");
  std::string out =
      file.empty() ? "kernels of " + name
                   : fmt::format("kernels of {} in {} ({})", name, file, text_of(library, "id"));
  out += fmt::format(", assay {} of commit {}", text_of(document, "version"),
                     text_of(document, "commit"));
  for (const char *key : {"date", "machine"})
    if (const std::string text = text_of(document, key); !text.empty()) out += ", " + text;
  return out;
}

const json &sharpest(const json &document, const json &group) {
  return document.at("found").at(group.at("found").get<size_t>());
}

std::vector<std::string> also_seen_by(const json &group) {
  auto names = group.at("properties").get<std::vector<std::string>>();
  names.erase(names.begin());
  return names;
}

std::vector<KeptTrouble> kept_troubles(const json &document, bool all) {
  std::vector<KeptTrouble> out;
  const json &replayed = document.at("replayed");
  for (const json &r : replayed.at("results"))
    if (text_of(r, "verdict") == "FAIL" && (all || text_of(r, "same_as").empty()))
      out.push_back({text_of(r, "file"), text_of(r, "kernel"), text_of(r, "property"),
                     text_of(r, "message")});
  for (const json &entry : replayed.at("ledger"))
    if (entry.at("unexpected_pass").get<bool>())
      out.push_back({text_of(entry, "file"), "", "",
                     fmt::format("its status is '{}', but it passes: set 'status = fixed'",
                                 text_of(entry, "status"))});
  return out;
}

std::vector<Gap> gaps(const json &document) {
  std::vector<Gap> out;
  for (const json &kernel : document.at("kernels"))
    if (std::string text = unstarted_text(document, text_of(kernel, "name")); !text.empty())
      out.push_back({text_of(kernel, "name"), "", std::move(text), true});
  for (const json &run : document.at("runs")) {
    if (!run.at("started").get<bool>()) continue;
    const std::string kernel = text_of(run, "kernel"), property = text_of(run, "property");
    if (std::string text = gap_text(run); !text.empty())
      out.push_back({kernel, property, std::move(text)});
    if (const auto undecided = run.at("undecided").get<size_t>(); undecided > 0)
      out.push_back({.kernel = kernel,
                     .property = property,
                     .text = counted(undecided, "undecided case"),
                     .undecided = true});
  }
  for (const json &kernel : document.at("kernels"))
    for (const json &text : kernel.at("gaps"))
      out.push_back({text_of(kernel, "name"), "", text.get<std::string>()});
  for (const json &r : document.at("replayed").at("results"))
    if (text_of(r, "verdict") == "UNDECIDED")
      out.push_back({.kernel = text_of(r, "kernel"),
                     .property = "",
                     .text = text_of(r, "file") + ": undecided",
                     .undecided = true,
                     .kept = true});
  return out;
}

std::vector<Gap> gaps_in_short(const json &document) {
  std::vector<Gap> out;
  std::set<std::string> idle;
  for (const json &kernel : document.at("kernels"))
    if (listed(kernel.at("gaps"), kNothingDecided)) idle.insert(text_of(kernel, "name"));
  for (Gap &gap : gaps(document)) {
    if (idle.count(gap.kernel) > 0 && only_refused(document, gap)) continue;
    if (gap.text == kNothingDecided) gap.text += refusals(document, gap.kernel);
    out.push_back(std::move(gap));
  }
  return out;
}

int Coverage::count(Cell cell) const {
  return static_cast<int>(
      std::count_if(rows.begin(), rows.end(), [&](const Row &row) { return row.all == cell; }));
}

std::vector<std::string> Coverage::names(Cell cell) const {
  std::vector<std::string> out;
  for (const Row &row : rows)
    if (row.all == cell) out.push_back(row.name);
  return out;
}

Coverage coverage(const json &document, const std::string &kernel) {
  Coverage out;
  for (const json &entry : document.at("kernels"))
    if (text_of(entry, "name") == kernel)
      for (const json &name : entry.at("classes"))
        out.rows.push_back({name.get<std::string>(), {}, {}, Cell::kNothing});
  for (const json &run : document.at("runs")) {
    if (text_of(run, "kernel") != kernel) continue;
    out.properties.push_back(text_of(run, "property"));
    for (Coverage::Row &row : out.rows) {
      row.cells.push_back(cell_of(run, row.name));
      row.cases.push_back(run.at("classes").value(row.name, 0));
    }
  }
  for (Coverage::Row &row : out.rows)
    row.all = of_all(row.cells);
  return out;
}

Reached reached(const json &document) {
  Reached out;
  const json nothing = json::object();
  const auto sizes_of = [&](const json &kernel) { return kernel.value("reached", nothing); };
  for (const json &kernel : document.at("kernels")) {
    const json sizes = sizes_of(kernel);
    for (const auto &[field, size] : sizes.items())
      if (size.at("ten") > 0 &&
          std::find(out.fields.begin(), out.fields.end(), field) == out.fields.end())
        out.fields.push_back(field);
  }
  for (const json &kernel : document.at("kernels")) {
    const json sizes = sizes_of(kernel);
    if (sizes.empty()) continue;
    out.rows.push_back({text_of(kernel, "name"), {}});
    for (const std::string &field : out.fields)
      out.rows.back().sizes.push_back(sizes.contains(field) && sizes.at(field).at("ten") > 0
                                          ? sizes.at(field).at("ten").dump()
                                          : "-");
  }
  return out;
}

} // namespace assay::report
