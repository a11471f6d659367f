// SPDX-License-Identifier: Apache-2.0
#include "properties/tools/gate/declarations.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::gate {
namespace {

std::string word_of(const json &value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// By `field`, a row of "fields" of `assay list kernels --json`: whether head allows or leaves open
/// what base does not.
bool wider(const json &field, const json &base, const json &head) {
  const std::string sense = field.at("wider");
  if (sense == "more") return !(head.get<double>() <= base.get<double>());
  if (sense == "less") return !(head.get<double>() >= base.get<double>());
  if (sense == "any") return head != base;
  const json &best_first = field.at("best_first");
  if (sense == "bits")
    return word_of(head) != word_of(best_first.front()) &&
           word_of(base) != word_of(best_first.back());
  const auto rank = [&](const json &value) {
    return std::find(best_first.begin(), best_first.end(), word_of(value));
  };
  return rank(head) > rank(base);
}

const char *what_it_gives_up(const json &field) {
  if (field.at("wider") == "any") return "its bounds are of another shape";
  return field.at("promise") ? "it promises less" : "its bounds get wider";
}

void compare(const json &fields, const std::string &kernel, const json &base, const json &head,
             Comparison &out) {
  for (const json &field : fields) {
    const std::string name = field.at("name");
    const auto before = base.find(name), after = head.find(name);
    if (before == base.end() || after == head.end()) {
      if (before != base.end())
        out.red.push_back(red_line("declaration-wider", kernel, fmt::format("{} is gone", name)));
      continue;
    }
    if (*before == *after) continue;
    const std::string change = fmt::format("{} {} -> {}", name, word_of(*before), word_of(*after));
    if (wider(field, *before, *after))
      out.red.push_back(red_line("declaration-wider", kernel,
                                 fmt::format("{}: {}", change, what_it_gives_up(field))));
    else
      out.notes.push_back(
          fmt::format("{}: {}: {}; judged by what base declares", kernel, change,
                      field.at("promise") ? "it promises more" : "its bounds get tighter"));
  }
}

std::map<std::string, json> kernels_on(const json &list, const std::string &target) {
  std::map<std::string, json> out;
  for (const json &kernel : list.value("kernels", json::array()))
    if (kernel.value("target", "") == target) out[kernel.at("name")] = kernel;
  return out;
}

std::set<std::string> words(const json &array) {
  std::set<std::string> out;
  for (const json &word : array)
    out.insert(word_of(word));
  return out;
}

std::string listed(const std::set<std::string> &names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

std::set<std::string> minus(std::set<std::string> all, const std::set<std::string> &less) {
  for (const std::string &name : less)
    all.erase(name);
  return all;
}

/// Values that head refuses and base does not.
void compare_fields(const json &base, const json &head, RedLines &out) {
  const std::string name = head.at("name");
  for (const auto &[field, asked] : head.at("envelope").items()) {
    std::set<std::string> lost = words(asked.at("refused"));
    const json &before = base.at("envelope");
    if (before.contains(field)) lost = minus(lost, words(before.at(field).at("refused")));
    if (lost.empty()) continue;
    const std::string why = asked.value("reason", "");
    out.push_back(red_line("envelope-narrower", name,
                           fmt::format("refuses {} = {}, which base takes{}", field, listed(lost),
                                       why.empty() ? "" : " (" + why + ")")));
  }
  if (const auto lost = minus(words(head.at("not_covered")), words(base.at("not_covered")));
      !lost.empty())
    out.push_back(
        red_line("envelope-narrower", name, "no case of class any more: " + listed(lost)));
}

/// Cases of the same draws that head refuses and base takes.
void compare_refusals(const json &base, const json &head, const std::string &kernel,
                      RedLines &out) {
  std::map<std::string, int> before;
  for (const json &run : base.at("runs"))
    if (run.at("kernel") == kernel) before[run.at("property")] = run.at("unsupported");
  int more = 0;
  std::string reason;
  for (const json &run : head.at("runs")) {
    if (run.at("kernel") != kernel) continue;
    const int here = run.at("unsupported").get<int>() - before[run.at("property")];
    if (here > 0) reason = run.value("last_discard", "");
    more += std::max(here, 0);
  }
  if (more > 0)
    out.push_back(red_line("envelope-narrower", kernel,
                           fmt::format("refuses {} drawn cases more than base{}", more,
                                       reason.empty() ? "" : " (" + reason + ")")));
}

} // namespace

const json *named(const json &array, const std::string &name) {
  for (const json &entry : array)
    if (entry.at("name") == name) return &entry;
  return nullptr;
}

Comparison compare_declarations(const json &base, const json &head, const std::string &target) {
  Comparison out;
  const auto before = kernels_on(base, target), after = kernels_on(head, target);
  for (const auto &[name, kernel] : before) {
    const auto at = after.find(name);
    if (at == after.end()) {
      out.red.push_back(red_line("kernel-gone", name, "is not there any more"));
      continue;
    }
    if (kernel.value("family", "") != at->second.value("family", ""))
      out.red.push_back(red_line("declaration-wider", name, "is of another family"));
    if (!kernel.contains("declaration") || !at->second.contains("declaration") ||
        !head.contains("fields"))
      out.notes.push_back(name +
                          ": a revision's assay does not say what it declares; each is judged "
                          "by its own declaration");
    else
      compare(head.at("fields"), name, kernel.at("declaration"), at->second.at("declaration"), out);
  }
  for (const auto &[name, kernel] : after)
    if (before.count(name) == 0)
      out.notes.push_back(name + " is new: judged by its own declaration");
  return out;
}

RedLines compare_envelopes(const json &base, const json &head) {
  RedLines out;
  for (const json &kernel : head.at("kernels")) {
    const json *before = named(base.at("kernels"), kernel.at("name"));
    if (before == nullptr) continue;
    const size_t lines = out.size();
    compare_fields(*before, kernel, out);
    // Where the envelopes differ the draws do.
    if (out.size() == lines && before->at("envelope") == kernel.at("envelope"))
      compare_refusals(base, head, kernel.at("name"), out);
  }
  return out;
}

} // namespace assay::gate
