// SPDX-License-Identifier: Apache-2.0
#include "properties/cli/plugins/plugin_loader.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "oracle/bounds/declaration.h"
#include "oracle/bounds/promises.h"
#include "properties/cli/session/session.h"
#include "properties/sut/child.h"

namespace assay {
namespace {

constexpr uint32_t kFirstMinor = 13; // the first version whose plugins are served
constexpr size_t kFirstKernelSize = sizeof(assay_kernel); // in that version
constexpr int32_t kMaxKernels = 4096;
constexpr size_t kMaxName = 100; // what a .case may hold

/// Names the place of what is wrong, so that every refusal reads the same.
struct Place {
  std::string text;

  [[noreturn]] void refuse(const std::string &why, ExitCode code = kExitUsage) const {
    throw CliError(code, text + ": " + why);
  }
  void require_size(uint32_t size, size_t expected) const {
    if (size != expected) refuse(fmt::format("struct_size is {}, expected {}", size, expected));
  }
  void require(bool given, const char *field) const {
    if (!given) refuse(fmt::format("{} is null", field));
  }
  void require_below(int32_t value, int32_t count, const char *field) const {
    if (value < 0 || value >= count)
      refuse(fmt::format("{} is {}, expected 0{}", field, value,
                         count > 1 ? fmt::format(" .. {}", count - 1) : ""));
  }
};

bool printable(char c) { return c >= ' ' && c <= '~'; }
/// Kernel names stand in file names, in lines of a .case and on command lines.
bool kernel_letter(char c) { return printable(c) && std::strchr(" /#", c) == nullptr; }

void check_name(const Place &place, const char *name, bool (*allowed)(char), const char *what) {
  place.require(name != nullptr, "name");
  const size_t size = strnlen(name, kMaxName + 1);
  if (size == 0 || size > kMaxName || !std::all_of(name, name + size, allowed))
    place.refuse(fmt::format("name is not 1 to {} printable characters{}", kMaxName, what));
}

void check_enums(const Place &place, const assay_kernel &kernel) {
  place.require_below(kernel.family, ASSAY_FAMILY_MERGE_STATES + 1, "family");
  place.require_below(kernel.target, ASSAY_TARGET_CUDA + 1, "target");
  if (kernel.capabilities & ~oracle::known_capabilities())
    place.refuse(fmt::format("capabilities is {}, expected bits of {}", kernel.capabilities,
                             oracle::known_capabilities()));
  for (const oracle::Promise &promise : oracle::promises()) {
    const bool can_have = promise.feature == nullptr || kernel.family == ASSAY_FAMILY_PAGED;
    place.require_below(promise.of(kernel),
                        can_have ? static_cast<int32_t>(promise.words.size()) : 1, promise.name);
  }
}

void check_calls(const Place &place, const assay_kernel &kernel) {
  place.require(kernel.supports != nullptr, "supports");
  place.require(kernel.run != nullptr, "run");
  place.require(kernel.last_error != nullptr, "last_error");
  if (kernel.plan != nullptr) place.require(kernel.plan_size != nullptr, "plan_size beside a plan");
  if (kernel.plan_size != nullptr) place.require(kernel.plan != nullptr, "plan beside a plan_size");
}

/// The size first: behind a size that differs, the fields are not where this program reads them.
void check_kernel(const std::string &path, int index, const assay_kernel &kernel) {
  const Place unnamed{fmt::format("{}: kernels[{}]", path, index)};
  unnamed.require_size(kernel.struct_size, sizeof kernel);
  check_name(unnamed, kernel.name, kernel_letter, " without space, '/' and '#'");
  const Place place{fmt::format("{} '{}'", unnamed.text, kernel.name)};
  check_enums(place, kernel);
  check_calls(place, kernel);
  const std::string defect = oracle::declaration_defect(kernel.arithmetic);
  if (!defect.empty()) place.refuse("arithmetic." + defect);
}

/// The loader's own words begin with the path it was given, or with that of a library it misses.
std::string load_error(const std::string &absolute) {
  const char *error = dlerror();
  std::string text = error == nullptr ? "cannot be loaded" : error;
  if (text.rfind(absolute + ": ", 0) == 0) text.erase(0, absolute.size() + 2);
  const bool other = text == "invalid ELF header" || text == "file too short";
  return other ? "is no shared library (" + text + ")" : text;
}

/// The table with kernels as long as this program's, which lives as long as the library: for ever.
const assay_plugin *with_current_rows(const assay_plugin *plugin) {
  if (plugin->num_kernels <= 0 || plugin->num_kernels > kMaxKernels || plugin->kernels == nullptr)
    return plugin; // to be refused, or without kernels
  const size_t size = plugin->kernels->struct_size;
  if (size < kFirstKernelSize || size >= sizeof(assay_kernel)) return plugin;
  static std::deque<std::pair<assay_plugin, std::vector<assay_kernel>>> tables;
  auto &[table, rows] =
      tables.emplace_back(*plugin, continued_rows(plugin->kernels, size, plugin->num_kernels));
  table.kernels = rows.data();
  return &table;
}

/// In a process of its own: a library may do anything when it is loaded and asked for its table.
void try_loading(const std::string &path, const std::string &absolute) {
  const std::string done = "loaded";
  const std::string said = said_apart([&] {
    void *library = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
    auto entry = library == nullptr
                     ? nullptr
                     : reinterpret_cast<assay_plugin_entry_fn>(dlsym(library, ASSAY_PLUGIN_ENTRY));
    if (entry != nullptr) entry(ASSAY_ABI_MAJOR);
    return done;
  });
  if (said != done) Place{path}.refuse("loading it: " + said);
}

} // namespace

void check_plugin_version(const std::string &path, const assay_plugin &plugin) {
  if (plugin.abi_major == ASSAY_ABI_MAJOR && plugin.abi_minor >= kFirstMinor &&
      plugin.abi_minor <= ASSAY_ABI_MINOR)
    return;
  Place{path}.refuse(fmt::format("is of ABI version {}.{}, this program serves {}.{} to {}.{}",
                                 plugin.abi_major, plugin.abi_minor, ASSAY_ABI_MAJOR, kFirstMinor,
                                 ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR),
                     kExitUnsupported);
}

std::vector<assay_kernel> continued_rows(const void *rows, size_t size, int32_t count) {
  std::vector<assay_kernel> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) {
    std::memcpy(&out[i], static_cast<const char *>(rows) + i * size, size);
    out[i].struct_size = sizeof out[i];
  }
  return out;
}

