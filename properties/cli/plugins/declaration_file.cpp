// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/plugins/declaration_file.h"

#include <fstream>
#include <limits>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "oracle/bounds/arithmetic_fields.h"
#include "oracle/bounds/declaration.h"
#include "oracle/bounds/promises.h"
#include "properties/cli/session/session.h"

namespace assay {
namespace {

using nlohmann::json;

/// A table that did not pass the loader may hold any number.
json word(std::span<const char *const> words, int32_t value) {
  if (value >= 0 && static_cast<size_t>(value) < words.size())
    return words[static_cast<size_t>(value)];
  return value;
}

[[noreturn]] void refuse(const std::string &field, const char *expected) {
  throw std::invalid_argument(fmt::format("{}: expected {}", field, expected));
}

const json &field_of(const json &declared, const char *field) {
  const auto found = declared.find(field);
  if (found == declared.end()) throw std::invalid_argument(fmt::format("no {}", field));
  return *found;
}

std::string text_of(const json &declared, const char *field) {
  const json &value = field_of(declared, field);
  if (!value.is_string()) refuse(field, "a text");
  return value.get<std::string>();
}

int32_t value_of(std::span<const char *const> words, const json &declared, const char *field) {
  const std::string text = text_of(declared, field);
  for (size_t i = 0; i < words.size(); ++i)
    if (text == words[i]) return static_cast<int32_t>(i);
  throw std::invalid_argument(fmt::format("{}: unknown word {}", field, quoted_word(text)));
}

double number_of(const json &declared, const char *field) {
  const json &value = field_of(declared, field);
  if (!value.is_number()) refuse(field, "a number");
  return value.get<double>();
}

int32_t count_of(const json &declared, const char *field) {
  const json &value = field_of(declared, field);
  using Limits = std::numeric_limits<int32_t>;
  if (!value.is_number_integer() || value < Limits::min() || value > Limits::max())
    refuse(field, "an integer of 32 bits");
  return value.get<int32_t>();
}

bool promise_of(const json &declared, const char *field) {
  const json &value = field_of(declared, field);
  if (!value.is_boolean()) refuse(field, "true or false");
  return value.get<bool>();
}

assay_arithmetic arithmetic_of(const json &declared) {
  assay_arithmetic out{};
  for (const oracle::ArithmeticField &field : oracle::arithmetic_fields()) {
    if (field.later && !declared.contains(field.name)) continue;
    if (field.error != nullptr)
      out.*field.error = number_of(declared, field.name);
    else if (field.words.empty())
      out.*field.count = count_of(declared, field.name);
    else
      out.*field.count = value_of(field.words, declared, field.name);
  }
  if (const std::string defect = oracle::declaration_defect(out); !defect.empty())
    throw std::invalid_argument(defect);
  return out;
}

void declare(assay_kernel &kernel, const json &declared) {
  kernel.arithmetic = arithmetic_of(declared);
  for (const oracle::Promise &promise : oracle::promises()) {
    if (promise.feature != nullptr) continue; // what a kernel can take no file changes
    promise.set(kernel, promise.yes_or_no() ? promise_of(declared, promise.name)
                                            : value_of(promise.words, declared, promise.name));
  }
}

/// Those of the kernels that an entry names.
void hold_to_entry(const json &entry, std::vector<assay_kernel> &kernels) {
  if (!entry.is_object()) throw std::invalid_argument("is no object");
  const std::string name = text_of(entry, "name"), target = text_of(entry, "target");
  for (assay_kernel &kernel : kernels) {
    if (name != kernel.name || target != target_name(kernel.target)) continue;
    try {
      const json &declared = field_of(entry, "declaration");
      if (!declared.is_object()) refuse("declaration", "an object");
      declare(kernel, declared);
    } catch (const std::invalid_argument &e) {
      throw std::invalid_argument(name + ": " + e.what());
    }
  }
}

} // namespace

json declaration_json(const assay_kernel &kernel) {
  const assay_arithmetic &a = kernel.arithmetic;
  json out = {{"key_order", kernel.key_order != nullptr}, {"plan", kernel.plan != nullptr}};
  for (const oracle::Promise &promise : oracle::promises()) {
    const int32_t value = promise.of(kernel);
    out[promise.name] = promise.yes_or_no() ? json(value != 0) : word(promise.words, value);
  }
  for (const oracle::ArithmeticField &field : oracle::arithmetic_fields()) {
    if (field.error != nullptr)
      out[field.name] = a.*field.error;
    else
      out[field.name] =
          field.words.empty() ? json(a.*field.count) : word(field.words, a.*field.count);
  }
  return out;
}

json declaration_fields() {
  constexpr const char *kWider[] = {"more", "less", "any", "words"};
  json out = json::array();
  const auto promise = [&](const char *name, bool bits, std::span<const char *const> words) {
    out.push_back({{"name", name},
                   {"wider", bits ? "bits" : "words"},
                   {"best_first", std::vector<std::string>(words.rbegin(), words.rend())},
                   {"promise", true}});
  };
  for (const oracle::ArithmeticField &field : oracle::arithmetic_fields()) {
    const std::vector<std::string> words(field.best_first.begin(), field.best_first.end());
    out.push_back({{"name", field.name},
                   {"wider", kWider[static_cast<int>(field.wider)]},
                   {"best_first", words},
                   {"promise", false}});
  }
  for (const oracle::Promise &p : oracle::promises())
    promise(p.name, p.bits, p.words);
  constexpr const char *kGiven[] = {"false", "true"};
  promise("key_order", false, kGiven);
  promise("plan", false, kGiven);
  return out;
}

json promise_rows() {
  json out = json::array();
  for (const oracle::Promise &p : oracle::promises())
    out.push_back({{"name", p.name},
                   {"words", std::vector<std::string>(p.words.begin(), p.words.end())},
                   {"capability", p.feature != nullptr}});
  return out;
}

void hold_to_text(const assay_plugin &plugin, const std::string &text, const std::string &file,
                  HeldPlugin &out) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("kernels") || !document.at("kernels").is_array())
    throw CliError(
        kExitUsage,
        fmt::format("--declared-by {}: no document of 'assay list kernels --json'", file));
  out.kernels.assign(plugin.kernels, plugin.kernels + plugin.num_kernels);
  const json &entries = document.at("kernels");
  for (size_t i = 0; i < entries.size(); ++i) {
    try {
      hold_to_entry(entries[i], out.kernels);
    } catch (const std::invalid_argument &e) {
      throw CliError(kExitUsage,
                     fmt::format("--declared-by {}: kernels[{}]: {}", file, i, e.what()));
    }
  }
  out.plugin = plugin;
  out.plugin.kernels = out.kernels.data();
}

void hold_to(const assay_plugin &plugin, const std::string &file, HeldPlugin &out) {
  std::ifstream in(file);
  if (!in) throw CliError(kExitUsage, fmt::format("--declared-by {}: cannot read", file));
  hold_to_text(plugin, {std::istreambuf_iterator<char>(in), {}}, file, out);
}

} // namespace assay
