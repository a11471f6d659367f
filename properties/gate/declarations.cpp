// SPDX-License-Identifier: Apache-2.0
#include "properties/gate/declarations.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::gate {
namespace {

/// What a change of a field gives up.
enum class Sense {
  kMoreIsWider,
  kLessIsWider,
  kAnyIsWider, ///< the bounds are of another shape: neither is inside the other
  kRank        ///< by the words below, best first
};

struct Field {
  const char *name;
  Sense sense;
  std::vector<std::string> best_first = {};
  bool promise = false; ///< about runs; the others make bounds
};

/// The fields of "declaration" in `assay list kernels --json`.
const std::vector<Field> &fields() {
  static const std::vector<Field> kFields = {
      {"q_abs_error", Sense::kMoreIsWider},
      {"exp2_rel_error", Sense::kMoreIsWider},
      {"log2_abs_error", Sense::kMoreIsWider},
      {"rcp_rel_error", Sense::kMoreIsWider},
      {"tanh_abs_error", Sense::kMoreIsWider},
      {"sum_depth", Sense::kMoreIsWider},
      {"max_parallel_states", Sense::kMoreIsWider},
      {"max_splits", Sense::kMoreIsWider},
      {"merge_stages", Sense::kMoreIsWider},
      {"stored_merges", Sense::kMoreIsWider},
      {"mma_fraction_bits", Sense::kLessIsWider},
      // Each tile may rescale what was summed.
      {"tile_tokens", Sense::kLessIsWider},
      {"mma_block", Sense::kAnyIsWider},
      {"p_format", Sense::kRank, {"fp32", "fp16", "call", "bf16", "e4m3", "e5m2"}},
      {"sum_format", Sense::kRank, {"fp32", "call", "fp16", "bf16"}},
      {"partial_format", Sense::kRank, {"fp32", "fp16", "call", "bf16"}},
      {"score_format", Sense::kRank, {"fp32", "fp16", "call", "bf16"}},
      {"accumulator", Sense::kRank, {"fp64", "fp32"}},
      {"kv_format", Sense::kRank, {"fp32", "fp16", "call", "bf16"}},
      {"rounded_before_scale", Sense::kMoreIsWider},
      // Scaled weights have fewer subnormals.
      {"p_scale_log2", Sense::kLessIsWider},
      {"exponential", Sense::kRank, {"base2", "natural"}},
      {"determinism", Sense::kRank, {"run_to_run", "none"}, true},
      {"batch_invariance", Sense::kRank, {"always", "fixed", "none"}, true},
      {"nan_values", Sense::kRank, {"true", "false"}, true},
      {"nan_scores", Sense::kRank, {"true", "false"}, true},
      {"checks_arguments", Sense::kRank, {"true", "false"}, true},
      {"ragged_queries", Sense::kRank, {"true", "false"}, true},
      {"shards", Sense::kRank, {"true", "false"}, true},
      {"key_order", Sense::kRank, {"true", "false"}, true},
      {"plan", Sense::kRank, {"true", "false"}, true},
  };
  return kFields;
}

std::string word_of(const json &value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool wider(const Field &field, const json &base, const json &head) {
  const auto rank = [&](const json &value) {
    return std::find(field.best_first.begin(), field.best_first.end(), word_of(value));
  };
  switch (field.sense) {
  case Sense::kMoreIsWider:
    return !(head.get<double>() <= base.get<double>());
  case Sense::kLessIsWider:
    return !(head.get<double>() >= base.get<double>());
  case Sense::kAnyIsWider:
    return head != base;
  case Sense::kRank:
    return rank(head) > rank(base);
  }
  return true;
}

const char *what_it_gives_up(const Field &field) {
  if (field.sense == Sense::kAnyIsWider) return "its bounds are of another shape";
  return field.promise ? "it promises less" : "its bounds get wider";
}

RedLine line(const char *id, const std::string &kernel, const std::string &text) {
  return {
      .id = id, .text = text, .kernel = kernel, .acceptable = true, .file = "", .reproduce = ""};
}

void compare(const std::string &name, const json &base, const json &head, Comparison &out) {
  for (const Field &field : fields()) {
    const auto before = base.find(field.name), after = head.find(field.name);
    if (before == base.end() || after == head.end()) {
      if (before != base.end())
        out.red.push_back(line("declaration-wider", name, fmt::format("{} is gone", field.name)));
      continue;
    }
    if (*before == *after) continue;
    const std::string change =
        fmt::format("{} {} -> {}", field.name, word_of(*before), word_of(*after));
    if (wider(field, *before, *after))
      out.red.push_back(
          line("declaration-wider", name, fmt::format("{}: {}", change, what_it_gives_up(field))));
    else
      out.notes.push_back(
          fmt::format("{}: {}: {}; judged by what base declares", name, change,
                      field.promise ? "it promises more" : "its bounds get tighter"));
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
    out.push_back(line("envelope-narrower", name,
                       fmt::format("refuses {} = {}, which base takes{}", field, listed(lost),
                                   why.empty() ? "" : " (" + why + ")")));
  }
  if (const auto lost = minus(words(head.at("not_covered")), words(base.at("not_covered")));
      !lost.empty())
    out.push_back(line("envelope-narrower", name, "no case of class any more: " + listed(lost)));
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
    out.push_back(line("envelope-narrower", kernel,
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
      out.red.push_back(line("kernel-gone", name, "is not there any more"));
      continue;
    }
    if (kernel.value("family", "") != at->second.value("family", ""))
      out.red.push_back(line("declaration-wider", name, "is of another family"));
    if (!kernel.contains("declaration") || !at->second.contains("declaration"))
      out.notes.push_back(name + ": a side's assay does not say what it declares; each is judged "
                                 "by its own declaration");
    else
      compare(name, kernel.at("declaration"), at->second.at("declaration"), out);
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
