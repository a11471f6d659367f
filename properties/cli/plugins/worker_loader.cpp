// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/plugins/worker_loader.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "oracle/bounds/arithmetic_fields.h"
#include "oracle/bounds/promises.h"
#include "properties/cli/plugins/plugin_loader.h"
#include "properties/cli/session/session.h"

namespace assay {
namespace {

using nlohmann::json;

assay_status run_elsewhere(const void *) { return ASSAY_UNSUPPORTED; }
const char *no_error() { return "runs in its worker only"; }

/// One object of a hello, and where it stands in it. Every field is taken once, and none is left.
class Fields {
public:
  Fields(std::string place, const json &from) : place_(std::move(place)), from_(from) {
    if (!from.is_object()) refuse("is no object");
  }

  [[noreturn]] void refuse(const std::string &why) const {
    throw CliError(kExitUsage, place_ + ": " + why);
  }
  const json &at(const char *name) {
    const auto found = from_.find(name);
    if (found == from_.end()) refuse(fmt::format("no {}", name));
    ++taken_;
    return *found;
  }
  int32_t integer(const char *name) {
    const json &value = at(name);
    using Limits = std::numeric_limits<int32_t>;
    if (!value.is_number_integer() || value < Limits::min() || value > Limits::max())
      refuse(fmt::format("{} is {}, expected an integer of 32 bits", name, shown(value)));
    return value.get<int32_t>();
  }
  /// JSON has no NaN and no infinity: "nan", "inf" and "-inf" stand for them, to be refused.
  double number(const char *name) {
    const json &value = at(name);
    if (value.is_number()) return value.get<double>();
    if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (value == "inf") return std::numeric_limits<double>::infinity();
    if (value == "-inf") return -std::numeric_limits<double>::infinity();
    refuse(fmt::format("{} is {}, expected a number", name, shown(value)));
  }
  bool has(const char *name) const { return from_.contains(name); }
  std::string text(const char *name) {
    const json &value = at(name);
    if (!value.is_string()) refuse(fmt::format("{} is {}, expected a text", name, shown(value)));
    return value.get<std::string>();
  }
  const json &list(const char *name) {
    const json &value = at(name);
    if (!value.is_array()) refuse(fmt::format("{} is {}, expected a list", name, shown(value)));
    return value;
  }
  /// A field that nobody reads would be a promise that nobody holds.
  void done() const {
    if (taken_ != from_.size()) refuse("has a field that this program does not know");
  }

private:
  static std::string shown(const json &value) {
    return quoted_word(value.dump(-1, ' ', true, json::error_handler_t::replace));
  }
  std::string place_;
  const json &from_;
  size_t taken_ = 0;
};

assay_arithmetic read_arithmetic(Fields from) {
  assay_arithmetic a{};
  for (const oracle::ArithmeticField &field : oracle::arithmetic_fields()) {
    if (field.error != nullptr)
      a.*field.error = from.number(field.name);
    else
      a.*field.count = from.integer(field.name);
  }
  from.done();
  return a;
}

void read_promise(Fields &from, const oracle::Promise &promise, assay_kernel &kernel) {
  const int32_t value = from.integer(promise.name);
  if (promise.yes_or_no() && value != 0 && value != 1)
    from.refuse(fmt::format("{} is {}, expected 0 .. 1", promise.name, value));
  promise.set(kernel, value);
}

assay_kernel read_kernel(const std::string &place, Fields from) {
  assay_kernel k{};
  k.struct_size = sizeof k;
  k.target = ASSAY_TARGET_SIMT; // host memory
  from.text("name");
  k.family = from.integer("family");
  for (const oracle::Promise &promise : oracle::promises())
    if (!promise.later || from.has(promise.name)) read_promise(from, promise, k);
  k.arithmetic = read_arithmetic({place + ": arithmetic", from.at("arithmetic")});
  from.done();
  k.supports = run_elsewhere;
  k.run = run_elsewhere;
  k.last_error = no_error;
  return k;
}

void read_version(Fields &from, assay_plugin &plugin) {
  const json &version = from.list("abi");
  const bool sound = version.size() == 2 && version[0].is_number_unsigned() &&
                     version[1].is_number_unsigned() && version[0] <= UINT32_MAX &&
                     version[1] <= UINT32_MAX;
  if (!sound) from.refuse("abi is not [major, minor]");
  plugin.abi_major = version[0].get<uint32_t>();
  plugin.abi_minor = version[1].get<uint32_t>();
}

} // namespace

std::unique_ptr<WorkerTable> read_hello(const std::string &command, const std::string &hello) {
  const std::string place = fmt::format("worker '{}'", command);
  const json document = json::parse(hello, nullptr, false);
  if (document.is_discarded()) throw CliError(kExitUsage, place + ": its hello is no JSON");
  auto table = std::make_unique<WorkerTable>();
  Fields from(place, document);
  read_version(from, table->plugin);
  // Nothing further is read of another version.
  table->plugin.struct_size = sizeof table->plugin;
  check_plugin_version(place, table->plugin);
  const json &kernels = from.list("kernels");
  table->names.push_back(from.text("name"));
  from.done();
  for (const json &kernel : kernels) {
    const std::string at = fmt::format("{}: kernels[{}]", place, table->kernels.size());
    table->kernels.push_back(read_kernel(at, {at, kernel}));
    table->names.push_back(kernel["name"]);
  }
  table->plugin.name = table->names[0].c_str();
  table->plugin.num_kernels = static_cast<int32_t>(table->kernels.size());
  table->plugin.kernels = table->kernels.data();
  for (size_t i = 0; i < table->kernels.size(); ++i)
    table->kernels[i].name = table->names[i + 1].c_str();
  check_plugin(place, &table->plugin);
  return table;
}

const assay_plugin *load_worker(WorkerPool &pool) {
  static std::vector<std::unique_ptr<WorkerTable>> loaded;
  try {
    auto worker = pool.take();
    loaded.push_back(read_hello(pool.command(), worker->hello()));
    pool.give_back(std::move(worker));
  } catch (const WorkerError &e) {
    throw CliError(kExitHarness, e.what());
  }
  return &loaded.back()->plugin;
}

} // namespace assay
