// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/declaration_file.h"

#include <fstream>

#include <fmt/format.h>

#include "oracle/bounds/declaration.h"
#include "properties/cli/session.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr const char *kFormats[] = {"fp32", "call", "fp16", "bf16", "e4m3", "e5m2"};
constexpr const char *kExponentials[] = {"natural", "base2"};
constexpr const char *kDeterminismWords[] = {"none", "run_to_run"};
constexpr const char *kBatchWords[] = {"none", "fixed", "always"};

/// A table that did not pass the loader may hold any number.
template <size_t n>
json word(const char *const (&words)[n], int32_t value) {
  if (value >= 0 && value < static_cast<int32_t>(n)) return words[value];
  return value;
}

template <size_t n>
int32_t value_of(const char *const (&words)[n], const json &declared, const char *field) {
  const std::string text = declared.at(field).get<std::string>();
  for (size_t i = 0; i < n; ++i)
    if (text == words[i]) return static_cast<int32_t>(i);
  throw std::invalid_argument(fmt::format("{}: unknown word {}", field, quoted_word(text)));
}

struct Error {
  const char *name;
  double assay_arithmetic::*value;
};
constexpr Error kErrors[] = {{"q_abs_error", &assay_arithmetic::q_abs_error},
                             {"exp2_rel_error", &assay_arithmetic::exp2_rel_error},
                             {"log2_abs_error", &assay_arithmetic::log2_abs_error},
                             {"rcp_rel_error", &assay_arithmetic::rcp_rel_error},
                             {"tanh_abs_error", &assay_arithmetic::tanh_abs_error}};

struct Count {
  const char *name;
  int32_t assay_arithmetic::*value;
};
constexpr Count kCounts[] = {{"mma_block", &assay_arithmetic::mma_block},
                             {"mma_fraction_bits", &assay_arithmetic::mma_fraction_bits},
                             {"sum_depth", &assay_arithmetic::sum_depth},
                             {"tile_tokens", &assay_arithmetic::tile_tokens},
                             {"max_parallel_states", &assay_arithmetic::max_parallel_states},
                             {"max_splits", &assay_arithmetic::max_splits},
                             {"merge_stages", &assay_arithmetic::merge_stages}};

assay_arithmetic arithmetic_of(const json &declared) {
  assay_arithmetic out{};
  for (const Error &field : kErrors)
    out.*field.value = declared.at(field.name).get<double>();
  for (const Count &field : kCounts)
    out.*field.value = declared.at(field.name).get<int32_t>();
  out.p_format = value_of(kFormats, declared, "p_format");
  out.sum_format = value_of(kFormats, declared, "sum_format");
  out.exponential = value_of(kExponentials, declared, "exponential");
  if (const std::string defect = oracle::declaration_defect(out); !defect.empty())
    throw std::invalid_argument(defect);
  return out;
}

void declare(assay_kernel &kernel, const json &declared) {
  kernel.arithmetic = arithmetic_of(declared);
  kernel.determinism = value_of(kDeterminismWords, declared, "determinism");
  kernel.batch_invariance = value_of(kBatchWords, declared, "batch_invariance");
  kernel.nan_contract = (declared.at("nan_values").get<bool>() ? ASSAY_NAN_VALUES : 0) |
                        (declared.at("nan_scores").get<bool>() ? ASSAY_NAN_SCORES : 0);
}

json read(const std::string &path) {
  std::ifstream file(path);
  if (!file) throw CliError(kExitUsage, fmt::format("--declared-by {}: cannot read", path));
  json document = json::parse(file, nullptr, false);
  if (document.is_discarded() || !document.is_object() || !document.contains("kernels") ||
      !document.at("kernels").is_array())
    throw CliError(
        kExitUsage,
        fmt::format("--declared-by {}: no document of 'assay list kernels --json'", path));
  return document;
}

} // namespace

json declaration_json(const assay_kernel &kernel) {
  const assay_arithmetic &a = kernel.arithmetic;
  json out = {{"p_format", word(kFormats, a.p_format)},
              {"sum_format", word(kFormats, a.sum_format)},
              {"exponential", word(kExponentials, a.exponential)},
              {"determinism", word(kDeterminismWords, kernel.determinism)},
              {"batch_invariance", word(kBatchWords, kernel.batch_invariance)},
              {"nan_values", (kernel.nan_contract & ASSAY_NAN_VALUES) != 0},
              {"nan_scores", (kernel.nan_contract & ASSAY_NAN_SCORES) != 0},
              {"key_order", kernel.key_order != nullptr},
              {"plan", kernel.plan != nullptr}};
  for (const Error &field : kErrors)
    out[field.name] = a.*field.value;
  for (const Count &field : kCounts)
    out[field.name] = a.*field.value;
  return out;
}

void hold_to(const assay_plugin &plugin, const std::string &file, HeldPlugin &out) {
  out.kernels.assign(plugin.kernels, plugin.kernels + plugin.num_kernels);
  const json document = read(file);
  for (const json &entry : document.at("kernels"))
    for (assay_kernel &kernel : out.kernels) {
      if (entry.value("name", "") != kernel.name ||
          entry.value("target", "") != target_name(kernel.target))
        continue;
      try {
        declare(kernel, entry.at("declaration"));
      } catch (const std::exception &e) {
        throw CliError(kExitUsage,
                       fmt::format("--declared-by {}: {}: {}", file, kernel.name, e.what()));
      }
    }
  out.plugin = plugin;
  out.plugin.kernels = out.kernels.data();
}

} // namespace assay