void check_plugin(const std::string &path, const assay_plugin *plugin) {
  const Place file{path};
  if (plugin == nullptr)
    file.refuse(fmt::format("does not serve ABI version {}", ASSAY_ABI_MAJOR), kExitUnsupported);
  check_plugin_version(path, *plugin);
  file.require_size(plugin->struct_size, sizeof *plugin);
  check_name(file, plugin->name, printable, "");
  file.require_below(plugin->num_kernels, kMaxKernels + 1, "num_kernels");
  file.require(plugin->num_kernels == 0 || plugin->kernels != nullptr, "kernels");
  std::set<std::pair<std::string, assay_target>> seen;
  for (int i = 0; i < plugin->num_kernels; ++i) {
    const assay_kernel &kernel = plugin->kernels[i];
    check_kernel(path, i, kernel);
    if (!seen.emplace(kernel.name, kernel.target).second)
      file.refuse(fmt::format("kernels[{}] '{}': name stands there twice for target {}", i,
                              kernel.name, target_name(kernel.target)));
  }
}

const assay_plugin *load_plugin(const std::string &path) {
  // A name without a slash would be looked up in the system's folders.
  const std::string absolute = std::filesystem::absolute(path).string();
  const Place file{path};
  try_loading(path, absolute);
  void *library = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) file.refuse(load_error(absolute));
  auto entry = reinterpret_cast<assay_plugin_entry_fn>(dlsym(library, ASSAY_PLUGIN_ENTRY));
  if (entry == nullptr) file.refuse(fmt::format("exports no {}", ASSAY_PLUGIN_ENTRY));
  const assay_plugin *plugin = entry(ASSAY_ABI_MAJOR);
  if (plugin != nullptr) {
    check_plugin_version(path, *plugin);
    plugin = with_current_rows(plugin);
  }
  check_plugin(path, plugin);
  return plugin;
}

} // namespace assay
